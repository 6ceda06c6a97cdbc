"""Step make-up: what every scheduler step was made of, and how long it took."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from workbench.i18n import counted, marked, translate
from workbench.trace import Trace
from workbench.ui.charts.data import bar_ends, decimate, hold_s, on_span, timeline
from workbench.ui.charts.knobs import RULES, knob_frames
from workbench.ui.charts.origin import origin, why_missing
from workbench.ui.charts.scales import decades, present
from workbench.ui.charts.step_marks import DECODE, NAME, NAMED, REST, draw_steps
from workbench.ui.charts.theme import Look, finish, message_chart

IDLE = 0.05  # s without a step, from which the line breaks
SHORTEST = 0.01  # ms; shorter steps are drawn as this, since a log axis has no zero


def step_chart(trace: Trace, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """Prefill and decode tokens of every step, stacked against time; prefill coloured by request; step time as a line.

    Each bar is as wide as its step was long. The token axis is a square root, so that four decode tokens stay visible
    beside a prefill of thousands. Where there are more steps than pixels, the largest and the longest of each
    bucket are drawn.

    Args:
        trace: the run.
        look: size, theme and shared domains (``y_domain`` tokens, ``y2_domain`` ms).
    """
    look = on_span(look or Look(), trace)
    steps = timeline(trace)
    where = origin(trace)
    if steps.empty:
        return message_chart(look, name=NAME, subtitle=where, message=why_missing(trace, marked("No step records")))
    names = prefilling(trace)
    rules = knob_frames(trace, look)
    bars, times, drawn = _thin(steps, trace.batch, names, look, look.limit - RULES * bool(rules))
    chart = draw_steps(
        present(bars=bars, times=times) | rules,
        look,
        names=names,
        rest=bool((bars["kind"] == REST).any()),
        tokens=look.y_domain or (0, 1.3 * float(steps["tokens"].max())),
        span=look.y2_domain or decades(steps["ms"]),
    )
    prefill, decode = int(steps["prefill_tokens"].sum()), int(steps["decode_tokens"].sum())
    made = translate(
        "{steps} · {prefill:,} prefill and {decode:,} decode tokens",
        steps=counted("{n:,} step", "{n:,} steps", len(steps)),
        prefill=prefill,
        decode=decode,
    )
    lines = [f"{where} · {made}"]
    if drawn < len(steps):
        lines.append(
            translate(
                "{drawn:,} of {all:,} steps drawn: the largest and the longest of each bucket",
                drawn=drawn,
                all=len(steps),
            )
        )
    longest = steps.loc[steps["ms"].idxmax()]
    return finish(
        chart,
        look,
        name=NAME,
        subtitle=lines,
        description=(
            translate("Bars of decode and prefill tokens per scheduler step against time, with step time as a line.")
            + translate(
                " The longest step took {ms:,.0f} ms with {tokens:,} tokens.",
                ms=longest["ms"],
                tokens=longest["tokens"],
            )
        ),
    )


def prefilling(trace: Trace, most: int = NAMED) -> list[str]:
    """The requests with the most prefill tokens, largest first, down to a twentieth of all."""
    batch = trace.batch
    batch = batch[batch["prefill"].fillna(value=False).astype(bool)]
    sums = batch.groupby("request")["tokens"].sum().nlargest(most)
    return [str(name) for name in sums[sums >= batch["tokens"].sum() / 20].index]


def _thin(
    steps: pd.DataFrame, batch: pd.DataFrame, names: list[str], look: Look, limit: int
) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Bars and the step-time line, together at most ``limit`` rows, and how many steps they show."""
    ask = limit
    while True:
        kept = decimate(steps, "start", ["tokens", "ms"], ask)
        reach = hold_s(kept, steps)
        bars, times = _bars(kept, batch, names, look, reach), _times(kept, reach)
        rows = len(bars) + len(times)
        if rows <= limit or ask <= 2:
            return bars, times, len(kept)
        ask = max(2, int(ask * min(0.95, limit / rows)))


def _bars(steps: pd.DataFrame, batch: pd.DataFrame, names: list[str], look: Look, reach: float) -> pd.DataFrame:
    """Rectangles, decode at the bottom, then the named prefills, then the rest of the step's prefill."""
    inside = batch[batch["step"].isin(steps["step"]) & batch["request"].isin(names) & batch["prefill"].astype(bool)]
    named = inside.pivot_table(index="step", columns="request", values="tokens", aggfunc="sum", fill_value=0)
    wide = pd.DataFrame({DECODE: steps["decode_tokens"].fillna(0).astype(int).to_numpy()}, index=steps["step"])
    for name in names:
        wide[name] = named[name].reindex(wide.index).fillna(0).astype(int) if name in named else 0
    rest = steps["prefill_tokens"].fillna(0).astype(int).to_numpy() - wide[names].sum(axis=1).to_numpy()
    wide[REST] = np.maximum(rest, 0)
    tops = wide.cumsum(axis=1)
    ends = bar_ends(steps, look, reach)
    parts = [
        pd.DataFrame(
            {
                "t": steps["start"].to_numpy(),
                "t2": ends,
                "y": (tops[kind] - wide[kind]).to_numpy(),
                "y2": tops[kind].to_numpy(),
                "kind": kind,
                "tokens": wide[kind].to_numpy(),
                "step": steps["step"].to_numpy(),
                "ms": steps["ms"].round(2).to_numpy(),
            }
        )
        for kind in wide
    ]
    bars = pd.concat(parts, ignore_index=True)
    return bars[bars["tokens"] > 0].round({"t": 4, "t2": 4})


def _times(steps: pd.DataFrame, reach: float) -> pd.DataFrame:
    """The step-time line: level during a step, broken where the engine was idle."""
    start, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    following = np.append(start[1:], np.inf)
    idle = following - end > max(IDLE, reach)
    on = pd.DataFrame({"t": start, "ms": np.maximum(steps["ms"].to_numpy(), SHORTEST)})
    close = pd.DataFrame({"t": end[idle], "ms": on["ms"].to_numpy()[idle]})
    off = pd.DataFrame({"t": end[idle] + 1e-4, "ms": np.nan})
    return pd.concat([on, close, off]).sort_values("t", kind="stable").round({"t": 4, "ms": 2})
