"""Recompute or swap: what it costs to bring the KV of a preempted context back, against its length."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from workbench import metrics
from workbench.i18n import marked, translate
from workbench.metrics.crossover import crossings
from workbench.trace import Trace
from workbench.ui.charts.origin import origin
from workbench.ui.charts.scales import decades, powers, y_axis
from workbench.ui.charts.theme import Look, finish, message_chart

NAME = marked("Recompute or swap")
RECOMPUTE, SWAP = marked("recompute"), marked("swap")
_SHAPES, _DASHES = {RECOMPUTE: "square", SWAP: "circle"}, {RECOMPUTE: [1, 0], SWAP: [6, 3]}


def crossover_chart(costs: Trace | pd.DataFrame, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """Seconds to compute a context again and to copy its KV back from the host, against its tokens; both axes are logs.

    A dotted rule stands at each length where the two cost the same. The heading says of both curves whether they were
    measured or follow from published figures. A curve that nothing is known of is not drawn, and named.

    Args:
        costs: a run, or rows as :func:`workbench.metrics.crossover` makes them.
        look: size and theme; ``x_domain`` is tokens, ``y_domain`` seconds.
    """
    look = look or Look(height=260)
    where = origin(costs) if isinstance(costs, Trace) else ""
    table = metrics.crossover(costs) if isinstance(costs, Trace) else costs
    known = {way: _floats(table, f"{way}_s") for way in (RECOMPUTE, SWAP)}
    there = [way for way, seconds in known.items() if seconds.notna().any()]
    sources = [f"{translate(way)}{translate(': ')}{_source(table, way)}" for way in (RECOMPUTE, SWAP)]
    if not there:
        return message_chart(
            look,
            name=NAME,
            subtitle=where or translate("no costs"),
            message=translate(
                "No cost of a recompute or a swap in this trace:\nno prefill was measured and no link is known."
            ),
        )
    reach = table.attrs.get("measured_to")
    rows = pd.concat(
        [pd.DataFrame({"tokens": table["tokens"], "seconds": known[way], "way": way}).dropna() for way in there],
        ignore_index=True,
    )
    # A recompute longer than any prompt that was measured is extrapolated.
    rows["beyond"] = (rows["way"] == RECOMPUTE) & (rows["tokens"] > (reach or np.inf))
    x_span = look.x_domain or (0.9 * float(rows["tokens"].min()), 1.1 * float(rows["tokens"].max()))
    y_span = look.y_domain or decades(rows["seconds"])
    chart = alt.layer(*_curves(rows, there, x_span, y_span, look), *_equal(crossings(table), x_span, look))
    if rows["beyond"].any():
        sources[0] += translate("; hollow: extrapolated beyond {reach:,.0f} tokens", reach=reach)
    heading = " · ".join(text for text in (where, _summary(table)) if text)
    return finish(
        chart,
        look,
        name=NAME,
        subtitle=[heading, *sources],
        description=translate(
            "Lines: seconds to bring a context back against its tokens, both logarithmic. {said}.",
            said=translate("; ").join([_summary(table), *sources]),
        ),
    )


def _summary(table: pd.DataFrame) -> str:
    """Which way is cheaper and where that changes, as the table says it of itself."""
    found = crossings(table)
    if said := table.attrs.get("summary"):
        return translate(said)
    return _equal_at(found[0]) if found else translate("no crossing")


def _equal_at(tokens: float) -> str:
    return translate("equal at {tokens:,.0f} tokens", tokens=tokens)


def _source(table: pd.DataFrame, way: str) -> str:
    """Where the figures of a way come from."""
    if said := table.attrs.get(f"{way}_source"):
        return translate(said)
    named = table[f"{way}_source"].dropna().unique() if f"{way}_source" in table else []
    return translate(" and ").join(map(str, named)) or translate("source not stated")


def _floats(table: pd.DataFrame, name: str) -> pd.Series:
    """A column as floats; one that is not there is all NaN."""
    if name not in table:
        return pd.Series(np.nan, index=table.index, dtype=float)
    return table[name].astype(float)


def _curves(
    rows: pd.DataFrame, there: list[str], x_span: tuple[float, float], y_span: tuple[float, float], look: Look
) -> list[alt.Chart]:
    """A line and its marks for each way."""
    colours = {RECOMPUTE: look.palette.prefill, SWAP: look.palette.kv}
    legend = alt.Legend(title=None, symbolDash=[1, 0]) if look.legend else None
    ticks = [2.0**n for n in range(40) if x_span[0] <= 2.0**n <= x_span[1]]

    def scale(values: dict[str, object]) -> alt.Scale:
        return alt.Scale(domain=there, range=[values[way] for way in there])

    base = alt.Chart(rows).encode(
        x=alt.X(
            "tokens:Q",
            scale=alt.Scale(type="log", base=2, domain=list(x_span), nice=False),
            axis=alt.Axis(
                title=translate("tokens of context (log)"), values=ticks, format=",d", grid=True, labelOverlap="greedy"
            ),
        ),
        y=alt.Y(
            "seconds:Q",
            scale=alt.Scale(type="log", domain=list(y_span), nice=False),
            axis=y_axis(translate("seconds (log)"), format=",~g", values=powers(y_span)),
        ),
        color=alt.Color("way:N", scale=scale(dict(colours)), legend=legend),
    )
    line = base.mark_line(strokeWidth=1.8, clip=True, aria=False).encode(
        strokeDash=alt.StrokeDash("way:N", scale=scale(dict(_DASHES)), legend=None)
    )
    marks = base.mark_point(size=24, opacity=1, clip=True, aria=False).encode(
        fill=alt.condition(
            "datum.beyond", alt.value(look.palette.ground), alt.Fill("way:N", scale=scale(dict(colours)), legend=None)
        ),
        shape=alt.Shape("way:N", scale=scale(dict(_SHAPES)), legend=legend),
        tooltip=["way:N", alt.Tooltip("tokens:Q", format=","), alt.Tooltip("seconds:Q", format=".4~g")],
    )
    return [line, marks]


def _equal(found: list[float], x_span: tuple[float, float], look: Look) -> list[alt.Chart]:
    """A rule at each length of equal cost, with its figure on the side where there is room."""
    inside = [at for at in found if x_span[0] <= at <= x_span[1]]
    if not inside:
        return []
    middle = float(np.sqrt(x_span[0] * x_span[1]))
    rows = pd.DataFrame({"tokens": inside, "label": [_equal_at(at) for at in inside]})
    base = alt.Chart(rows).encode(x="tokens:Q")
    return [
        base.mark_rule(color=look.palette.ink, strokeDash=[1, 3], strokeWidth=1.5, aria=False),
        base.mark_text(
            color=look.palette.ink,
            fontSize=11,
            fontWeight=600,
            baseline="top",
            align=alt.expr(f"datum.tokens > {middle} ? 'right' : 'left'"),
            dx=alt.expr(f"datum.tokens > {middle} ? -6 : 6"),
            aria=False,
        ).encode(y=alt.value(4), text="label:N"),
    ]
