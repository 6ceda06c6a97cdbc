"""A local Ray cluster with two workers, one of which is killed in mid-trial. Trials are played by a stand-in.

One test, since a cluster takes long to start on a small machine. ``test_trial_child.py`` has the simulated engine.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import psutil

from workbench.proc import is_alive
from workbench.simulated_config import SimulatedConfig
from workbench.tune.goal import Goal
from workbench.tune.ray.cluster import SOCKETS
from workbench.tune.ray.driver import CLUSTER
from workbench.tune.ray.player import RayPlayer
from workbench.tune.ray.trial_child import RUNS
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Point
from workbench.workload.scenario import load_scenario

BUDGETS = (512, 1024, 2048, 4096)
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
STAND_IN = Path(__file__).parent / "stand_in"


def ours(pid):
    """The processes that a player has started, with their command lines."""
    found = {}
    for one in psutil.Process(pid).children(recursive=True):
        try:
            found[one.pid] = " ".join(one.cmdline())
        except psutil.Error:  # it has just ended
            continue
    return found


def listening(pid):
    found = set()
    for one in [pid, *ours(pid)]:
        try:
            found |= {c.laddr.ip for c in psutil.Process(one).net_connections("tcp") if c.status == "LISTEN"}
        except psutil.Error:
            continue
    return found


def kill_an_actor(child, done, killed):
    """In mid-trial: as soon as a run is being recorded, the actor that it is played for ends by SIGKILL."""
    while not done.wait(0.1):
        for record in Path(tempfile.gettempdir()).glob(f"{RUNS}*/run-*/run.json"):
            played_by = int(record.parent.parent.name.removeprefix(RUNS).split("-")[0])
            if played_by in ours(child):
                actor = psutil.Process(played_by).ppid()
                killed |= {actor: ours(child)[actor], played_by: ours(child)[played_by]}
                os.kill(actor, signal.SIGKILL)
                return


def test_a_killed_actors_trial_is_tried_again_and_all_come_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STAND_IN), os.environ.get("PYTHONPATH", "")]))
    asked = [Asked(n, Point({"budget": budget}), 5) for n, budget in enumerate(BUDGETS)]
    space = Space({}, SimulatedConfig(model="qwen2.5-7b"))
    said = []
    player = RayPlayer(
        load_scenario("chat_and_long"), Goal(), space, address="local", workers=2, runs=tmp_path, tell=said.append
    )
    player.start()
    child, done, killed = player._child.pid, threading.Event(), {}
    killer = threading.Thread(target=kill_an_actor, args=[child, done, killed])
    try:
        assert player.workers == 2
        assert listening(child)
        assert listening(child) <= LOOPBACK
        killer.start()
        results = {one.number: one for one in player.play_many(asked)}
        started = ours(child)
    finally:
        done.set()
        player.close()
        killer.join()

    assert any(line.startswith("ray::TrialWorker") for line in killed.values())
    assert len(player.notes) == 1
    assert "was lost" in player.notes[0]
    assert "tried again, 2 left" in player.notes[0]
    lost = int(player.notes[0].split()[1].rstrip(":"))
    assert sum(line.startswith(f"trial {lost}: worker") for line in said) == 2
    assert {number: (one.state, one.objectives) for number, one in results.items()} == {
        n: ("complete", (budget / 100,)) for n, budget in enumerate(BUDGETS)
    }
    assert player.results() == []  # nothing is under way
    homes = {Path(one.run) for one in results.values()}
    assert homes == set(tmp_path.iterdir())
    assert len(homes) == len(BUDGETS)
    for home in homes:
        assert json.loads((home / "run.json").read_text())["seed"] == 5
        assert (home / "tokens.parquet").read_bytes() == bytes(range(256)) * 100

    deadline = time.monotonic() + 30
    gone = {**started, **killed, child: "the driver"}
    while any(map(is_alive, gone)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert {pid: line for pid, line in gone.items() if is_alive(pid)} == {}
    assert not list(SOCKETS.glob(f"{CLUSTER}{child}-*"))
    left = {path.name.removeprefix(RUNS).split("-")[0] for path in Path(tempfile.gettempdir()).glob(f"{RUNS}*")}
    assert not left & {str(pid) for pid in gone}
