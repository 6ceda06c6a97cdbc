"""Who a process is: a pid alone does not say."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from workbench import proc

SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def child():
    one = subprocess.Popen([sys.executable, "-c", SLEEP])
    yield one
    one.kill()
    one.wait()


def until(what, timeout_s=10.0):
    deadline = time.monotonic() + timeout_s
    while not (value := what()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return value


def test_identity_is_pid_start_and_boot(child):
    who = proc.identity(child.pid)
    assert who["pid"] == child.pid
    seconds = who["started"] / os.sysconf("SC_CLK_TCK") + psutil.boot_time()
    assert seconds == pytest.approx(psutil.Process(child.pid).create_time(), abs=1.5)  # psutil rounds the boot time
    assert who["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert proc.is_same(who)


@pytest.mark.parametrize("change", [{"started": 1}, {"boot": "another"}, {"pid": 2**22 + 1}])
def test_another_start_boot_or_pid_is_another_process(child, change):
    assert not proc.is_same(proc.identity(child.pid) | change)


def test_a_process_that_was_never_there_is_never_the_same():
    who = proc.identity(2**22 + 1)  # above the largest pid of Linux
    assert who["started"] == 0
    assert not proc.is_same(who)


def test_a_zombie_and_then_nothing(child):
    who = proc.identity(child.pid)
    child.kill()
    assert until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    assert not proc.is_same(who)
    assert not proc.is_alive(child.pid)
    assert proc.started(child.pid) is None
    assert child.pid not in proc.descendants(os.getpid())
    assert child.pid in proc.descendants(os.getpid(), zombies=True)
    child.wait()
    assert child.pid not in proc.descendants(os.getpid(), zombies=True)
    assert not proc.is_alive(child.pid)


def test_descendants_are_parents_before_children():
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}], start_new_session=True)"
    top = subprocess.Popen([sys.executable, "-c", code])
    try:
        assert until(lambda: len(proc.descendants(top.pid)) == 1)
        below = proc.descendants(os.getpid())
        assert below.index(top.pid) < below.index(proc.descendants(top.pid)[0])
    finally:
        for pid in [*proc.descendants(top.pid), top.pid]:
            os.kill(pid, 9)
        top.wait()


def test_a_name_with_brackets_and_spaces_does_not_shift_the_fields(tmp_path):
    odd = tmp_path / "a) Z 1 (b"
    odd.symlink_to(sys.executable)
    one = subprocess.Popen([str(odd), "-c", SLEEP])
    try:
        assert until(lambda: ") Z 1 (" in Path(f"/proc/{one.pid}/stat").read_text())
        assert proc.is_alive(one.pid)
        assert one.pid in proc.descendants(os.getpid())
        assert proc.is_same(proc.identity(one.pid))
    finally:
        one.kill()
        one.wait()


def test_labelled_needs_the_whole_mark():
    mark = f"mark-{os.getpid()}"
    one = subprocess.Popen([sys.executable, "-c", SLEEP], env=os.environ | {"WORKBENCH_TEST": mark})
    try:
        assert until(lambda: proc.labelled("WORKBENCH_TEST", mark) == [one.pid])
        assert proc.labelled("WORKBENCH_TEST", mark[:-1]) == []
        assert proc.labelled("TEST", mark) == []
    finally:
        one.kill()
        one.wait()
    assert proc.labelled("WORKBENCH_TEST", mark) == []


def test_shared_memory_names_what_is_mapped():
    segment = Path(f"/dev/shm/workbench test {os.getpid()}")
    name = str(segment)
    with segment.open("w+b") as file:
        try:
            file.truncate(4096)
            memory = mmap.mmap(file.fileno(), 4096)
            assert name in proc.shared_memory(os.getpid())
        finally:
            segment.unlink()
    assert name in proc.shared_memory(os.getpid())  # unlinked but mapped: named without "(deleted)"
    memory.close()
    assert name not in proc.shared_memory(os.getpid())
    assert proc.shared_memory(2**22 + 1) == set()


def test_processes_of_a_session_by_what_stands_behind_the_name(tmp_path, monkeypatch):
    monkeypatch.setattr(proc, "_PROC", tmp_path)
    for pid, stat in {5: "5 (a) Z 9 (b) S 1 4 42 0", 6: "6 (dead) Z 1 4 42 0", 1: "1 (init) S 0 0 0 0"}.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{stat} -1\n")
    assert proc.in_session(42) == [5]
    assert proc.in_session(0) == []
