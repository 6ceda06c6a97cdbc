"""An engine process from start to end, with fake engines: whoever is killed, nothing is left."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import threading
from fcntl import ioctl
from pathlib import Path
from termios import FIONREAD
from types import SimpleNamespace

import pytest

from workbench.engine import guard
from workbench.engine.bounded_log import BoundedLog
from workbench.engine.process import EngineProcess
from workbench.proc import descendants, identity, is_alive, is_same

CHILDREN = ("--child", "--name one", "--child", "--name two")


def test_an_engine_runs_and_ends_with_nothing_left(lab):
    process = lab.start(*CHILDREN, ready=3)
    assert process.running
    assert is_alive(process.pid)
    assert not process.wait(0)
    record = json.loads(lab.record(process.label).read_text())
    assert record["engine"] == identity(process.pid)
    assert record["owner"] == identity(os.getpid())
    assert is_same(record["guard"])
    assert record["label"] == process.label
    assert len(lab.left(process.label)) == 3 + 2  # processes; record and folder
    process.stop()
    assert lab.left(process.label) == []  # at once: stop() returns when all is over
    assert not process.running
    assert process.wait(0)
    assert process.exit_code == -signal.SIGTERM
    assert process.error is None
    assert lab.text(process).count("ready") == 3  # the log stays


def test_stop_may_be_called_again_and_by_several_threads(lab):
    process = lab.start(*CHILDREN, ready=3)
    threads = [threading.Thread(target=process.stop) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert lab.left(process.label) == []
    process.stop()
    process.mark_ready()  # a start that was overtaken by a stop says this to a guard that is gone


def test_the_leader_may_end_its_children_before_anybody_else_is_told(lab):
    process = lab.start("--slow-term", "--child", "--name child --slow-term", ready=2)
    process.stop()
    told = re.findall(r"^(\w+ (?:TERM|done))$", lab.text(process), re.MULTILINE)
    assert told == ["leader TERM", "leader done", "child TERM", "child done"]
    assert process.exit_code == 0


@pytest.mark.parametrize("detached", [(), ("--detached",)], ids=["same session", "own sessions"])
def test_those_that_ignore_sigterm_are_killed(lab, detached):
    process = lab.start("--ignore-term", "--child", "--ignore-term --name child", *detached, ready=2, grace_s=0.5)
    process.stop()
    assert "leader TERM" in lab.text(process)
    assert "child TERM" in lab.text(process)
    assert process.exit_code == -signal.SIGKILL
    assert lab.left(process.label) == []


def test_a_grandchild_in_its_own_session_whose_parent_is_gone_is_found(lab):
    orphan = "--leave --detached --child=--name=orphan"
    process = lab.start(*("--child", orphan), ready=3)
    process.stop()
    assert lab.left(process.label) == []


def test_children_of_a_killed_leader_are_ended(lab):
    process = lab.start(*CHILDREN, "--detached", ready=3)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10)
    assert process.exit_code == -signal.SIGKILL
    assert lab.nothing_left(process.label)


def test_an_engine_that_exits_at_once_leaves_its_code_and_its_last_words(lab):
    process = lab.start("--exit", "3", ready=0)
    assert process.wait(10)
    assert process.exit_code == 3
    assert not process.running
    assert lab.text(process).endswith("last words\n")
    assert lab.nothing_left(process.label)


@pytest.mark.parametrize("argv", [["/no/such/engine"], ["/"]], ids=["missing", "a folder"])
def test_a_command_that_cannot_be_run_is_an_error(lab, argv):
    process = lab.start(argv=argv, ready=0)
    assert process.wait(10)
    assert argv[0] in process.error
    assert process.pid is None
    assert process.exit_code is None
    assert lab.nothing_left(process.label)


def test_a_log_that_cannot_be_opened_is_an_error(lab):
    process = lab.start(ready=0, log=lab.root / "nowhere" / "engine.log")
    assert process.wait(10)
    assert "nowhere" in process.error
    assert lab.nothing_left(process.label)


def test_the_log_is_bounded_and_ends_with_the_last_line(lab):
    process = lab.start("--lines", "12000", ready=1)  # 12 MB
    files = sorted(lab.root.glob(f"{process.label}.log*"))
    assert [file.name for file in files] == [f"{process.label}.log", f"{process.label}.log.1"]
    assert all(0 < file.stat().st_size <= 4 << 20 for file in files)
    text = files[1].read_text() + files[0].read_text()
    numbers = [int(number) for number in re.findall(r"^line (\d+) x{1000}$", text, re.MULTILINE)]
    assert numbers == list(range(numbers[0], 12000))  # nothing lost at the turn
    assert text.endswith(f"leader ready {process.pid}\n")


def test_a_log_that_cannot_be_turned_loses_lines_and_no_engine(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    log = BoundedLog(folder / "engine.log")
    log.write(b"x" * (4 << 20))
    (folder / "engine.log").unlink()
    folder.rmdir()
    for _ in range(3):
        log.write(b"more")
    assert not folder.exists()


def test_a_key_that_the_engine_prints_is_not_in_its_log(lab):
    key = "a-key-nobody-sees"
    order = lab.order("--name", key)  # it says its name
    order["env"]["VLLM_API_KEY"] = key
    process = EngineProcess(**order)
    lab.started.append(process)
    assert lab.until(lambda: " ready " in lab.text(process))
    process.stop()
    assert lab.text(process).startswith("HIDDEN ready ")
    assert key not in lab.text(process)


def test_an_engine_that_writes_without_end_can_be_stopped(lab):
    process = lab.start("--flood", "--ignore-term", ready=0, grace_s=0.5)
    assert lab.until(process.log.with_name(f"{process.label}.log.1").exists)
    process.stop()
    assert process.exit_code == -signal.SIGKILL
    assert lab.left(process.label) == []


@pytest.mark.timeout(60)
def test_one_look_at_the_output_comes_to_an_end_though_the_output_does_not(tmp_path):
    one = guard.Guard({"owner": os.getpid()})
    one._log = BoundedLog(tmp_path / "engine.log")
    with Path("/dev/zero").open("rb") as endless:
        one._engine = SimpleNamespace(stdout=endless)
        one._drain()
    assert 0 < (tmp_path / "engine.log").stat().st_size <= 4 << 20


OWNER = """
import json, sys, time
from pathlib import Path
from workbench.engine.process import EngineProcess
order = json.loads(sys.argv[1])
process = EngineProcess(**order | {"folder": Path(order["folder"]), "log": Path(order["log"])})
print(process._guard.pid, flush=True)
if sys.argv[2] == "stay":
    time.sleep(600)
