"""What each class waited under each policy: TTFT and gaps, on one scale each."""

from __future__ import annotations

import json
from collections.abc import Mapping

import altair as alt
import pandas as pd

from workbench.config import SLO
from workbench.i18n import counted, marked, translate
from workbench.trace import Trace
from workbench.ui.charts.origin import origin
from workbench.ui.charts.policy_table import ALL, policy_table
from workbench.ui.charts.scales import decades, powers
from workbench.ui.charts.theme import Look, config, message_chart

NAME = marked("What each class waited")
_ROW = 17  # px of a policy
_NAMES = 130  # px, most that the names of policies take
_LETTER = 6.2  # px
_SPACING = 22  # px between the plots, about what their padding takes


def policy_waits(
    runs: Mapping[str, Trace], slo: SLO, look: Look | None = None
) -> alt.HConcatChart | alt.Chart | alt.LayerChart:
    """TTFT (P50 to P99) and gaps (P50 to P99 and the longest) of each class under each policy.

    Args:
        runs: policy's name → its run, of the same load.
        slo: the promise; dashed lines.
        look: theme and width of the whole; the height follows from policies and classes.
    """
    look = look or Look()
    table = policy_table(runs, slo).reset_index()
    table = table[table["class"] != ALL]
    where = origins(runs)
    heading = look.title or translate(NAME)
    if table.empty:
        return message_chart(
            look, name=heading, subtitle=where, message=translate("No request of any class in these runs.")
        )
    rows, labels, headings = _laid_out(table)
    width = (look.width - _SPACING) // 2
    first_token = _Plot("ttft", "s", translate("TTFT, s (log)"), slo.ttft_ms / 1000, look.palette.prefill)
    between = _Plot("gap", "ms", translate("gap, ms (log)"), slo.gap_ms, look.palette.decode)
    chart = alt.hconcat(
        first_token.draw(rows, labels, headings, look).properties(width=width, height=_ROW * _high(labels)),
        between.draw(rows, labels, None, look).properties(width=width, height=_ROW * _high(labels)),
        spacing=_SPACING,
        title=alt.TitleParams(
            text=heading,
            subtitle=[
                f"{where} · " + translate("hollow: P50 · filled: P99 · stroke: the longest gap"),
                translate(
                    "dashed: SLO, {ttft:,.3g} s to the first token, {gap:,.0f} ms between tokens",
                    ttft=slo.ttft_ms / 1000,
                    gap=slo.gap_ms,
                ),
            ],
        ),
        description=(
            translate(
                "{heading}: TTFT and token gaps of {classes} under {policies}, from P50 to P99, "
                "on logarithmic axes ({where}).",
                heading=heading,
                classes=counted("{n} class", "{n} classes", len(headings)),
                policies=counted("{n} policy", "{n} policies", len(runs)),
                where=where,
            )
        ),
    )
    return chart if look.bare else chart.configure(**config(look.palette))


def origins(runs: Mapping[str, Trace]) -> str:
    """Where the numbers of several runs come from."""
    return translate(" and ").join(dict.fromkeys(origin(trace) for trace in runs.values())) or translate("no run")


def _laid_out(table: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, str], pd.DataFrame]:
    """Rows with their places, the policy at each place, and headings (row, class): policies within classes."""
    labels: dict[int, str] = {}
    parts, headings, at = [], [], 0
    for name in dict.fromkeys(table["class"]):
        mine = table[table["class"] == name]
        headings.append({"row": at, "what": name})
        places = range(at + 1, at + 1 + len(mine))
        labels |= dict(zip(places, mine["policy"], strict=True))
        parts.append(mine.assign(row=places))
        at += 1 + len(mine)
    return pd.concat(parts, ignore_index=True), labels, pd.DataFrame(headings)


def _high(labels: Mapping[int, str]) -> int:
    """Places from the first heading to the last policy."""
    return max(labels) + 1


class _Plot:
    """One of the two plots.

    Args:
        figure: prefix of the table's columns.
        unit: their suffix.
        title: of the axis.
        promise: the SLO in the same unit.
        colour: of the marks.
    """

    def __init__(self, figure: str, unit: str, title: str, promise: float, colour: str) -> None:
        self._columns = [f"{figure}_{part}_{unit}" for part in ("p50", "p99", "max")]
        self._figure, self._title, self._promise, self._colour = figure, title, promise, colour

    def draw(
        self, table: pd.DataFrame, labels: Mapping[int, str], headings: pd.DataFrame | None, look: Look
    ) -> alt.LayerChart:
        """Lay it out; without ``headings`` it goes beside one that has names and headings."""
        p50, p99, longest = (
            table[name].astype(float) if name in table else pd.Series(index=table.index, dtype=float)
            for name in self._columns
        )
        rows = pd.DataFrame(
            {"policy": table["policy"], "class": table["class"], "row": table["row"], "p50": p50, "p99": p99}
        ).assign(longest=longest, end=longest.fillna(p99))
        rows = rows[rows["p50"].notna()].round(4)
        span = decades([rows["p50"], rows["p99"], rows["longest"], pd.Series([self._promise])])
        y = self._rows_axis(labels, headings is not None)
        tip = ["class:N", "policy:N", *(alt.Tooltip(f"{n}:Q", format=",.4~g") for n in ("p50", "p99", "longest"))]
        base = alt.Chart(rows).encode(y=y, tooltip=tip)

        def x(field: str) -> alt.X:
            axis = alt.Axis(title=self._title, values=powers(span), format=",~g", grid=True)
            return alt.X(f"{field}:Q", scale=alt.Scale(type="log", domain=list(span), nice=False), axis=axis)

        point = base.mark_point
        layers = [
            alt.Chart(pd.DataFrame({"promise": [self._promise]}))
            .mark_rule(color=look.palette.alert, strokeDash=[6, 4], strokeWidth=1.2, aria=False)
            .encode(x=x("promise")),
            base.mark_rule(color=self._colour, strokeWidth=1, opacity=0.6, aria=False).encode(x=x("p50"), x2="end:Q"),
            point(color=self._colour, fill=look.palette.ground, size=44, strokeWidth=1.6, opacity=1, aria=False).encode(
                x=x("p50")
            ),
            point(color=self._colour, filled=True, size=50, opacity=1, aria=False).encode(x=x("p99")),
        ]
        if rows["longest"].notna().any():
            mark = point(shape="M0,-1L0,1", color=self._colour, size=80, strokeWidth=2, opacity=1, aria=False)
            layers.append(mark.encode(x=x("longest")))
        if headings is not None:
            text = alt.Chart(headings).mark_text(
                color=look.palette.ink, fontSize=11, fontWeight=600, align="right", dx=-6, clip=False, aria=False
            )
            layers.append(text.encode(x=alt.value(0), y=self._rows_axis(labels, named=True), text="what:N"))
        return alt.layer(*layers)

    @staticmethod
    def _rows_axis(labels: Mapping[int, str], named: bool) -> alt.Y:
        names = json.dumps({str(place): name for place, name in labels.items()})
        room = min(_NAMES, 14 + _LETTER * max(len(name) for name in labels.values()))
        axis = alt.Axis(
            title=None,
            values=list(labels),
            labelExpr=f"({names})[datum.value]",
            labels=named,
            labelLimit=room - 10,
            minExtent=room if named else 0,
            maxExtent=room if named else 0,
            ticks=False,
            grid=True,
        )
        scale = alt.Scale(domain=[_high(labels) - 0.4, -0.6], nice=False, zero=False)
        return alt.Y("row:Q", scale=scale, axis=axis)
