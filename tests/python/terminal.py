"""What a person sees: the command on a terminal of a known width.

Run by `cargo xtask test` with PENTAGLOT = the built command.
"""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import tempfile
import termios

PENTAGLOT = os.environ["PENTAGLOT"]
FOLDER = pathlib.Path(tempfile.mkdtemp())
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "data"


def on_terminal(*words, width=80, **variables):
    """What the command prints on a terminal, and its status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    settings = {"PENTAGLOT_PAGER": "", "TERM": "xterm", **variables}
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    child = subprocess.Popen(
        [PENTAGLOT, *map(str, words)], stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL,
        env={**environment, **settings},
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            more = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        printed += more
    os.close(ours)
    return printed.decode().replace("\r\n", "\n"), child.wait()


def plain(text):
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def tables_fit_and_count_what_is_left_out():
    wide = FOLDER / "wide.csv"
    wide.write_text(",".join(f"c{i}" for i in range(100)) + "\n" + ",".join("7" * 100) + "\n")
    for width in (80, 200):
        text, status = on_terminal("cat", wide, width=width)
        assert status == 0
        lines = plain(text).splitlines()
        assert all(len(line) <= width for line in lines), lines
        shown = lines[0].split()
        assert shown[-1] == "…" and lines[1].split()[0] == "?int64"
        assert lines[-1].startswith(f"… {100 - len(shown) + 1} more columns"), lines[-1]


def missing_values_are_dim_and_differ_from_text():
    path = FOLDER / "nulls.csv"
    path.write_text('t,n\nnull,1\n,2\n')
    text, _ = on_terminal("cat", path)
    assert '"null"' in text and "\x1b[2mnull\x1b[0m" in text, text


def binary_is_not_written_to_a_terminal():
    for words in (["cat", EXAMPLES / "ticks.bson", "--output", "arrow"],
                  ["convert", EXAMPLES / "ticks.bson", "-", "--to", "parquet"]):
        text, status = on_terminal(*words)
        assert status == 2 and "is binary, and standard output is a terminal" in text, text
    text, status = on_terminal("convert", EXAMPLES / "ticks.bson", "-", "--to", "csv", "--rows", "..1")
    assert status == 0 and text.startswith("time,symbol"), text


def a_pager_shows_what_is_printed():
    pager = FOLDER / "pager"
    pager.write_text("#!/bin/sh\necho begin\ncat\necho end\n")
    pager.chmod(0o755)
    for verb in ("inspect", "cat", "schema", "dump"):
        text, status = on_terminal(verb, EXAMPLES / "stations.csv", PENTAGLOT_PAGER=str(pager))
        assert status == 0 and text.startswith("begin\n") and text.endswith("end\n"), text
        text, _ = on_terminal(verb, EXAMPLES / "stations.csv", "--no-pager", PENTAGLOT_PAGER=str(pager))
        assert "begin" not in text, text
    text, status = on_terminal("cat", "nowhere.csv", PENTAGLOT_PAGER=str(pager))
    assert status == 2 and "begin" not in text, text
    # Whoever leaves a pager has seen enough; a pager that is not there is done without.
    assert on_terminal("cat", EXAMPLES / "ticks.bson", PENTAGLOT_PAGER="true")[1] == 0
    assert "Davos" in on_terminal("cat", EXAMPLES / "stations.csv", PENTAGLOT_PAGER="no-such-pager")[0]


for check in (tables_fit_and_count_what_is_left_out, missing_values_are_dim_and_differ_from_text,
              binary_is_not_written_to_a_terminal, a_pager_shows_what_is_printed):
    check()
    print("ok", check.__name__)
