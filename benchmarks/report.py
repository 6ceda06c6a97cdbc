"""What a report of ten minutes costs: seconds to write it, bytes, seconds to check it again, and rows left out.

The scenario ``interactive``, ten minutes and more on a simulated engine of this CPU, in virtual time: three chats
always in flight and documents among them, some 60,000 gaps. ``RUN=/path/of/a/run`` takes a recorded one. ``BUSY=1``
plays two chats a second and documents of 16K for ten minutes on 8 x H100 instead, some 240,000 gaps.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.parts.stats import answer, say
from workbench.frozen import parse
from workbench.metrics.gaps import Gaps
from workbench.report.html import MOST_BYTES, write_report
from workbench.report.run import ReportRun
from workbench.report.verify import summary_of, verify_report
from workbench.run import RecordedRun
from workbench.session import Workbench
from workbench.workload.scenario import Scenario, load_scenario

_CPU = {"model": "smollm2", "gpu": "cpu", "max_model_len": 4096}
_BUSY = {"model": "llama-3.1-70b", "gpu": "H100", "count": 8, "max_model_len": 32768}


def main() -> None:
    """Play, write, check, print."""
    with tempfile.TemporaryDirectory(prefix="wb-report-") as scratch:
        folder = Path(scratch)
        recorded = RecordedRun(os.environ["RUN"]) if "RUN" in os.environ else _played(folder / "runs")
        say("writing the report")
        begun = time.perf_counter()
        run = ReportRun.of(recorded)
        path = write_report(folder / "report.html", [run], title="ten minutes", question="What does it weigh?")
        written = time.perf_counter()
        problems = verify_report(path, [run])
        checked = time.perf_counter()
        found, gaps = summary_of(path), Gaps.of(run.trace)
        text = path.read_text(encoding="utf-8")
    answer(
        {
            "bench": "report",
            "label": recorded.meta["label"],
            "bytes": found["bytes"],
            "fits": found["bytes"] <= MOST_BYTES,
            "seconds_write": written - begun,
            "seconds_verify": checked - written,
            "charts": found["charts"],
            "gaps": len(gaps.gap_ms),
            "run_s": float(gaps.at_s.max()),
            "thinned": "gaps at evenly spaced ranks" in text,
            "problems": problems,
        }
    )


def _played(runs: Path) -> RecordedRun:
    busy = os.environ.get("BUSY") == "1"
    say("simulating ten minutes")
    scenario = _documents(600.0) if busy else load_scenario("interactive")
    fields: dict[str, Any] = _BUSY if busy else _CPU
    with Workbench(engine="simulated", runs=runs, **fields) as bench:
        bench.start()
        played = bench.run(scenario)
        played.wait()
    return RecordedRun(played.folder)


def _documents(seconds: float) -> Scenario:
    chat = {
        "class": "chat",
        "arrivals": {"kind": "poisson", "rate": 2, "duration_s": seconds},
        "prompt_tokens": {"kind": "lognormal", "median": 200, "p99": 1500, "max": 2000},
        "output_tokens": 200,
    }
    document = {
        "class": "document",
        "priority": 2,
        "arrivals": {"kind": "poisson", "rate": 0.1, "duration_s": seconds},
        "prompt_tokens": 16_000,
        "output_tokens": 50,
    }
    return parse(Scenario, {"name": "busy", "seed": 7, "slo": {"gap_ms": 50}, "streams": [chat, document]})


if __name__ == "__main__":
    main()
