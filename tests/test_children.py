"""What a child imports, and what is known of its end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import workbench
from workbench.children import import_path, killed_by, last_line

HOME = str(Path(workbench.__file__).parents[1])


def test_a_child_imports_this_very_package(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/a:/b")
    assert import_path() == f"{HOME}:/a:/b"
    assert import_path({"PYTHONPATH": "/c"}) == f"{HOME}:/c"
    assert import_path({}) == HOME


def test_the_signal_that_ended_a_process():
    assert [killed_by(code) for code in (None, 0, 3, -9, -15)] == [None, None, None, "SIGKILL", "SIGTERM"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"", ""),
        (b"\n \n", ""),
        (b"first\n  last  \n\n", "last"),
        (b"10 %\r50 %\r100 %", "100 %"),
        (b"half \xff\n", "half \ufffd"),
        (b"x" * 20_000 + b"\nend", "end"),
    ],
)
def test_the_last_line_with_something_in_it(tmp_path, written, said):
    path = tmp_path / "stderr"
    path.write_bytes(written)
    with path.open("rb") as file:
        assert last_line(file.fileno()) == said
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 0


def test_it_is_what_a_child_said_last(tmp_path):
    with (tmp_path / "stderr").open("w+b") as errors:
        subprocess.run([sys.executable, "-c", "import sys; sys.exit('no such luck')"], stderr=errors, check=False)
        assert last_line(errors.fileno()) == "no such luck"
