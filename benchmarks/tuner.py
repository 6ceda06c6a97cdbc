"""The tuner against every setting of a grid, live and simulated, and the comparison against itself.

``live.seeds_ok``: of five searches, each with a workload and a sampler seed of its own, those whose pick is within 5 %
of the best feasible goodput of a grid of 24 or more settings that was measured once, at no more than a third of the
grid's engine-seconds. ``live.pick_vs_best``: the median search's pick over the grid's best, both as the grid measured
them. ``live.engine_seconds_share``: of the search that took most. The same under ``simulated`` on 8 x H100 at a fifth.
``aa_difference_rate``: comparisons of a setting with itself that show a difference. ``planted_found``: of ten planted
slowdowns of 10 %, those that are found. ``PARTS`` (live,simulated,compare) says what is measured.
"""

from __future__ import annotations

import os
from typing import Any

from benchmarks.parts.stats import answer, say

_PARTS = ("simulated", "live", "compare")


def main() -> None:
    """Measure, print."""
    asked = [name.strip() for name in os.environ.get("PARTS", ",".join(_PARTS)).split(",") if name.strip()]
    unknown = [name for name in asked if name not in _PARTS]
    if unknown or not asked:
        raise SystemExit(f"tuner: got PARTS={','.join(unknown)!r}, expected some of {','.join(_PARTS)}")
    figures: dict[str, Any] = {"bench": "tuner"}
    for name in asked:
        say(f"part {name}")
        figures |= _measure(name)
    answer(figures)


def _measure(name: str) -> dict[str, Any]:
    if name == "simulated":
        from benchmarks.parts.tuner_simulated import simulated

        return {"simulated": simulated()}
    if name == "live":
        from benchmarks.parts.tuner_live import live

        return {"live": live()}
    from benchmarks.parts.tuner_compare import compare

    return compare()


if __name__ == "__main__":
    main()
