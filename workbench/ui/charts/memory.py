"""Memory against time: what each step needed, what the engine holds, and what that is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import altair as alt
import pandas as pd

from workbench.i18n import marked, translate
from workbench.trace import Trace
from workbench.ui.charts.data import bar_ends, decimate, hold_s, known, on_span, timeline
from workbench.ui.charts.knobs import RULES, knob_frames
from workbench.ui.charts.memory_marks import ACTIVATION, NAME, PARTS, draw_memory
from workbench.ui.charts.origin import origin, why_missing
from workbench.ui.charts.scales import present
from workbench.ui.charts.theme import Look, finish, message_chart
from workbench.units import GIB, MIB

MISSING = marked("No memory peak per step")
RESIDENT = "host engine rss"  # the sampler's name of what the engine's processes hold


def memory_chart(trace: Trace, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """Activation peak of every step against time, MiB: what the step needed and gave back.

    On the right axis, GiB: device memory in use (without a device, what the engine's processes hold) as a line, and
    where it is known a stacked bar of what the engine's memory is made of.

    Args:
        trace: the run.
        look: size, theme and shared domains (``y_domain`` MiB, ``y2_domain`` GiB).
    """
    look = on_span(look or Look(), trace)
    steps = timeline(trace)
    where = origin(trace)
    if not known(steps, "activation_mib"):
        return message_chart(look, name=NAME, subtitle=where, message=why_missing(trace, MISSING))
    measured = steps[steps["activation_mib"].notna()]
    rules = knob_frames(trace, look)
    samples, what = _samples(trace)
    levels = _levels(decimate(samples, "t_s", ["bytes"], look.limit // 4, by="source"))
    peak = measured.loc[measured["activation_mib"].idxmax()]
    split = pd.DataFrame(stacked((trace.meta.get("engine") or {}).get("memory_split"), float(peak["activation_bytes"])))
    kept = decimate(measured, "start", ["activation_mib"], look.limit - RULES * bool(rules) - len(levels) - len(split))
    peaks = pd.DataFrame(
        {
            "t": kept["start"].round(4),
            "t2": bar_ends(kept, look, hold_s(kept, measured)).round(4),
            "mib": kept["activation_mib"].round(3),
            "tokens": kept["tokens"],
            "step": kept["step"],
        }
    )
    held = max([0.0, *(levels["gib"] if len(levels) else ()), *(split["y2"] if len(split) else ())])
    chart = draw_memory(
        present(peaks=peaks, levels=levels, split=split) | rules,
        look,
        span=look.y_domain or (0.0, 1.15 * float(peaks["mib"].max()) or 1.0),
        held=look.y2_domain or (0.0, 1.15 * held or 1.0),
        what=what,
        parts=list(split["part"]) if len(split) else [],
    )
    top = translate(
        "peak {mib:,.1f} MiB in a step of {tokens:,} tokens", mib=peak["activation_mib"], tokens=peak["tokens"]
    )
    lines, words = [f"{where} · {top}"], []
    if len(samples):
        most = samples["bytes"].max() / MIB
        words.append(translate("{what} up to {most:,.0f} MiB (line)", what=translate(what), most=most))
    if len(split):
        parts = [f"{translate(part)} {mib:,.0f}" for part, mib in zip(split["part"], split["mib"], strict=True)]
        words.append(translate("bar: {parts} MiB", parts=translate(", ").join(parts)))
    if words:
        lines.append(" · ".join(words))
    if len(measured) < len(steps):
        lines.append(
            translate("{n:,} of {all:,} steps without a measurement", n=len(steps) - len(measured), all=len(steps))
        )
    if len(kept) < len(measured):
        lines.append(
            translate("{kept:,} of {all:,} steps drawn: the largest of each bucket", kept=len(kept), all=len(measured))
        )
    return finish(
        chart, look, name=NAME, subtitle=lines, description=describe(what if len(levels) else "", len(split) > 0)
    )


def describe(line: str, split: bool) -> str:
    """The chart for screen readers.

    Args:
        line: what the line is, empty without one.
        split: whether there is a bar of what memory is made of.
    """
    text = translate("Bars of the activation memory peak of each scheduler step against time")
    if line:
        text += translate(", {line} as a line", line=translate(line))
    if split:
        text += translate(", a stacked bar at the right of what the engine's memory is made of")
    return text + translate(".")


def lines_of(sources: Iterable[str]) -> tuple[frozenset[str], str]:
    """Which memory samples the line shows, and what it is called.

    Device memory in use, of each device; without one what the engine's processes hold.
    """
    found = set(sources)
    devices = {name for name in found if name.endswith(" used") and not name.startswith("host ")}
    return (
        (frozenset(devices), marked("device used")) if devices else (frozenset(found & {RESIDENT}), marked("resident"))
    )


def stacked(split: Mapping[str, Any] | None, activation_bytes: float) -> list[dict[str, Any]]:
    """What the engine's memory is made of, as far as it is known: rows ``part``, ``y``, ``y2`` (GiB), ``mib``.

    Args:
        split: bytes under ``weights_bytes``, ``kv_bytes``, ``graphs_bytes``; none has no rows.
        activation_bytes: largest activation peak so far.
    """
    rows, below = [], 0.0
    for part, key in PARTS.items() if split else ():
        size = activation_bytes if part == ACTIVATION else float((split or {}).get(key) or 0)
        if size > 0:
            rows.append(
                {"part": part, "y": round(below / GIB, 4), "y2": round((below + size) / GIB, 4)}
                | {"mib": round(size / MIB, 1)}
            )
            below += size
    return rows


def _samples(trace: Trace) -> tuple[pd.DataFrame, str]:
    samples = trace.memory
    samples = samples[samples["bytes"].notna()]
    names, what = lines_of(samples["source"].dropna().unique())
    return samples[samples["source"].isin(names)], what


def _levels(samples: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "t": samples["t_s"].round(4),
            "gib": (samples["bytes"].astype(float) / GIB).round(4),
            "source": samples["source"],
        }
    )
