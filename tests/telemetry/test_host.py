"""Host memory: of real processes, and of made-up files."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from workbench.telemetry.host import HostMemory, ProcessPss, ProcessRss, Session
from workbench.telemetry.sources import host_sources

PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def child():
    """A process that says when it runs and ends when its input ends."""
    code = "import sys; b = bytearray(30_000_000); print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        process.stdout.readline()
        yield process
        process.kill()


def end(process):
    process.stdin.close()
    process.wait(timeout=60)


def test_rss_agrees_with_psutil(child):
    rss = psutil.Process(child.pid).memory_info().rss
    got = ProcessRss("engine", [child.pid]).read()
    assert got.note is None
    assert abs(got.bytes - rss) < 5_000_000
    assert got.bytes > 30_000_000


def test_pss_is_at_most_rss(child):
    pss, rss = ProcessPss("pss", [child.pid]).read(), ProcessRss("rss", [child.pid]).read()
    assert 30_000_000 < pss.bytes <= rss.bytes + 1_000_000


def test_sum_over_processes(child):
    both = ProcessRss("both", [child.pid, os.getpid()]).read().bytes
    assert both > ProcessRss("one", [os.getpid()]).read().bytes + 30_000_000 - 5_000_000


@pytest.mark.parametrize("kind", [ProcessRss, ProcessPss])
def test_an_ended_process_holds_nothing_and_no_process_is_na(child, kind):
    alone, both = kind("alone", [child.pid]), kind("both", [child.pid, os.getpid()])
    before = both.read().bytes
    assert alone.read().bytes > 0
    end(child)
    assert alone.read().note == "n/a (all of its processes have ended)"
    assert 0 < both.read().bytes < before


def test_a_zombie_has_ended(child):
    source = ProcessRss("engine", [child.pid])
    assert source.read().bytes > 0
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and still in the table
    assert source.read().note == "n/a (all of its processes have ended)"


def test_no_process_yet():
    assert ProcessRss("engine", list).read().note == "n/a (no process to read yet)"


def test_a_pid_used_again_is_not_taken_for_the_old_process(tmp_path):
    folder = tmp_path / "77"
    folder.mkdir()
    (folder / "statm").write_text("10 4 1 1 0 1 0\n")
    source = ProcessRss("engine", [77], tmp_path)
    assert source.read().bytes == 4 * PAGE
    (folder / "statm").write_text("")
    assert source.read().bytes is None
    (folder / "statm").write_text("10 9 1 1 0 1 0\n")
    assert source.read().note == "n/a (all of its processes have ended)"


@pytest.mark.parametrize(("kind", "file"), [(ProcessRss, "statm"), (ProcessPss, "smaps_rollup")])
def test_a_process_that_may_not_be_read_makes_the_sum_na(monkeypatch, kind, file):
    def refuse(self, pid):
        raise PermissionError(13, "Permission denied", file)

    monkeypatch.setattr(kind, "_size", refuse)
    assert kind("engine", [1]).read().note == "n/a (no permission to read the memory of process 1)"


def test_files_are_closed(child):
    def held():
        return [t for t in map(_target, os.scandir("/proc/self/fd")) if t.endswith(f"/{child.pid}/statm")]

    pids = [child.pid]
    source = ProcessRss("engine", lambda: pids)
    source.read()
    source.read()
    assert len(held()) == 1
    pids.clear()
    source.read()
    assert not held()
    pids.append(child.pid)
    source.read()
    del source
    gc.collect()
    assert not held()


def _target(entry):
    try:
        return str(Path(entry.path).readlink())
    except OSError:
        return ""


def test_session(child):
    now = [0.0]
    session = Session(child.pid, refresh_s=1.0, clock=lambda: now[0])
    assert session() == [child.pid]
    end(child)
    assert session() == [child.pid]
    now[0] = 1.0
    assert session() == []


def test_no_session_has_no_processes():
    assert ProcessRss("engine", Session(0)).read().note == "n/a (no process to read yet)"


def test_host_memory(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal:  1000 kB\nMemFree: 5 kB\nMemAvailable:    400 kB\n")
    assert HostMemory(proc=tmp_path).read().bytes == 400 * 1024
    assert HostMemory("used", "used", tmp_path).read().bytes == 600 * 1024
    (tmp_path / "meminfo").write_text("MemTotal:  1000 kB\n")
    assert HostMemory(proc=tmp_path).read().note.startswith("n/a (this kernel does not say")


def test_host_memory_here():
    available, used = HostMemory().read().bytes, HostMemory("used", "used").read().bytes
    assert 0 < available < psutil.virtual_memory().total
    assert 0 < used < psutil.virtual_memory().total


def test_host_sources():
    names = [s.name for s in host_sources([os.getpid()])]
    assert names[:2] == ["host engine rss", "host available"]
    assert "host engine pss" not in names
    sources = host_sources([os.getpid()], pss_every_s=1.0)
    assert sources[2].name == "host engine pss"
    assert all(s.read().bytes > 0 for s in sources)
