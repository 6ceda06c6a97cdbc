"""The finding: what the comparison table says, in one sentence and three figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.config import SLO


@dataclass(frozen=True)
class Tile:
    """A big figure: what it is, from, to, and which settings they belong to."""

    name: str
    before: str
    after: str
    settings: str


def finding(labels: Sequence[str], rows: Sequence[Mapping[str, Any]], slo: SLO) -> tuple[str, str, list[Tile]]:
    """Return the headline, a second sentence (may be empty) and the figures below them.

    The headline sets the run with the longest gap against the one whose longest gap is shortest, with the price in
    the long prompt's TTFT. The second sentence names the setting that keeps the SLO with the earliest long prompt.

    Args:
        labels: name of each setting.
        rows: rows of the comparison table, in the same order.
        slo: the promise.
    """
    known = [i for i, row in enumerate(rows) if row.get("gap_max_ms") is not None]
    if not known:
        return "No token gap was measured.", "", []
    worst = max(known, key=lambda i: rows[i]["gap_max_ms"])
    best = min(known, key=lambda i: rows[i]["gap_max_ms"])
    high, low = rows[worst]["gap_max_ms"], rows[best]["gap_max_ms"]
    if worst == best:
        stalls = rows[worst].get("stalls")
        count = (
            "" if stalls is None else f"; {stalls:,} gap{'' if stalls == 1 else 's'} above the SLO of {_ms(slo.gap_ms)}"
        )
        return f"The longest token gap is {_ms(high)}{count}.", "", []
    headline = (
        f"With “{labels[worst]}” a stream stands still for up to {_ms(high)}; with “{labels[best]}” for no longer than "
        f"{_ms(low)}{_times_less(high, low)}{_price(rows[worst].get('long_ttft_s'), rows[best].get('long_ttft_s'))}."
    )
    tiles = [Tile("Longest token gap", _ms(high), _ms(low), f"{labels[worst]} → {labels[best]}")]
    before, after = rows[worst].get("long_ttft_s"), rows[best].get("long_ttft_s")
    if before is not None and after is not None:
        tiles.append(Tile("Long prompt’s first token", _s(before), _s(after), f"{labels[worst]} → {labels[best]}"))
    peaks = [i for i, row in enumerate(rows) if row.get("peak_activation_mib") is not None]
    if len(peaks) > 1:
        top = max(peaks, key=lambda i: rows[i]["peak_activation_mib"])
        least = min(peaks, key=lambda i: rows[i]["peak_activation_mib"])
        values = [f"{rows[i]['peak_activation_mib']:,.1f} MiB" for i in (top, least)]
        tiles.append(Tile("Activation peak of a step", values[0], values[1], f"{labels[top]} → {labels[least]}"))
    return headline, _keeps(labels, rows, known, slo), tiles


def _keeps(labels: Sequence[str], rows: Sequence[Mapping[str, Any]], known: Sequence[int], slo: SLO) -> str:
    """Which setting keeps every gap under the SLO and serves the long prompt first."""
    good = [i for i in known if rows[i]["gap_max_ms"] <= slo.gap_ms]
    if not good:
        return f"No setting keeps every gap under the SLO of {_ms(slo.gap_ms)}."
    timed = [i for i in good if rows[i].get("long_ttft_s") is not None]
    if not timed:
        return f"Every gap under the SLO of {_ms(slo.gap_ms)}: {', '.join(f'“{labels[i]}”' for i in good)}."
    first = min(timed, key=lambda i: rows[i]["long_ttft_s"])
    comes = f"its long prompt’s first token comes after {_s(rows[first]['long_ttft_s'])}."
    if len(good) == 1:
        return f"Only “{labels[first]}” keeps every gap under the SLO of {_ms(slo.gap_ms)}; {comes}"
    return (
        f"Of the {len(good)} settings that keep every gap under the SLO of {_ms(slo.gap_ms)}, “{labels[first]}” serves "
        f"the long prompt first: {comes}"
    )


def _times_less(high: float, low: float) -> str:
    ratio = high / low if low else 0.0
    return f", {ratio:,.0f} times less" if ratio >= 2 else ""


def _price(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    if abs(after - before) < 0.05 * max(before, after):
        return f", at the same {_s(after)} to the long prompt’s first token"
    link = (
        ", but the long prompt’s first token takes"
        if after > before
        else ", and the long prompt’s first token takes only"
    )
    return f"{link} {_s(after)} instead of {_s(before)}"


def _ms(value: float) -> str:
    return f"{value / 1000:,.1f} s" if value >= 1000 else f"{value:,.0f} ms"


def _s(value: float) -> str:
    return f"{value:,.1f} s" if value >= 1 else f"{value * 1000:,.0f} ms"
