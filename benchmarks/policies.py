"""What the policies do, on two live engines, hot: the figures that the policy lab promises.

``vip_ttft_ratio``: TTFT of a VIP that meets eight chats and a running prompt of 3,000 tokens, under ``qos`` over that
under stock ``priority`` (``PAIRS``, 4, of plays in turn; with interval). ``target_gap_share_ok``: gaps under 300 ms
beside a long prompt under ``target_gap``; ``target_gap_prefill_ratio``: how fast the prompt is computed then, against
the best fixed budget that keeps 95 % under 300 ms (``ROUNDS``, 3, in turn, after a search). ``vip_preemptions``: under
``qos`` on the engine of the scenario ``thrash``. ``stalls_explained_share``: gaps above 200 ms in all these plays whose
cause is known. ``us_over_stock``: what a policy adds to ``schedule()`` at 32 running requests, in virtual time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.parts.stats import answer, paired_ratio, say
from benchmarks.parts.target_gap import closed_loop, scenario, until_prompt_is_through
from workbench import metrics
from workbench.config import SLO
from workbench.run import Run
from workbench.session import Workbench
from workbench.workload.scenario import Scenario, Setting, load_scenario

VIP = "vip"  # their class in both scenarios
_COST = [sys.executable, "-m", "benchmarks.parts.policy_cost"]


class Stalls:
    """Counts the stalls of all plays, and those whose cause is known."""

    def __init__(self) -> None:
        self.count = self.explained = 0

    def add(self, run: Run) -> None:
        """Take a run that has ended."""
        causes = metrics.stalls(run.trace, SLO())["cause"]
        self.count += len(causes)
        self.explained += int((causes != "unknown").sum())

    @property
    def share(self) -> float | None:
        """None where nothing stalled."""
        return self.explained / self.count if self.count else None


def main() -> None:
    """Play, measure, print."""
    pairs, rounds = int(os.environ.get("PAIRS", "4")), int(os.environ.get("ROUNDS", "3"))
    stalls = Stalls()
    figures: dict[str, Any] = {"bench": "policies"}
    with tempfile.TemporaryDirectory(prefix="wb-policies-") as folder:
        overtakes, thrash = load_scenario("vip_overtakes"), load_scenario("thrash")
        with Workbench.of(overtakes, runs=Path(folder)) as bench:
            say("starting an engine")
            bench.start()
            first = bench.run(scenario(overtakes.engine, 600), setting=Setting.of({"budget": 256}))  # faults memory in
            until_prompt_is_through(first)
            figures |= _overtaking(bench, overtakes, stalls, pairs)
            figures |= closed_loop(bench, stalls.add, rounds)
            figures["label"] = bench.engine.label
        with Workbench.of(thrash, runs=Path(folder)) as bench:
            say("starting an engine that thrashes")
            bench.start()
            figures |= _thrashing(bench, thrash, stalls)
    figures |= {"stalls_explained_share": stalls.share, "stalls": stalls.count}
    say("cost of schedule(), in virtual time")
    cost = subprocess.run(_COST, stdout=subprocess.PIPE, check=True).stdout  # a process of its own, since it has vllm
    answer(figures | {"us_over_stock": json.loads(cost.splitlines()[-1])["us_over_stock"]})


def _setting(load: Scenario, name: str) -> Setting:
    return next(one for one in load.settings if one.name == name)


def _overtaking(bench: Workbench, load: Scenario, stalls: Stalls, pairs: int) -> dict[str, Any]:
    ttft: dict[str, list[float]] = {"qos": [], "priority": []}
    for pair in range(pairs):
        for name in ("qos", "priority") if pair % 2 else ("priority", "qos"):
            run = bench.run(load, setting=_setting(load, name))
            run.wait()
            stalls.add(run)
            requests = run.requests
            ttft[name].append(float(requests.loc[requests["class"] == VIP, "ttft_s"].mean()))
        say(f"VIP {pair + 1}/{pairs}: qos {ttft['qos'][-1]:.2f} s, priority {ttft['priority'][-1]:.2f} s")
    ratio, interval = paired_ratio(ttft["qos"], ttft["priority"])
    return {
        "vip_ttft_ratio": ratio,
        "vip_ttft_ratio_ci95": list(interval),
        "vip_ttft_s": {name: sum(seconds) / len(seconds) for name, seconds in ttft.items()},
        "pairs": pairs,
    }


def _thrashing(bench: Workbench, load: Scenario, stalls: Stalls) -> dict[str, Any]:
    """Preemptions under qos, and under stock for comparison: a pool that no longer thrashes would prove nothing."""
    found: dict[str, int] = {}
    for name in ("chunked", "qos"):
        run = bench.run(load, setting=_setting(load, name))
        run.wait()
        stalls.add(run)
        victims = metrics.preemptions(run.trace)["class"]
        found |= {name: len(victims), f"vip {name}": int((victims == VIP).sum())}
        say(f"thrash, {name}: {len(victims)} preemptions, {found[f'vip {name}']} of VIPs")
    return {
        "vip_preemptions": found["vip qos"],
        "preemptions": found["qos"],
        "vip_preemptions_stock": found["vip chunked"],
        "preemptions_stock": found["chunked"],
    }


if __name__ == "__main__":
    main()
