"""Does anything grow or get lost under a load? Many streams at once, and 200 for half an hour, against the stub.

Two loads: ``STREAMS`` (1000) for ``WIDE_MINUTES`` (3), and ``LONG_STREAMS`` (200) for ``MINUTES`` (30). Each is played
by the client that plays on every engine, recorded as any run, and fed to the live charts (``PANEL=0`` leaves these out;
no browser looks at them). ``RATE`` is the events a second of each stream; without it 4,000 a second are shared by all.
A machine that cannot carry so many gets what it can: ``events_per_s`` beside ``events_per_s_offered``.

``kernel_rss_growth_mib`` and ``client_rss_growth_mib``: resident memory of this process and of the client's, the median
of the last minute minus that of the second one; the worse load of the two. ``kernel_closing_mib``: how much more it
takes for a moment to close the run. ``bytes_per_token``: size of the run folder. ``unreported_drops``: tokens that the
stub sent, that the run does not hold, and that it does not report either. Definitions: docs/meter.md.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.parts.load_play import play
from benchmarks.parts.stats import answer, say

EVENTS_PER_S = 4000.0


def main() -> None:
    """Play both, and print one line."""
    streams, minutes = int(os.environ.get("STREAMS", "1000")), float(os.environ.get("MINUTES", "30"))
    wide = (streams, float(os.environ.get("WIDE_MINUTES", str(min(3.0, minutes)))))
    long = (int(os.environ.get("LONG_STREAMS", str(min(200, streams)))), minutes)
    panel = os.environ.get("PANEL", "1") != "0"
    load_before = os.getloadavg()[0]
    loads = []
    with tempfile.TemporaryDirectory(prefix="wb-load-") as folder:
        for name, (many, for_minutes) in {"wide": wide, "long": long}.items():
            if many and for_minutes:
                rate = float(os.environ.get("RATE", "0")) or EVENTS_PER_S / many
                loads.append(play(many, for_minutes, rate, Path(folder) / name, panel=panel))
                say(f"{name}: {loads[-1]}")
    answer(
        {
            "bench": "load",
            "streams": max(one["streams"] for one in loads),
            "kernel_rss_growth_mib": _worst(loads, "kernel_rss_growth_mib"),
            "client_rss_growth_mib": _worst(loads, "client_rss_growth_mib"),
            "bytes_per_token": _worst(loads, "bytes_per_token"),
            "unreported_drops": sum(one["unreported_drops"] for one in loads),
            "reported_drops": sum(one["reported_drops"] for one in loads),
            "kernel_closing_mib": _worst(loads, "kernel_closing_mib"),
            "loads": loads,
            "load_1min_before": load_before,
            "load_1min": os.getloadavg()[0],
        }
    )


def _worst(loads: list[dict[str, Any]], name: str) -> float | None:
    known = [one[name] for one in loads if one[name] is not None]
    return max(known, default=None)


if __name__ == "__main__":
    main()
