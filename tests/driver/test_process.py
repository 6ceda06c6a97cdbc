"""Nothing hangs and nothing stays when a process of the three (workbench, client, server) goes away."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from workbench.driver.host import DriverProcess
from workbench.errors import EngineDiedError, EngineError, StoreError
from workbench.workload.request import Workload

WORKBENCH = """
import contextlib, sys, time
from workbench.driver.host import DriverProcess
from workbench.workload.request import Request, Workload

class Nowhere:
    def rows(self, table, rows):
        print(table, flush=True)

driver = DriverProcess(int(sys.argv[1]), "key", "stub")
print(driver.pid, driver._folder, flush=True)
if sys.argv[2] == "playing":
    requests = tuple(Request(f"silent/k{i}", "chat", 0, 0.0, (1,), 4) for i in range(50))
    driver.play(Workload(requests), Nowhere(), lambda zero: contextlib.nullcontext(), lambda: None)
time.sleep(600)
"""


def gone(pid, folder, within_s):
    """Whether process and folder go away; ``within_s`` is far above what it takes, so that a slow machine passes."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not folder.exists() and (not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie"):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("state", ["starting", "playing"])
def test_a_killed_workbench_leaves_no_client_and_no_socket(server, state, patience):
    workbench = subprocess.Popen(
        [sys.executable, "-c", WORKBENCH, str(server.port), state], stdout=subprocess.PIPE, text=True
    )
    pid, folder = workbench.stdout.readline().split()
    assert Path(folder).is_dir()
    if state == "playing":
        assert "tokens\n" in iter(workbench.stdout.readline, "")  # the client's lateness may be told before
    workbench.kill()
    workbench.wait()
    assert gone(int(pid), Path(folder), patience)


def test_close_leaves_nothing_and_keeps_what_was_measured(drive, server, start, request_, patience):
    driver = drive(server.port)
    folder = driver._folder
    assert folder.stat().st_mode & 0o777 == 0o700
    play, sink = start(driver, request_("silent/close"), request_("plain/close", 3600.0))
    assert sink.first_token.wait(patience)
    driver.close()
    driver.close()
    assert play.wait(patience)
    assert {name: row["status"] for name, row in sink.by_name.items()} == {
        "silent/close": "cancelled",
        "plain/close": "cancelled",
    }
    assert sink.by_name["silent/close"]["output_tokens"] == 1
    assert not folder.exists()
    assert not psutil.pid_exists(driver.pid)
    with pytest.raises(EngineError, match="the client process was closed"):
        start(driver, request_("plain/after"))


def test_a_killed_client_ends_the_play_with_an_error(drive, server, start, request_, patience):
    driver = drive(server.port)
    play, sink = start(driver, request_("silent/kill"), request_("plain/kill", 3600.0))
    assert sink.first_token.wait(patience)
    os.kill(driver.pid, signal.SIGKILL)
    with pytest.raises(EngineError, match="client process was killed by SIGKILL"):
        play.wait(patience)
    assert play.done
    assert {row["status"] for row in sink.requests} == {"unfinished"}
    assert set(sink.by_name) == {"silent/kill", "plain/kill"}
    with pytest.raises(EngineError, match="start the engine again"):
        start(driver, request_("plain/again"))


