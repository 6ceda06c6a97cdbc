"""Is the meter right? Our client against streams whose token times are known, and other clients on the same streams.

``gap_error_p99_ms``: the worse of 200 streams x 50 events/s on beats of their own and all in step (``workbench
selftest``). ``tokens_lost``: lost or invented, in these and all scripts. ``events_per_s_core``: events a second of the
client's processor time when a server sends 200-byte events as fast as it can, beside ``vllm bench serve`` on the
same stream. ``agreement_*``: how far the medians of ours and of ``vllm bench serve`` are apart on one live engine.

``STREAMS`` (200), ``TOKENS`` (200) and ``FLOOD`` (20000, of each of 8 streams) scale it. ``CLIENTS``
(vllm,guidellm,aiperf) names the others; the last two build environments of their own the first time. ``ROUNDS`` (2, 0
leaves the engine out) is for the live part. Definitions: docs/meter.md.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.parts import meter_others, meter_own, meter_vllm
from benchmarks.parts.meter_agreement import agreement
from benchmarks.parts.meter_rivals import Load, Said, against
from benchmarks.parts.stats import answer, say
from workbench.meter.selftest import selftest
from workbench.meter.stub import Stub

Play = Callable[[Stub, Load, Path], Said]
FLOODED = 8  # streams
OTHERS: dict[str, Play] = {"vllm": meter_vllm.play, "guidellm": meter_others.guidellm, "aiperf": meter_others.aiperf}


def main() -> None:
    """Measure, and print one line."""
    load = Load(int(os.environ.get("STREAMS", "200")), int(os.environ.get("TOKENS", "200")))
    flood = Load(FLOODED, int(os.environ.get("FLOOD", "20000")))
    names = [name for name in os.environ.get("CLIENTS", ",".join(OTHERS)).split(",") if name]
    rounds = int(os.environ.get("ROUNDS", "2"))
    load_before = os.getloadavg()[0]
    say("selftest")
    test = selftest(streams=load.streams)
    cases = [case.as_dict() for case in test.cases]
    with tempfile.TemporaryDirectory(prefix="wb-meter-") as temporary:
        folder = Path(temporary)
        ours_flood = _flood(meter_own.flooded, flood, folder / "flood")
        theirs_flood = _flood(meter_vllm.play, flood, folder / "flood-vllm") if "vllm" in names else None
        clients = {"ours": against(meter_own.paced, load, folder / "ours", "ours")}
        clients |= {name: against(OTHERS[name], load, folder / name, name) for name in names}
        lived: dict[str, Any] = agreement(24, 48, rounds, folder) if rounds else {}
    answer(
        {
            "bench": "meter",
            "gap_error_p99_ms": max((one["gap_error_p99_ms"] or 0.0) for one in cases[-2:]),
            "tokens_lost": sum(one["tokens_lost"] + one["tokens_invented"] for one in cases),
            "events_per_s_core": ours_flood,
            "vllm_bench_events_per_s_core": theirs_flood,
            "times_vllm_bench": ours_flood / theirs_flood if theirs_flood else None,
            "agreement_ttft_pct": lived.get("ttft_pct"),
            "agreement_gap_pct": lived.get("gap_pct"),
            "agreement": lived,
            "trusted": test.trusted,
            "wrong": {one["case"]: one["verdict"] for one in cases if one["verdict"] != "ok"},
            "loads": cases[-2:],
            "clients": clients,
            "load_1min_before": load_before,
            "load_1min": os.getloadavg()[0],
        }
    )


def _flood(play: Play, load: Load, folder: Path) -> float:
    """Events a second of processor time."""
    say(f"{folder.name}: {load.streams} streams of {load.tokens:,} events as fast as they are taken")
    folder.mkdir(parents=True)
    with Stub(0.0) as stub:
        said = play(stub, load, folder)
    assert said.more is not None
    return 1e6 / said.more["cpu_us_an_event"]


if __name__ == "__main__":
    main()
