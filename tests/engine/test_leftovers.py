"""Engines that outlived both owner and guard, with fake engines."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.engine import leftovers
from workbench.engine.command import ENV_LABEL, server_environment
from workbench.engine.leftovers import find_leftovers, new_log, reap
from workbench.engine.probe import knob_page, wire
from workbench.proc import identity, is_alive, pid_space


@pytest.fixture
def abandon(lab):
    """Leaves fake processes behind, as a guard and an owner that were both killed would; returns the label."""
    started = []

    def leave(*kinds, environment=True, **fields):
        order = lab.order()
        env = order["env"] if environment else {"PATH": os.environ["PATH"]}
        for kind in kinds:
            one = subprocess.Popen([*lab.fake, *kind.split()], env=env, stdout=subprocess.PIPE, start_new_session=True)
            started.append(one)
            one.stdout.readline()
        dead = subprocess.Popen([sys.executable, "-c", ""])
        guard = identity(dead.pid)
        dead.wait()
        record = lab.record(order["label"])
        record.parent.mkdir(parents=True, exist_ok=True)
        written = {
            "label": order["label"],
            "engine": identity(started[-1].pid) if kinds else None,
            "guard": guard,
            "owner": guard,
            "pid_space": pid_space(),
            "folder": str(order["folder"]),
            "log": str(order["log"]),
        }
        record.write_text(json.dumps(written | fields))
        return order["label"]

    yield leave
    for one in started:
        one.kill()
        one.wait()
        one.stdout.close()


def test_what_a_dead_guard_left_is_found_and_ended(lab, abandon):
    label = abandon("--name one", "--ignore-term --name two")
    with socket.socket(socket.AF_UNIX) as bound, contextlib.chdir(lab.root / f"wb-{label}"):
        Path(knob_page.NAME).write_bytes(b"knobs")
        Path(wire.HELLO).write_bytes(b"hello")
        bound.bind("records.sock")  # from inside: the path of a socket may not be long
    (found,) = find_leftovers()
    assert found.label == label
    assert len(found.pids) == 2
    assert reap(found, grace_s=0.5) == 2
    assert lab.left(label) == []
    assert find_leftovers() == []


def test_shared_memory_of_a_leftover_is_freed(abandon):
    segment = Path(f"/dev/shm/workbench-test-{os.getpid()}-left")
    try:
        abandon(f"--name one --segment {segment}")
        assert segment.exists()
        reap(find_leftovers()[0])
        assert not segment.exists()
    finally:
        segment.unlink(missing_ok=True)


def test_guard_and_owner_killed_together(lab):
    """As `kill -9 -1` or the kernel's memory killer would: the next start or `workbench reap` cleans up."""
    order = lab.order("--detached", "--child", "--name one")
    code = (
        "import json, sys, os, signal, pathlib\n"
        "from workbench.engine.process import EngineProcess\n"
        "order = json.loads(sys.argv[1])\n"
        "for name in ('folder', 'log'): order[name] = pathlib.Path(order[name])\n"
        "process = EngineProcess(**order)\n"
        "while order['log'].read_text().count(' ready ') < 2: pass\n"
        "os.kill(process._guard.pid, signal.SIGSTOP)\n"  # so that it does not outlive us by a moment
        "print(process._guard.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    owner = subprocess.run(
        [sys.executable, "-c", code, json.dumps(order, default=str)], stdout=subprocess.PIPE, text=True, timeout=60
    )
    assert owner.returncode == -signal.SIGKILL
    os.kill(int(owner.stdout), signal.SIGKILL)
    assert lab.until(find_leftovers)
    (found,) = find_leftovers()
    assert len(found.pids) == 2
    reap(found)
    assert lab.nothing_left(order["label"])


def test_an_engine_in_use_is_left_alone(lab):
    process = lab.start("--child", "--name one", ready=2)
    assert find_leftovers() == []
    assert process.running


def test_a_record_with_nothing_behind_it_is_cleared_away(lab, abandon):
    label = abandon()
    (found,) = find_leftovers()
    assert found.pids == ()
    assert reap(found) == 0
    assert lab.left(label) == []


@pytest.mark.parametrize("text", ["", '{"label": "ab', "[]", "null", '{"label": "ab"}', '{"label": "a", "guard": 7}'])
def test_a_record_that_cannot_be_read_is_dropped(lab, text):
    record = lab.record("broken")
    record.parent.mkdir(parents=True)
    record.write_text(text)
    assert find_leftovers() == []
    assert not record.exists()


def test_a_guard_of_another_boot_is_gone_whatever_runs_under_its_pid(abandon):
    abandon(guard=identity(os.getpid()) | {"boot": "another"})
    (found,) = find_leftovers()
    assert found.pids == ()


def test_a_pid_that_was_used_again_guards_nothing_and_gets_no_signal(abandon, lab):
    other = lab.start()
    mine = identity(other.pid)
    label = abandon(guard=mine | {"started": mine["started"] - 1}, engine=mine | {"started": mine["started"] - 1})
    found = next(one for one in find_leftovers() if one.label == label)
    assert reap(found) == 0
    assert is_alive(other.pid)


def test_an_engine_of_another_container_is_left_to_it(lab, abandon):
    label = abandon(pid_space="pid:[1]")
    assert find_leftovers() == []
    assert lab.record(label).exists()


def test_only_processes_with_the_mark_are_ended(abandon):
    abandon("--name stranger", environment=False)
    (found,) = find_leftovers()
    assert found.pids == ()
    assert reap(found) == 0


def test_a_title_that_vllm_sets_does_not_hide_the_mark(lab):
    env = server_environment(str(lab.root), "some-label", "key", "cpu", {"PATH": os.environ["PATH"]})
    code = (
        "import setproctitle, time; setproctitle.setproctitle('VLLM::EngineCore')\n"
        "print('named', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE) as one:
        one.stdout.readline()
        assert Path(f"/proc/{one.pid}/cmdline").read_bytes().startswith(b"VLLM::EngineCore")
        assert leftovers.labelled(ENV_LABEL, "some-label") == [one.pid]
        one.kill()


def test_a_record_that_names_a_folder_of_something_else_does_no_harm(lab, abandon):
    precious = lab.root / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years")
    label = abandon(folder=str(precious))
    reap(find_leftovers()[0])
    assert (precious / "thesis.tex").read_text() == "years"
    assert not lab.record(label).exists()
    shutil.rmtree(lab.root / f"wb-{label}")


def test_logs_are_kept_for_twenty_engines(lab):
    for number in range(25):
        log = new_log(f"engine{number:02}")
        log.write_text("x")
        os.utime(log, (number, number))
    names = sorted(path.name for path in log.parent.iterdir())
    assert names == [f"engine{number:02}.log" for number in range(5, 25)]
    assert log.parent.stat().st_mode & 0o777 == 0o700