"""


@pytest.fixture
def owner(lab):
    """Starts another process that owns a fake engine; returns it, its guard's pid and the engine's label."""
    owners = []

    def start(*arguments, ready=1, then="stay"):
        order = lab.order(*arguments)
        one = subprocess.Popen(
            [sys.executable, "-c", OWNER, json.dumps(order, default=str), then], stdout=subprocess.PIPE, text=True
        )
        owners.append(one)
        guarding = int(one.stdout.readline())
        if ready:
            assert lab.until(lambda: order["log"].exists() and order["log"].read_text().count(" ready ") >= ready)
        return one, guarding, order["label"]

    yield start
    for one in owners:
        one.kill()
        one.wait()
        one.stdout.close()


def test_nothing_outlives_an_owner_that_was_killed(lab, owner):
    one, guarding, label = owner(*CHILDREN, "--detached", ready=3)
    assert len(lab.left(label)) == 3 + 2
    os.kill(one.pid, signal.SIGKILL)
    one.wait()
    assert lab.nothing_left(label)
    assert lab.until(lambda: not is_alive(guarding))


def test_nothing_outlives_an_owner_that_was_killed_and_not_yet_waited_for(lab, owner):
    one, _, label = owner("--ignore-term")
    os.kill(one.pid, signal.SIGKILL)  # a zombie until the test's end
    assert lab.nothing_left(label)


def test_nothing_outlives_an_owner_that_just_leaves(lab, owner):
    one, _, label = owner(*CHILDREN, ready=0, then="leave")
    assert one.wait(10) == 0
    assert lab.nothing_left(label)


def test_the_owner_ends_what_a_killed_guard_has_left(lab):
    process = lab.start(*CHILDREN, "--detached", ready=3)
    os.kill(process._guard.pid, signal.SIGKILL)
    assert process.wait(10)
    assert not process.running
    assert lab.nothing_left(process.label)
    assert process.exit_code is None  # nobody was there to see it
    process.stop()


def test_a_guard_that_is_told_to_leave_ends_its_engine_first(lab):
    process = lab.start(*CHILDREN, ready=3)
    os.kill(process._guard.pid, signal.SIGTERM)
    assert process.wait(10)
    assert process.exit_code == -signal.SIGTERM
    assert lab.nothing_left(process.label)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGHUP])
def test_a_guard_stays_when_its_terminal_goes(lab, signum):
    process = lab.start()
    os.kill(process._guard.pid, signum)
    assert not process.wait(1.0)
    assert is_alive(process.pid)


def test_an_engine_gets_the_signals_that_its_guard_does_not_heed(lab):
    status = "import sys; sys.stdout.write(open('/proc/self/status').read())"
    process = lab.start(argv=[sys.executable, "-c", status], ready=0)
    assert process.wait(10)
    ignored = int(re.search(r"SigIgn:\s*(\w+)", lab.text(process))[1], 16)
    assert not ignored & (1 << (signal.SIGHUP - 1) | 1 << (signal.SIGINT - 1) | 1 << (signal.SIGTERM - 1))


@pytest.fixture
def segments():
    names = [Path(f"/dev/shm/workbench-test-{os.getpid()}-{name}") for name in ("leader", "child", "other")]
    yield names
    for name in names:
        name.unlink(missing_ok=True)


def test_shared_memory_of_an_engine_is_freed_and_that_of_others_is_not(lab, segments):
    leader, child, other = segments
    other.write_bytes(b"somebody else's")
    process = lab.start("--segment", str(leader), "--child", f"--name child --segment {child}", ready=2)
    assert leader.exists()
    assert child.exists()
    process.stop()
    assert not leader.exists()
    assert not child.exists()
    assert other.exists()


def test_shared_memory_of_a_killed_leader_is_freed_once_it_was_ready(lab, segments):
    leader, child, _ = segments
    process = lab.start("--segment", str(leader), "--child", f"--name child --segment {child}", ready=2)
    for _ in range(2):  # the guard reads the second only when it is done with the first
        process.mark_ready()
        assert lab.until(lambda: struct.unpack("i", ioctl(process._guard.stdin, FIONREAD, bytes(4))) == (0,))
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10)
    assert not leader.exists()
    assert not child.exists()


def test_a_guard_without_an_order_leaves():
    told = subprocess.run([sys.executable, "-m", "workbench.engine.guard"], input=b"", capture_output=True)
    assert (told.returncode, told.stdout, told.stderr) == (1, b"", b"")


def test_the_tests_leave_no_process_behind(lab):
    process = lab.start()
    guarding = process._guard.pid
    process.stop()
    assert guarding not in descendants(os.getpid(), zombies=True)
