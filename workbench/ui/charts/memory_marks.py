"""How memory is drawn, whether the rows are there or still to come."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from workbench.i18n import marked, translate
from workbench.ui.charts.knobs import draw_knobs
from workbench.ui.charts.scales import Bounds, Sources, domain, right_axis, time_axis, y_axis, zoomable
from workbench.ui.charts.theme import Look

NAME = marked("Activation memory per step")
ACTIVATION, GRAPHS = marked("activation peak"), marked("graphs")
PARTS = {  # of the engine's memory, from the bottom up: name → key of the metadata's memory split
    marked("weights"): "weights_bytes",
    marked("KV pool"): "kv_bytes",
    GRAPHS: "graphs_bytes",
    ACTIVATION: "activation_bytes",
}
_BAR = (3, 12)  # px beside the plot, between which the bar of parts stands
_BESIDE = 16  # px that the right axis gives way to it


def draw_memory(
    sources: Sources, look: Look, *, span: Bounds, held: Bounds, what: str, parts: Sequence[str]
) -> alt.LayerChart:
    """Lay out the memory chart.

    Args:
        sources: ``peaks`` (t, t2, mib, tokens, step), ``levels`` (t, gib, source), ``split`` (part, y, y2 in GiB, mib)
            and those of :func:`~workbench.ui.charts.knobs.draw_knobs`.
        look: of the chart.
        span: domain of the left axis, MiB.
        held: domain of the right axis, GiB.
        what: the line shows.
        parts: of :data:`PARTS`, those that there are.
    """
    left = alt.layer(*_peaks(sources, look, span), *draw_knobs(sources, look))
    right = _held(sources, look, held, what, parts)
    return alt.layer(left, alt.layer(*right)).resolve_scale(y="independent") if right else left


def _peaks(sources: Sources, look: Look, span: Bounds) -> list[alt.Chart]:
    if "peaks" not in sources:
        return []
    bars = (
        alt.Chart(sources["peaks"])
        .mark_rect(color=look.palette.memory, clip=True, aria=False)
        .encode(
            x=time_axis("t", look),
            x2="t2:Q",
            y=alt.Y(
                "mib:Q",
                scale=alt.Scale(domain=domain(span), nice=False),
                axis=y_axis(translate("activation peak, MiB"), tickCount=4),
            ),
            y2=alt.datum(0),
            tooltip=[
                alt.Tooltip("mib:Q", title=translate("activation peak, MiB"), format=",.2f"),
                alt.Tooltip("tokens:Q", title=translate("tokens in the step"), format=","),
                alt.Tooltip("step:Q"),
                alt.Tooltip("t:Q", title=translate("began, s"), format=".3f"),
            ],
        )
    )
    return [zoomable(bars, look)]


def _held(sources: Sources, look: Look, held: Bounds, what: str, parts: Sequence[str]) -> list[alt.Chart]:
    """What lies on the right axis: the line, and the bar of parts between the plot and the axis."""
    offset = _BESIDE if "split" in sources else 0
    scale = alt.Scale(domain=domain(held), nice=False)
    title = translate("engine, GiB (bar)")
    if "levels" in sources:
        title = translate("{what}, GiB (line)", what=translate(what))
    axis = right_axis(title, look, offset=offset, tickCount=4)
    colours, layers = look.palette, []
    if "levels" in sources:
        layers.append(
            alt.Chart(sources["levels"])
            .mark_line(color=colours.ink, strokeWidth=1.2, interpolate="step-after", clip=True, aria=False)
            .encode(x=time_axis("t", look), y=alt.Y("gib:Q", scale=scale, axis=axis), detail="source:N")
        )
    if "split" in sources:
        legend = alt.Legend(title=None) if look.legend else None
        shades = dict(zip(PARTS, (colours.weights, colours.kv, colours.graphs, colours.memory), strict=True))
        layers.append(
            alt.Chart(sources["split"])
            .mark_rect(clip=False, stroke=colours.ground, strokeWidth=0.5, aria=False)
            .encode(
                x=alt.value(alt.expr(f"width + {_BAR[0]}")),
                x2=alt.value(alt.expr(f"width + {_BAR[1]}")),
                y=alt.Y("y:Q", scale=scale, axis=axis),
                y2="y2:Q",
                color=alt.Color(
                    "part:N", scale=alt.Scale(domain=list(parts), range=[shades[part] for part in parts]), legend=legend
                ),
                tooltip=[
                    alt.Tooltip("part:N", title=translate("engine memory")),
                    alt.Tooltip("mib:Q", title="MiB", format=",.1f"),
                ],
            )
        )
    return layers
