"""More than one workbench on a machine, and what a killed one leaves; the engines are stand-ins."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import workbench
from workbench import doctor
from workbench.engine.leftovers import find_leftovers, reap
from workbench.errors import ConfigError
from workbench.store import list_runs, open_run

ROOT = Path(workbench.__file__).parents[1]
HERE = Path(__file__).parent

# A workbench as a notebook's kernel has one: it plays, and waits for a line.
KERNEL = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import stand_in
for owner, name, value in stand_in.patches():
    setattr(owner, name, value)
from workbench import Workbench
from workbench.workload.scenario import Scenario

stream = {"class": "chat", "arrivals": {"kind": "at_once", "count": 4}, "prompt_tokens": 20, "output_tokens": 4000}
with Workbench(sys.argv[2], runs=sys.argv[3]) as bench:
    bench.start()
    run = bench.run(Scenario.model_validate({"name": sys.argv[4], "streams": [stream]}))
    while run.progress[0] < 200 or run.elapsed_s < 2:  # all but the last second is on the disk
        time.sleep(0.02)
    engine = bench.engine
    guard = engine._held.process._guard.pid
    port = engine._held.server._port
    said = {"label": engine._held.process.label, "port": port, "guard": guard, "run": str(run.folder)}
    print(json.dumps(said), flush=True)
    sys.stdin.readline()
    told = run.progress[0]
    while run.progress[0] < told + 200:
        time.sleep(0.02)
    bench.stop_load()
print("ended", flush=True)
"""


class Kernel:
    def __init__(self, place, name):
        command = [sys.executable, "-c", KERNEL, str(HERE), str(place.model), str(place.runs), name]
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ready(self):
        """Wait until it plays; what it says of itself."""
        self.said = json.loads(self.process.stdout.readline())
        return self

    def end(self):
        return self.process.communicate("\n", timeout=60)[0].strip()

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def kernel(place):
    started = []

    def start(name):
        started.append(Kernel(place, name))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


def test_of_two_workbenches_one_is_killed_and_the_other_goes_on(place, kernel, books):
    one, two = kernel("one"), kernel("two")
    one.ready()
    two.ready()
    place.mark()
    assert place.labels == {one.said["label"], two.said["label"]}
    assert one.said["port"] != two.said["port"]
    assert find_leftovers() == [], "engines in use are nobody's leftovers"
    one.kill()
    mine = [path for path in place.segments if one.said["label"] in path]
    assert len(mine) == 1
    place.until(lambda: not Path(mine[0]).exists(), "shared memory of the killed one is still there")
    record = place.state / "engines" / f"{one.said['label']}.json"
    place.until(lambda: not record.exists(), "the record of the killed one is still there")
    assert two.end() == "ended"
    assert place.nothing_left()
    status = {Path(c.said["run"]).name: s for c, s in ((one, "interrupted"), (two, "cancelled"))}
    assert dict(list_runs(place.runs)[["id", "status"]].itertuples(index=False)) == status
    for killed in (one, two):
        trace = open_run(killed.said["run"])
        assert trace.meta["scenario"] == ("one" if killed is one else "two")
        assert len(books(trace, 4000, cut=True)) > 100
        assert set(trace.requests["class"]) == {"chat"}, "what was planned is known of a run that was cut off"
    three = kernel("three").ready()
    assert three.end() == "ended"
    assert place.nothing_left()


def test_a_port_that_another_workbench_has_is_refused_before_anything_starts(place, kernel, stand_in, one_line):
    stand_in()
    other = kernel("other").ready()
    place.mark()
    bench = place.bench(port=other.said["port"])
    with pytest.raises(ConfigError) as caught:
        bench.start()
    assert f"port: got '{other.said['port']}', expected a free port on 127.0.0.1" in one_line(caught.value)
    assert {path.stem for path in (place.state / "engines").glob("*.json")} == {other.said["label"]}
    assert other.end() == "ended"
    assert place.nothing_left()


def test_what_a_crash_of_workbench_and_guard_leaves(place, kernel, stand_in, books):
    """As the kernel's memory killer, or a power cut of a container, would: nobody is left to clean up."""
    stand_in()
    one = kernel("one").ready()
    place.mark()
    os.kill(one.said["guard"], signal.SIGSTOP)  # so that it does not outlive the workbench by a moment
    one.kill()
    os.kill(one.said["guard"], signal.SIGKILL)
    (found,) = place.until(find_leftovers, "the leftover was not found")
    assert found.label == one.said["label"]
    assert len(found.pids) == 1
    (seen,) = [check for check in doctor.examine(lambda _what: None, defaults=False) if check.name == "leftovers"]
    assert "workbench reap" in seen.fix
    bench = place.bench()
    bench.start()  # it is in nobody's way
    run = bench.run(place.scenario(output=30))
    assert run.wait(place.patience)
    assert len(books(run.trace, 30)) == 120
    (still,) = find_leftovers()
    assert still.label == found.label, "the engine in use is none"
    assert reap(still, grace_s=0.5) == 1
    assert bench.engine.state == "ready"
    bench.stop()
    assert place.nothing_left()
    trace = open_run(one.said["run"])
    assert trace.meta["status"] == "interrupted"
    assert len(books(trace, 4000, cut=True)) > 100
