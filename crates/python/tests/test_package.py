"""The package itself: documentation that runs, types, signals, start."""

import doctest
import importlib
import pkgutil
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pentaglot

ROOT = Path(__file__).parents[3]
MODULES = sorted(
    {"pentaglot"}
    | {f"pentaglot.{module.name}" for module in pkgutil.iter_modules(pentaglot.__path__)} - {"pentaglot.__main__"}
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0


def test_every_public_name_is_documented():
    for name in pentaglot.__all__:
        if name != "__version__":
            assert getattr(pentaglot, name).__doc__, name


def test_the_tutorial_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    exec(compile("\n".join(blocks), "docs/python.md", "exec"), {})


def test_types_are_clean():
    package = Path(pentaglot.__file__).parent
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "crates/python/pyproject.toml"), str(package)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_types_are_clean_for_pyright_too():
    command = [sys.executable, "-m", "pyright", "--project", str(ROOT / "crates/python")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_those_of_the_module():
    command = [sys.executable, "-m", "mypy.stubtest", "pentaglot._native"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_nothing_else_is_imported():
    code = "import sys, pentaglot; print([m for m in ('numpy', 'pyarrow', 'pandas', 'polars', 'scipy') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_command_is_in_the_package(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a\n1\n2\n")
    module = [sys.executable, "-m", "pentaglot"]
    for program in (module, [str(Path(sys.executable).parent / "pentaglot")]):
        done = subprocess.run([*program, "count", "t.csv"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "2  t.csv\n")
        done = subprocess.run([*program, "convert", "t.csv"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and "pentaglot" in done.stderr


def test_an_interrupt_ends_the_work(tmp_path):
    """A conversion of many rows is interrupted: the exception comes, and no output is left."""
    code = textwrap.dedent(
        """
        import sys, pyarrow as pa, pentaglot as pg
        schema = pa.schema([("a", pa.int64())])
        def batches():
            print("started", flush=True)
            batch = pa.record_batch({"a": pa.array(range(1000))})
            while True:
                yield batch
        reader = pa.RecordBatchReader.from_batches(schema, batches())
        try:
            pg.write(reader, sys.argv[1])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    path = tmp_path / "endless.csv"
    child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "started"
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out.strip() == "interrupted" and child.returncode == 0
    assert not path.exists()
