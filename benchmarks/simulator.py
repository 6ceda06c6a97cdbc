"""How fast the simulator is, on the hardware that issue and articles talk about: 8 x H100 with Llama-3.1-70B.

``wall_s_1000``: 1,000 requests of an Azure-like mix, from play to the last row on disk; the slowest mix's median of
``PLAYS`` (3). ``c14_wall_s``: 100 chats of 1K and 10 documents of 64K under four policies, all four together, with the
child up. ``child_cpu_s_1000``: what the child computed for such a play, the mean of all, for machines that do other
things as well. ``rss_mib``: the most memory that the child ever had. ``deterministic``: ten random engines (policies,
swap, prefix cache, closed loops, knob changes) and both loads are equal byte for byte in a second process with another
hash seed.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.parts.simulated_loads import C14_POLICIES, azure, chats_and_documents, random_job
from benchmarks.parts.stats import answer, say
from workbench.frozen import parse
from workbench.simulate import host
from workbench.simulate.engine import SimulatedEngine
from workbench.simulate.host import Simulator
from workbench.simulate.outcome import play_job
from workbench.simulated_config import SimulatedConfig
from workbench.store import RunWriter
from workbench.workload.request import Workload

_MACHINE = {"model": "llama-3.1-70b", "gpu": "H100", "count": 8}
_RANDOM = 10


def main() -> None:
    """Play, measure, print."""
    plays = int(os.environ.get("PLAYS", "3"))
    figures: dict[str, Any] = {"bench": "simulator", "label": "simulated", "cores": os.cpu_count()}
    mixes, load = azure(), chats_and_documents()
    with tempfile.TemporaryDirectory(prefix="wb-sim-bench-") as folder:
        say("8 x H100, 1,000 requests")
        engine = _started({})
        before_s = _cpu_s(engine)
        walls = {
            name: [_wall(engine, mix, Path(folder) / f"{name}{i}") for i in range(plays)] for name, mix in mixes.items()
        }
        figures |= {
            "start_s": engine.startup_s,
            "wall_s_1000": max(statistics.median(some) for some in walls.values()),
            "wall_s_1000_by_mix": {name: statistics.median(some) for name, some in walls.items()},
            "child_cpu_s_1000": (_cpu_s(engine) - before_s) / plays / len(mixes),
            "step_time": engine.setup.label if engine.setup else None,
        }
        peak = _peak_mib(engine)
        engine.stop()
        say("C14 under four policies")
        engine = _started({"max_model_len": 69_632, "max_num_batched_tokens": 69_632})
        by_policy = {}
        for name, knobs in C14_POLICIES.items():
            engine.set_knobs(engine.envelope.defaults.replace(**knobs))
            by_policy[name] = _wall(engine, load, Path(folder) / name)
        figures |= {"c14_wall_s": sum(by_policy.values()), "c14_wall_s_by_policy": by_policy}
        figures["rss_mib"] = max(peak, _peak_mib(engine))
        say("two processes")
        figures["deterministic"] = _deterministic(engine, [*mixes.values(), load])
        engine.stop()
    answer(figures)


def _started(fields: dict[str, Any]) -> SimulatedEngine:
    engine = SimulatedEngine(parse(SimulatedConfig, _MACHINE | fields))
    engine.start()
    return engine


def _wall(engine: SimulatedEngine, workload: Workload, folder: Path) -> float:
    """Seconds on the wall until a play is on disk."""
    begun = time.perf_counter()
    with RunWriter(folder, {"label": engine.label}) as writer:
        play = engine.play(workload, writer)
        play.wait()
        simulated = time.perf_counter() - begun
    seconds = time.perf_counter() - begun
    say(f"{seconds:.2f} s ({simulated:.2f} s to the last row): {play.now_s:.0f} virtual s, {play.output_tokens} tokens")
    return seconds


def _peak_mib(engine: SimulatedEngine) -> float:
    status = Path(f"/proc/{engine._simulator.pid}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _cpu_s(engine: SimulatedEngine) -> float:
    """Seconds that the child has computed: what the wall would say on a machine at rest."""
    stat = Path(f"/proc/{engine._simulator.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def _deterministic(engine: SimulatedEngine, workloads: list[Workload]) -> bool:
    """Whether two fresh processes say the same, byte for byte."""
    if engine.setup is None:
        return False
    step_time = dict(engine.setup.step_time.spec())
    jobs = [random_job(seed, step_time) for seed in range(_RANDOM)]
    jobs += [engine.job_of(workload) for workload in workloads]
    said = []
    for seed in ("1", "4711"):
        host.ENVIRONMENT["PYTHONHASHSEED"] = seed
        simulator = Simulator()
        simulator.start()
        said.append([play_job(simulator, job).as_bytes() for job in jobs])
        simulator.close()
    return said[0] == said[1]


if __name__ == "__main__":
    main()
