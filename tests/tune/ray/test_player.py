"""Errors around a Ray cluster that come before there is one; ``test_ray.py`` starts one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time

import pytest

from workbench.errors import EngineError, InputError
from workbench.simulated_config import SimulatedConfig
from workbench.tune.goal import Goal
from workbench.tune.ray.address import environment
from workbench.tune.ray.cluster import QUICK
from workbench.tune.ray.lines import LineChild
from workbench.tune.ray.player import RayPlayer
from workbench.tune.ray.remote import Job, Order, error_facts, error_of, one_line
from workbench.tune.ray.worker import clean_environment
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Point, Result, UntilStopped
from workbench.workload.scenario import load_scenario

SCENARIO = load_scenario("chat_and_long")
GOAL = Goal(limits={"gap_p99_ms": 200.0})
CONFIG = SimulatedConfig(model="qwen2.5-7b")
SPACE = Space({"budget": (512, 1024)}, CONFIG)
SILENT = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


def player(tmp_path, **more):
    return RayPlayer(SCENARIO, GOAL, SPACE, runs=tmp_path, **more)


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize(
    "address", ["ray://head:10001", "head", "head:", ":6379", "head:0", "head:70000", "head:x", ""]
)
def test_what_is_no_address_is_refused(tmp_path, address):
    with pytest.raises(InputError, match="local, auto, or HOST:PORT"):
        player(tmp_path, address=address).start()


def test_an_address_at_which_nobody_answers_is_refused_in_one_line(tmp_path):
    address = f"127.0.0.1:{closed_port()}"
    with pytest.raises(InputError) as bad:
        player(tmp_path, address=address).start()
    said = str(bad.value)
    assert said.startswith(f"--ray: got '{address}', expected a Ray cluster that answers")
    assert "Connection refused" in said
    assert "ray start --head" in said
    assert "\n" not in said


def test_a_server_that_is_no_ray_is_given_up(tmp_path, monkeypatch):
    """Ray itself waits for minutes and then ends its process, which is not ours."""
    monkeypatch.setattr("workbench.tune.ray.address._JOIN_S", 2.0)
    server = subprocess.Popen([sys.executable, "-c", SILENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    address = f"127.0.0.1:{server.stdout.readline().strip()}"
    mine = player(tmp_path, address=address)
    try:
        with pytest.raises((EngineError, InputError), match="Ray") as bad:
            mine.start()
        assert "\n" not in str(bad.value)
        assert mine._child is None
    finally:
        server.kill()
        server.wait()


def test_without_ray_the_way_to_get_it_is_said(tmp_path, monkeypatch):
    (tmp_path / "ray.py").write_text("raise ImportError('no module named ray')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(InputError, match=r'pip install "ray>=2\.60"') as bad:
        player(tmp_path / "runs", address="local").start()
    assert "\n" not in str(bad.value)


def test_ray_is_imported_in_the_child_only():
    code = "import sys, workbench.tune.ray.player; sys.exit('ray' in sys.modules or 'vllm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_nothing_is_reported_and_a_cluster_of_ours_needs_a_token_that_nobody_has():
    local, again, joined = (environment(kind) for kind in ("local", "local", "head:6379"))
    assert local["RAY_USAGE_STATS_ENABLED"] == joined["RAY_USAGE_STATS_ENABLED"] == "0"
    assert local["RAY_AUTH_MODE"] == "token"
    assert len(local["RAY_AUTH_TOKEN"]) == 64
    assert local["RAY_AUTH_TOKEN"] != again["RAY_AUTH_TOKEN"]
    assert "RAY_AUTH_TOKEN" not in joined  # it has one of its own, in the environment or in ~/.ray


def test_the_engine_does_not_inherit_what_is_for_ray():
    ray = {"RAY_ADDRESS": "x", "OMP_NUM_THREADS": "1", "PYTHONPATH": f"/tmp/y/{QUICK}:/src"}
    mine = {"CUDA_VISIBLE_DEVICES": "2,3", "PATH": "/bin"}
    assert clean_environment(ray | mine) == mine | {"PYTHONPATH": "/src"}


def test_a_job_and_an_order_travel_as_json():
    job = Job(CONFIG, SCENARIO, GOAL, 8)
    assert Job.of_dict(json.loads(json.dumps(job.as_dict()))) == job
    order = Order(Asked(3, Point({"budget": 256, "policy": "qos"}, {"block_size": 32}), 7), 0.01, 1.5)
    assert Order.of_dict(json.loads(json.dumps(order.as_dict()))) == order
    assert (
        Order(Asked(0, Point({}, {"b": 1, "a": 2}), 0)).start_up
        == Order(Asked(1, Point({}, {"a": 2, "b": 1}), 0)).start_up
    )


def test_errors_travel_in_one_line():
    bad = InputError("budget", 1, "more", "raise it")
    assert str(error_of(json.loads(json.dumps(error_facts(bad))))) == str(bad)
    assert str(error_of(error_facts(EngineError("it died")))) == "it died"
    assert str(error_of(error_facts(RuntimeError("a\ntraceback\nlast words\n")))) == "RuntimeError: last words"
    assert one_line(RuntimeError()) == "RuntimeError"


def test_a_worker_takes_what_the_largest_engine_of_the_space_needs(tmp_path):
    config = SimulatedConfig(model="qwen2.5-7b", gpu="H100", tensor_parallel_size=2)
    space = Space({"budget": (512,)}, config, {"tensor_parallel_size": (1, 4)})
    assert RayPlayer(SCENARIO, GOAL, space, runs=tmp_path)._job.ranks == 4


def test_a_child_ends_when_its_parent_is_killed(tmp_path):
    code = (
        "import sys, time; from workbench.tune.ray.lines import LineChild\n"
        "print(LineChild('workbench.tune.ray.trial_child').pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 120
    while os.path.exists(f"/proc/{pid}/exe") and time.monotonic() < deadline:  # noqa: PTH110  a zombie has no exe
        time.sleep(0.1)
    assert not os.path.exists(f"/proc/{pid}/exe")  # noqa: PTH110


def test_a_child_that_cannot_play_says_why_in_one_line():
    child = LineChild("workbench.tune.ray.trial_child")
    try:
        job = Job(CONFIG, SCENARIO, GOAL).as_dict()
        job["config"]["gpu"] = ["no", "such"]
        child.tell({"job": job, "cpus": 0})
        fatal = child.hear(120)["fatal"]
        assert fatal["input"]["what"] == "gpu"
        assert child.hear(30) is None
    finally:
        child.close(30)


class Wire:
    """In place of the driver's process: keeps what it is told, and answers with what ``says`` makes of it. NOT RAY."""

    def __init__(self, says):
        self.orders, self._says, self._answers = [], says, []

    def tell(self, message):
        self.orders.append(message["play"])
        self._answers += self._says(message["play"])

    def hear(self, timeout_s=None):
        if not self._answers:
            raise TimeoutError
        return self._answers.pop(0)

    def close(self, timeout_s):
        pass