def test_a_client_that_cannot_start_says_why(monkeypatch, tmp_path, start, request_, drive, patience):
    (tmp_path / "aiohttp.py").write_text("raise ImportError('no such luck')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    driver = drive(1)
    driver._child.wait(patience)
    with pytest.raises(EngineError, match=r"exit code 1 \(ImportError: no such luck\)"):
        start(driver, request_("a"))


def test_an_order_that_cannot_be_read_ends_the_play_with_its_error(drive, server, start, request_, patience):
    driver = drive(server.port)
    play, sink = start(driver, request_("silent/order"))
    assert sink.first_token.wait(patience)
    driver._child.stdin.write(b"\0\0\0\1\xc1")
    driver._child.stdin.flush()
    with pytest.raises(EngineError, match="DecodeError"):
        play.wait(patience)
    assert len(sink.by_name) == 1


def test_a_killed_server_ends_the_play(drive, own_server, start, request_, patience):
    play, sink = start(drive(own_server.port), *(request_(f"silent/{i}") for i in range(20)))
    assert sink.first_token.wait(patience)
    own_server.stop()
    assert play.wait(patience)
    assert [row["status"] for row in sink.requests] == ["error"] * 20
    assert all(row["error"] and row["done_s"] is not None for row in sink.requests)


@pytest.mark.parametrize("script", ["crash", "proxy", "bad_charset", "mid_error", "cut", "abort"])
def test_where_requests_broke_the_server_is_looked_at_before_the_play_ends(
    drive, server, start, request_, patience, script
):
    dead = []
    play, sink = start(
        drive(server.port),
        request_(f"{script}/fate"),
        died=lambda: dead[0] if dead else None,
        look=lambda: dead.append(EngineDiedError("the engine died")),
    )
    with pytest.raises(EngineDiedError, match="the engine died"):
        play.wait(patience)
    assert sink.by_name[f"{script}/fate"]["status"] == "error"


def test_a_request_that_the_server_finds_wrong_is_no_reason_to_look_at_it(drive, server, start, request_, patience):
    looked, driver = [], drive(server.port)
    names = [f"{script}/wrong" for script in ("too_long", "unauthorised", "redirect", "plain", "stop")]
    play, sink = start(driver, *map(request_, names), look=lambda: looked.append(1))
    assert play.wait(patience)
    assert [sink.by_name[name]["status"] for name in names] == ["error"] * 3 + ["ok"] * 2
    assert looked == []


@pytest.mark.parametrize("reports", [True, False], ids=["client answers", "client hangs"])
def test_a_play_does_not_outlast_its_engine(monkeypatch, drive, server, start, request_, patience, reports):
    monkeypatch.setattr("workbench.driver.host._QUIET_S", 0.3)
    driver, dead = drive(server.port), []
    play, sink = start(
        driver, request_("silent/died"), request_("plain/died", 3600.0), died=lambda: dead[0] if dead else None
    )
    assert sink.first_token.wait(patience)
    if not reports:
        os.kill(driver.pid, signal.SIGSTOP)
    dead.append(EngineDiedError("the engine died"))
    try:
        with pytest.raises(EngineDiedError, match="the engine died"):
            play.wait(patience)
    finally:
        os.kill(driver.pid, signal.SIGCONT)
    assert {row["status"] for row in sink.requests} == {"cancelled" if reports else "unfinished"}
    assert set(sink.by_name) == {"silent/died", "plain/died"}


def test_a_client_out_of_file_descriptors_reports_it_per_request(drive, server, start, request_, patience):
    driver = drive(server.port)
    warm, _ = start(driver, request_("plain/warm"))
    assert warm.wait(patience)
    files = psutil.Process(driver.pid).num_fds() + 10
    resource.prlimit(driver.pid, resource.RLIMIT_NOFILE, (files, files))
    play, sink = start(driver, *(request_(f"steady/5/50/{i}") for i in range(60)))
    assert play.wait(patience)
    errors = [row for row in sink.requests if row["status"] == "error"]
    assert len(sink.by_name) == 60
    assert len(errors) >= 60 - files
    assert all("Too many open files" in row["error"] for row in errors)
    assert {row["status"] for row in sink.requests} == {"ok", "error"}
    after, later = start(driver, request_("plain/after"))
    assert after.wait(patience)
    assert [row["status"] for row in later.requests] == ["ok"]


def test_the_client_may_open_as_many_files_as_the_system_lets_it(drive, server, start, request_, patience):
    driver = drive(server.port)
    play, _ = start(driver, request_("plain/files"))
    assert play.wait(patience)
    assert resource.prlimit(driver.pid, resource.RLIMIT_NOFILE)[0] == resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def test_a_sink_that_fails_ends_the_play_and_the_child_is_told(drive, server, start, request_, patience):
    class Full:
        def rows(self, table, rows):
            raise StoreError("disk full")

    driver = drive(server.port)
    play, _ = start(driver, request_("silent/full"), sink=Full())
    with pytest.raises(StoreError, match="disk full"):
        play.wait(patience)
    after, sink = start(driver, request_("plain/full"))
    assert after.wait(patience)
    assert [row["status"] for row in sink.requests] == ["ok"]
    assert [row["request"] for row in sink.tokens] == ["plain/full"] * 4


def test_a_recording_that_fails_is_the_error_of_the_play(drive, server, request_, recorder, patience):
    @contextlib.contextmanager
    def recording(play):
        raise ValueError("no socket")
        yield

    driver = drive(server.port)
    with pytest.raises(ValueError, match="no socket"):
        driver.play(Workload((request_("plain/rec"),)), recorder(), recording, lambda: None)
    assert "plain/rec" not in server.told()["seen"]
    after = driver.play(
        Workload((request_("plain/rec2"),)), recorder(), lambda play: contextlib.nullcontext(), lambda: None
    )
    assert after.wait(patience)


def test_the_engines_rows_are_taken_before_the_first_request_leaves(drive, server, request_, recorder, patience):
    entered = []

    @contextlib.contextmanager
    def recording(play):
        time.sleep(0.3)  # a busy machine
        entered.append("plain/slow-rec" in server.told()["seen"])
        yield

    driver = drive(server.port)
    play = driver.play(Workload((request_("plain/slow-rec"),)), recorder(), recording, lambda: None)
    assert entered == [False]
    assert play.wait(patience)


def test_a_client_that_was_never_started_leaves_no_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
    with pytest.raises(FileNotFoundError):
        DriverProcess(1, "key", "stub")
    assert list(tmp_path.iterdir()) == []
