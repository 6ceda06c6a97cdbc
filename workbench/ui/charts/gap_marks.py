"""How token gaps are drawn, whether the rows are there or still to come."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from workbench.config import SLO
from workbench.i18n import counted, marked, translate
from workbench.printable import letters
from workbench.ui.charts.knobs import draw_knobs
from workbench.ui.charts.scales import (
    Bounds,
    Sources,
    domain,
    edges,
    middle,
    powers,
    time_axis,
    y_axis,
    zoomable,
)
from workbench.ui.charts.stall_marks import draw_stalls
from workbench.ui.charts.theme import SHAPES, Look

NAME = marked("Token gaps")
SHORTEST = 0.01  # ms; shorter gaps are drawn as this, since a log axis has no zero
SHADE_LABELS = 8  # most long prefills that are named; the others are on hover only
_BELOW = 30  # times below the usual gap; what is shorter came in one read with the token before
_ROOM = 3  # a gap less than so many times below the promise has its figure above it
_LETTER = 5.4  # px, width of one in a name
_LINES = 2  # of names


def draw_gaps(
    sources: Sources,
    look: Look,
    *,
    slo: SLO,
    domain: Bounds,
    series: str,
    names: Sequence[str],
    engine: bool,
) -> alt.LayerChart:
    """Lay out the gap chart.

    Args:
        sources: ``gaps`` (t, gap, engine, stream, n and the field ``series``), ``stalls`` (t, t0, gap, stream and, in a
            static chart, cause, detail, step), ``longest`` (t, gap, label), ``shades`` (t, t2, what) and
            ``shade_labels`` (the same and line), and those of :func:`~workbench.ui.charts.knobs.draw_knobs`.
        look: of the chart.
        slo: its gap is a dashed line.
        domain: of the y axis, ms.
        series: field that has a shape a value.
        names: its values.
        engine: whether the gaps in the engine are known.
    """
    y = _y("gap", domain)
    return alt.layer(
        *_shading(sources, look),
        *_promise(slo, y, look),
        *_points(sources, y, look, series, names, engine),
        *draw_stalls(sources, y, look),
        *_longest(sources, domain, slo, look),
        *draw_knobs(sources, look),
    ).resolve_scale(shape="independent")  # series and causes


def shortest_told(nearly_all: float, usual: float) -> float:
    """Where the axis may begin, ms: tokens that came together must not take most of it.

    Args:
        nearly_all: the gap that 99 % are longer than.
        usual: the median.
    """
    return max(nearly_all, usual / _BELOW)


def readable(spans: Sequence[tuple[float, float, str]], low: float, high: float, plot: int = 720) -> dict[int, int]:
    """Which spans can carry their names, and in which line from below, without one lying on another.

    The longest spans come first; a name that has no room in the first line goes into the second.

    Args:
        spans: start, end (s) and name.
        low: left edge of the plot, s.
        high: right edge.
        plot: its width, px.
    """
    lines: list[list[tuple[float, float]]] = [[] for _ in range(_LINES)]
    named: dict[int, int] = {}
    for place in sorted(range(len(spans)), key=lambda i: spans[i][0] - spans[i][1]):
        start, end, name = spans[place]
        width = letters(name) * _LETTER / plot * (high - low)
        late = start > (low + high) / 2  # as it is drawn: such a name ends where its span does
        begin = min(end, high) - width if late else max(start, low)
        for number, taken in enumerate(lines):
            if all(begin > last or begin + width < first for first, last in taken):
                taken.append((begin, begin + width))
                named[place] = number
                break
    return dict(sorted(list(named.items())[:SHADE_LABELS]))


def prefill_words(request: str, tokens: int, steps: int | None) -> str:
    """What a shade stands for; without step records it runs from the send to the first token."""
    how = translate(" (sent → first)") if steps is None else counted(" in {n:,} step", " in {n:,} steps", steps)
    return translate("{request}: {tokens:,} tokens{how}", request=request, tokens=tokens, how=how)


def _y(field: str, bounds: Bounds) -> alt.Y:
    return alt.Y(
        f"{field}:Q",
        scale=alt.Scale(type="log", domain=domain(bounds), nice=False, clamp=True),
        axis=y_axis(translate("gap, ms (log)"), format=",~f", values=powers(bounds)),
    )


def _points(sources: Sources, y: alt.Y, look: Look, series: str, names: Sequence[str], engine: bool) -> list[alt.Chart]:
    if "gaps" not in sources:
        return []
    in_engine = [alt.Tooltip("engine:Q", title=translate("engine gap, ms"), format=",.1f")] if engine else []
    points = (
        alt.Chart(sources["gaps"])
        .mark_point(
            color=look.palette.decode,
            filled=False,
            strokeWidth=1.1,
            size=16,
            opacity=1,
            strokeOpacity=0.8,
            clip=True,
            aria=False,
        )
        .encode(
            x=time_axis("t", look),
            y=y,
            shape=alt.Shape(
                f"{series}:N",
                scale=alt.Scale(domain=list(names), range=[SHAPES[n % len(SHAPES)] for n in range(len(names))]),
                legend=alt.Legend(title=None, symbolStrokeColor=look.palette.decode) if look.legend else None,
            ),
            tooltip=[
                alt.Tooltip("stream:N"),
                alt.Tooltip("gap:Q", title=translate("gap, ms"), format=",.1f"),
                *in_engine,
                alt.Tooltip("n:Q", title=translate("tokens that ended it")),
                alt.Tooltip("t:Q", title=translate("ended, s"), format=".3f"),
            ],
        )
    )
    return [zoomable(points, look)]


def _longest(sources: Sources, bounds: Bounds, slo: SLO, look: Look) -> list[alt.Chart]:
    """The figure of the longest gap, on the side where there is room."""
    if "longest" not in sources:
        return []
    late, near_top = f"datum.t > {middle(look)}", f"datum.gap > {bounds[1]} * 0.6"
    # Just below the promise it would lie on that line: it goes above.
    free = f"datum.gap < {slo.gap_ms} && datum.gap > {slo.gap_ms / _ROOM} ? {slo.gap_ms} : datum.gap"
    text = (
        alt.Chart(sources["longest"])
        .transform_calculate(at=free)
        .mark_text(
            color=look.palette.ink,
            fontSize=11,
            fontWeight=600,
            align=alt.expr(f"{late} ? 'right' : 'left'"),
            baseline=alt.expr(f"{near_top} ? 'top' : 'bottom'"),
            dx=alt.expr(f"{late} ? -7 : 7"),
            dy=alt.expr(f"{near_top} ? 5 : -5"),
            clip=True,
            aria=False,
        )
    )
    return [text.encode(x=time_axis("t", look), y=_y("at", bounds), text="label:N")]


def _promise(slo: SLO, y: alt.Y, look: Look) -> list[alt.Chart]:
    rows = alt.Chart(pd.DataFrame({"gap": [slo.gap_ms]})).encode(y=y)
    colour = look.palette.alert
    return [
        rows.mark_rule(color=colour, strokeDash=[6, 4], strokeWidth=1.2, aria=False),
        rows.mark_text(color=colour, fontSize=10, align="right", baseline="bottom", dy=-2, aria=False).encode(
            x=alt.value("width"), text=alt.value(f"SLO {slo.gap_ms:,.0f} ms")
        ),
    ]


def _shading(sources: Sources, look: Look) -> list[alt.Chart]:
    layers = []
    if "shades" in sources:
        layers.append(
            alt.Chart(sources["shades"])
            .mark_rect(color=look.palette.prefill, opacity=0.2, clip=True, aria=False)
            .encode(x=time_axis("t", look), x2="t2:Q", tooltip=[alt.Tooltip("what:N", title=translate("prefill of"))])
        )
    if "shade_labels" in sources:
        low, high = edges(look)
        late = f"datum.t > {middle(look)}"  # a label that would leave the plot ends at its span
        layers.append(
            alt.Chart(sources["shade_labels"])
            .transform_calculate(at=f"{late} ? min(datum.t2, {high}) : max(datum.t, {low})")
            .mark_text(
                color=look.palette.ink,
                fontSize=10,
                baseline="bottom",
                align=alt.expr(f"{late} ? 'right' : 'left'"),
                dx=alt.expr(f"{late} ? -4 : 4"),
                dy=alt.expr("-3 - 12 * datum.line"),
                clip=True,
                aria=False,
            )
            # At the bottom: above are the longest gap with its figure, stalls and the names of the knobs' revisions.
            .encode(x=time_axis("at", look), y=alt.value("height"), text="what:N")
        )
    return layers