def played(number, state="complete"):
    return {"result": Result(number, Point({"budget": 512}), 7, state, objectives=(1.0,)).as_dict()}


def test_one_that_is_waited_for_goes_to_its_end_and_one_of_many_may_be_stopped_early(tmp_path):
    mine = player(tmp_path, error_rate=0.01)
    mine._child = wire = Wire(lambda order: [played(order["asked"]["number"])])
    mine.submit(Asked(0, Point({"budget": 512}), 7), beat=1.5)
    assert [one.number for one in mine.results()] == [0]
    assert mine.play(Asked(1, Point({"budget": 512}), 7), UntilStopped(lambda: False)).state == "complete"
    assert [(one["error_rate"], one["beat"]) for one in wire.orders] == [(0.01, 1.5), (None, None)]


def test_one_that_is_waited_for_is_given_up_when_somebody_stops_the_study(tmp_path):
    mine = player(tmp_path)
    mine._child = Wire(lambda order: [played(0)] if order["asked"]["number"] else [])
    mine.submit(Asked(0, Point({"budget": 512}), 7))
    looks = iter([False, True])
    stopped = mine.play(Asked(1, Point({"budget": 1024}), 7), UntilStopped(lambda: next(looks)))
    assert (stopped.number, stopped.state, stopped.error) == (1, "interrupted", "the study was stopped")
    assert [one.number for one in mine.results(0.0)] == [0], "what came for another trial meanwhile is not lost"
