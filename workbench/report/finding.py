"""The finding: what the comparison table says, in one sentence and three figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.config import SLO
from workbench.i18n import counted, marked, translate


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
        return translate("No token gap was measured."), "", []
    worst = max(known, key=lambda i: rows[i]["gap_max_ms"])
    best = min(known, key=lambda i: rows[i]["gap_max_ms"])
    high, low = rows[worst]["gap_max_ms"], rows[best]["gap_max_ms"]
    if worst == best:
        return (
            translate("The longest token gap is {gap}{count}.", gap=_ms(high), count=_above(rows[worst], slo)),
            "",
            [],
        )
    headline = translate(
        "With “{worst}” a stream stands still for up to {high}; with “{best}” for no longer than {low}{less}{price}.",
        worst=labels[worst],
        high=_ms(high),
        best=labels[best],
        low=_ms(low),
        less=_times_less(high, low),
        price=_price(rows[worst].get("long_ttft_s"), rows[best].get("long_ttft_s")),
    )
    tiles = [Tile(translate("Longest token gap"), _ms(high), _ms(low), f"{labels[worst]} → {labels[best]}")]
    before, after = rows[worst].get("long_ttft_s"), rows[best].get("long_ttft_s")
    if before is not None and after is not None:
        tiles.append(
            Tile(translate("Long prompt’s first token"), _s(before), _s(after), f"{labels[worst]} → {labels[best]}")
        )
    peaks = [i for i, row in enumerate(rows) if row.get("peak_activation_mib") is not None]
    if len(peaks) > 1:
        top = max(peaks, key=lambda i: rows[i]["peak_activation_mib"])
        least = min(peaks, key=lambda i: rows[i]["peak_activation_mib"])
        values = [f"{rows[i]['peak_activation_mib']:,.1f} MiB" for i in (top, least)]
        if values[0] != values[1]:
            which = f"{labels[top]} → {labels[least]}"
            tiles.append(Tile(translate("Activation peak of a step"), *values, which))
    return headline, _keeps(labels, rows, known, slo), tiles


def _above(row: Mapping[str, Any], slo: SLO) -> str:
    stalls = row.get("stalls")
    if stalls is None:
        return ""
    return counted(
        "; {n:,} gap above the SLO of {slo}", "; {n:,} gaps above the SLO of {slo}", stalls, slo=_ms(slo.gap_ms)
    )


def _keeps(labels: Sequence[str], rows: Sequence[Mapping[str, Any]], known: Sequence[int], slo: SLO) -> str:
    """Which setting keeps every gap under the SLO and serves the long prompt first."""
    good = [i for i in known if rows[i]["gap_max_ms"] <= slo.gap_ms]
    if not good:
        return translate("No setting keeps every gap under the SLO of {slo}.", slo=_ms(slo.gap_ms))
    timed = [i for i in good if rows[i].get("long_ttft_s") is not None]
    if not timed:
        names = translate(", ").join(f"“{labels[i]}”" for i in good)
        return translate("Every gap under the SLO of {slo}: {names}.", slo=_ms(slo.gap_ms), names=names)
    first = min(timed, key=lambda i: rows[i]["long_ttft_s"])
    comes = translate("its long prompt’s first token comes after {ttft}.", ttft=_s(rows[first]["long_ttft_s"]))
    said = {"first": labels[first], "slo": _ms(slo.gap_ms), "comes": comes}
    if len(good) == 1:
        return translate("Only “{first}” keeps every gap under the SLO of {slo}; {comes}", **said)
    return translate(
        "Of the {good} settings that keep every gap under the SLO of {slo}, “{first}” serves the long prompt first: "
        "{comes}",
        good=len(good),
        **said,
    )


def _times_less(high: float, low: float) -> str:
    ratio = high / low if low else 0.0
    return translate(", {ratio:,.0f} times less", ratio=ratio) if ratio >= 2 else ""


def _price(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    if abs(after - before) < 0.05 * max(before, after):
        return translate(", at the same {after} to the long prompt’s first token", after=_s(after))
    dearer = marked(", but the long prompt’s first token takes {after} instead of {before}")
    cheaper = marked(", and the long prompt’s first token takes only {after} instead of {before}")
    return translate(dearer if after > before else cheaper, after=_s(after), before=_s(before))


def _ms(value: float) -> str:
    return f"{value / 1000:,.1f} s" if value >= 1000 else f"{value:,.0f} ms"


def _s(value: float) -> str:
    return f"{value:,.1f} s" if value >= 1 else f"{value * 1000:,.0f} ms"
