"""The shell of `pentaglot sql` on a terminal: several lines, commands, completion, history, progress, Ctrl-C.

Run by `cargo xtask test` with PENTAGLOT = the built command (feature `sql`).
"""

import atexit
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import tempfile
import termios
import time

FOLDER = pathlib.Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
(FOLDER / "t.csv").write_text("sym,price\nA,1.5\nB,2.5\n")


class Shell:
    def __init__(self):
        self.terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(FOLDER / "state")}
        self.child = subprocess.Popen(
            [os.environ["PENTAGLOT"], "sql"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=FOLDER,
            env=environment, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self.printed = ""
        self.expect("sql> ")

    def expect(self, wanted):
        """What is printed up to and with a text; it is not looked at again."""
        end = time.monotonic() + 120
        while wanted not in self.printed:
            assert time.monotonic() < end, (wanted, self.printed[-500:])
            if not select.select([self.terminal], [], [], 1)[0]:
                continue
            more = os.read(self.terminal, 1 << 16).decode()
            self.printed += re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", more).replace("\r", "")
        before, self.printed = self.printed.split(wanted, 1)
        return before + wanted

    def prompt(self):
        """Waits for a new prompt: what is typed is drawn again with its prompt, but not on a new line."""
        self.expect("\nsql> ")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def end(self):
        assert self.child.wait(60) == 0
        os.close(self.terminal)


shell = Shell()
shell.send("SELECT sym, price * 2 AS twice\r")
shell.send("FROM 't.csv' WHERE sym = 'B';\r")
shell.expect("5.0")
shell.prompt()
# An error is one line, and the shell goes on.
shell.send("SELECT nothing FROM 't.csv';\r")
shell.expect("No field named nothing")
shell.prompt()
# Commands.
shell.send("CREATE VIEW trades AS SELECT * FROM 't.csv';\r")
shell.prompt()
shell.send("\\d\r")
shell.expect("trades (sym, price)")
shell.prompt()
shell.send("\\d trades\r")
shell.expect("column_name")
shell.expect("price")
shell.prompt()
shell.send("\\nonsense\r")
shell.expect("there is no command \\nonsense")
shell.prompt()
# Completion of a keyword, a table and a column.
shell.send("sele\t max(pri\t) AS top fro\t tra\t;\r")
shell.expect("2.5")
shell.prompt()
# Progress of a long query, and Ctrl-C, which ends the query and not the shell.
shell.send("SELECT count(*) FROM generate_series(1, 1000000000000) AS s(i) WHERE i % 7 = 3;\r")
shell.expect("B/s")
shell.send("\x03")
shell.expect("the query was cancelled")
shell.prompt()
shell.send("SELECT 40 + 2 AS answer;\r")
shell.expect("42")
shell.prompt()
shell.send("\\q\r")
shell.end()

# Lines are kept between sessions: the last but one is the sum.
shell = Shell()
shell.send("\x1b[A\x1b[A\r")
shell.expect("42")
shell.prompt()
shell.send("\x04")
shell.end()
print("shell: statements, commands, completion, history, progress, interrupts")
