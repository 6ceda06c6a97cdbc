"""The trade of a sweep: what a smaller chunk does to the gaps, and what it costs the long prompt."""

from __future__ import annotations

import altair as alt
import pandas as pd

from workbench.i18n import counted, marked, translate
from workbench.ui.charts.scales import decades, powers, y_axis
from workbench.ui.charts.theme import Look, config

NAME = marked("Gaps against speed")
PEAK, USUAL = marked("P99 during the prefill"), marked("P50 before it")
_COLUMNS = ("largest chunk", "TTFT s", "prefill tokens/s", "gap before P50 ms", "gap during P99 ms")


def trade_chart(table: pd.DataFrame, slo_ms: float, origin: str, look: Look | None = None) -> alt.VConcatChart:
    """Gaps (P99 during the prefill, P50 before it, ms), TTFT (s) and prefill rate (tokens/s) against the largest chunk.

    The chunk axis is a logarithm to the base 2. A setting of the chunk cap is a hollow mark; all have names on hover.

    Args:
        table: a row a run, as :func:`workbench.claims.long_prompts` makes it.
        slo_ms: longest gap that is promised; a dashed line.
        origin: where the numbers come from; stands in the heading.
        look: theme and width; ``height`` is that of the upper plot.

    Raises:
        KeyError: a column is missing.
    """
    look = look or Look()
    rows = table.reset_index()[["setting", "chunk", *_COLUMNS]]
    rows = rows.assign(knob=["chunk" if one else "budget" for one in rows["chunk"]])
    rows.columns = ["setting", "cap", "size", "ttft", "rate", "usual", "p99", "knob"]
    colours = look.palette
    edges = [2.0**n for n in range(int(rows["size"].min()).bit_length() - 1, int(rows["size"].max()).bit_length() + 1)]
    scale = alt.Scale(type="log", base=2, domain=[edges[0], edges[-1]], nice=False)
    labels = alt.Axis(
        title=translate("largest chunk of the prompt in one step, tokens (log)"), values=edges, format=",d"
    )
    bare = alt.Axis(title=None, labels=False, values=edges)
    x, last_x = alt.X("size:Q", scale=scale, axis=bare), alt.X("size:Q", scale=scale, axis=labels)
    gaps = rows.melt(["setting", "size", "knob"], ["p99", "usual"], "figure", "ms")
    gaps["figure"] = gaps["figure"].map({"p99": PEAK, "usual": USUAL})
    span = decades([gaps["ms"], pd.Series([slo_ms])])
    y = alt.Y(
        "ms:Q",
        scale=alt.Scale(type="log", domain=list(span), nice=False),
        axis=y_axis(translate("gap, ms (log)"), format=",~f", values=powers(span)),
    )
    dash = alt.StrokeDash("figure:N", scale=alt.Scale(domain=[PEAK, USUAL], range=[[1, 0], [5, 3]]), title=None)
    upper = alt.layer(
        alt.Chart(pd.DataFrame({"ms": [slo_ms]}))
        .mark_rule(color=colours.alert, strokeDash=[6, 4], aria=False)
        .encode(y=y),
        *_series(gaps, x, y, colours.decode, colours.ground, dash),
    )
    lower = [
        alt.layer(*_series(rows, at, _linear(field, title, rows), colours.prefill, colours.ground))
        for at, field, title in ((x, "ttft", translate("TTFT, s")), (last_x, "rate", translate("prefill, tokens/s")))
    ]
    chart = alt.vconcat(
        upper.properties(width=look.width, height=look.height),
        *(plot.properties(width=look.width, height=look.height * 2 // 3) for plot in lower),
        title=alt.TitleParams(
            text=look.title or translate(NAME),
            subtitle=[
                translate(
                    "{origin} · {settings} · gaps of the streams beside the prompt · dashed rule: SLO {slo:,.0f} ms",
                    origin=translate(origin),
                    settings=counted("{n} setting", "{n} settings", len(rows)),
                    slo=slo_ms,
                ),
                translate("filled: budget · hollow: chunk cap"),
            ],
        ),
        description=translate(
            "Gaps during the prefill, time to first token and prefill rate against the largest chunk: {settings} "
            "({origin}).",
            settings=counted("{n} setting", "{n} settings", len(rows)),
            origin=translate(origin),
        ),
        spacing=14,
    ).resolve_scale(fill="independent", strokeDash="independent")
    return chart if look.bare else chart.configure(**config(colours))


def _linear(field: str, title: str, rows: pd.DataFrame) -> alt.Y:
    top = 1.1 * float(rows[field].max()) or 1.0
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=y_axis(title, tickCount=3))


def _series(
    rows: pd.DataFrame, x: alt.X, y: alt.Y, colour: str, ground: str, dash: alt.StrokeDash | None = None
) -> list[alt.Chart]:
    """A line through the budgets, and a mark for every setting."""
    line = alt.Chart(rows[rows["knob"] == "budget"]).mark_line(color=colour, strokeWidth=1.4, aria=False)
    line = line.encode(x=x, y=y, strokeDash=dash) if dash is not None else line.encode(x=x, y=y)
    marks = (
        alt.Chart(rows)
        .mark_point(color=colour, size=42, opacity=1, strokeWidth=1.6, aria=False)
        .encode(
            x=x,
            y=y,
            fill=alt.Fill("knob:N", scale=alt.Scale(domain=["budget", "chunk"], range=[colour, ground]), legend=None),
            tooltip=["setting:N", "size:Q", y.shorthand],
        )
    )
    return [line, marks]
