"""How the make-up of steps is drawn, whether the rows are there or still to come."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from workbench.i18n import marked, translate
from workbench.printable import letters
from workbench.ui.charts.knobs import draw_knobs
from workbench.ui.charts.scales import (
    Bounds,
    Sources,
    domain,
    powers,
    right_axis,
    root_ticks,
    time_axis,
    y_axis,
    zoomable,
)
from workbench.ui.charts.theme import Look

NAME = marked("Step make-up")
DECODE, REST = "decode", marked("other prefill")
NAMED = 4  # requests whose prefill has a colour of its own: those with the most prefill
_LABEL_PX = 84  # room of a label in the live legend; longer names of requests are cut, and whole on hover
_EM_PX = 11  # the labels' size
_LETTER_PX = 5  # a Latin letter of it, about; a Han character is two
SLOTS = tuple(f"slot {n}" for n in range(1, NAMED + 1))  # kinds of a live chart, in place of the requests' names


def draw_steps(
    sources: Sources, look: Look, *, names: Sequence[str], rest: bool, tokens: Bounds, span: Bounds
) -> alt.LayerChart:
    """Lay out the step chart.

    Args:
        sources: ``bars`` (t, t2, y, y2, kind, tokens, step, ms; what in a live chart), ``times`` (t, ms; null breaks
            the line), in a live chart ``slots`` (kind, name: which request a slot stands for), and those of
            :func:`~workbench.ui.charts.knobs.draw_knobs`.
        look: of the chart.
        names: kinds of bar between decode and the rest, at most :data:`NAMED`.
        rest: whether there is prefill of further requests.
        tokens: domain of the token axis.
        span: domain of the axis of step time, ms.
    """
    tokens = alt.layer(*_bars(sources, look, names, rest, tokens), *_slots(sources), *draw_knobs(sources, look))
    return alt.layer(tokens, *_times(sources, look, span)).resolve_scale(y="independent")


def _bars(sources: Sources, look: Look, names: Sequence[str], rest: bool, tokens: Bounds) -> list[alt.Chart]:
    if "bars" not in sources:
        return []
    colours = look.palette
    shades = {DECODE: colours.decode, **dict(zip(names, colours.prefills, strict=False))}
    if rest:
        shades[REST] = colours.prefill_rest
    # Free slots are gaps in the legend of a live chart: they are at its end.
    kinds = [DECODE, REST, *names] if look.live else list(shades)
    scale = alt.Scale(domain=kinds, range=[shades[kind] for kind in kinds])
    what = "what" if look.live else "kind"
    bars = (
        alt.Chart(sources["bars"])
        .mark_rect(clip=True, aria=False)
        .encode(
            x=time_axis("t", look),
            x2="t2:Q",
            y=alt.Y(
                "y:Q",
                scale=alt.Scale(type="sqrt", domain=domain(tokens), nice=False),
                axis=y_axis(
                    translate("tokens (√ scale)"), format=",d", values=root_ticks(tokens[1], powers_of_two=True)
                ),
            ),
            y2="y2:Q",
            color=alt.Color("kind:N", scale=scale, legend=_legend(look) if look.legend else None),
            tooltip=[
                alt.Tooltip(f"{what}:N", title=translate("what")),
                alt.Tooltip("tokens:Q", format=","),
                alt.Tooltip("step:Q"),
                alt.Tooltip("ms:Q", title=translate("step time, ms"), format=",.1f"),
                alt.Tooltip("t:Q", title=translate("began, s"), format=".3f"),
            ],
        )
    )
    return [zoomable(bars, look)]


def _legend(look: Look) -> alt.Legend:
    """The kinds; in a live chart a slot has the name of its request, and none while it is free.

    Vega does not lay a legend out again when a label changes: so all labels have the room of the widest, which stays.
    """
    if not look.live:
        return alt.Legend(title=None)
    place = "indexof(pluck(data('slots'), 'kind'), datum.value)"
    free = f"indexof({list(SLOTS)}, datum.value) >= 0 && {place} < 0"
    other = "datum.value"
    if translate(DECODE) != DECODE:
        other = f"datum.value == '{DECODE}' ? '{translate(DECODE)}' : {other}"
    widest = translate(REST)
    lacks = max(0, (_LABEL_PX - letters(widest) * _LETTER_PX) // _EM_PX)  # as in Chinese
    widest += "\N{EM SPACE}" * lacks + "\N{ZERO WIDTH SPACE}" * bool(lacks)  # Vega trims what ends in spaces
    words = f"datum.value == '{REST}' ? '{widest}' : {free} ? '' : {other}"
    return alt.Legend(
        title=None,
        labelExpr=f"{place} >= 0 ? data('slots')[{place}].name : {words}",
        labelLimit=_LABEL_PX,
        symbolOpacity=alt.expr(f"{free} ? 0 : 1"),
        gridAlign="all",
        columnPadding=8,
    )


def _slots(sources: Sources) -> list[alt.Chart]:
    """Nothing to see: a legend can read only data that some mark uses."""
    if "slots" not in sources:
        return []
    return [alt.Chart(sources["slots"]).mark_text(opacity=0, aria=False).encode(x=alt.value(0), y=alt.value(0))]


def _times(sources: Sources, look: Look, span: Bounds) -> list[alt.Chart]:
    if "times" not in sources:
        return []
    line = (
        alt.Chart(sources["times"])
        .mark_line(
            color=look.palette.ink,
            strokeWidth=1,
            interpolate="step-after",
            clip=True,
            invalid="break-paths-show-domains",
            aria=False,
        )
        .encode(
            x=time_axis("t", look),
            y=alt.Y(
                "ms:Q",
                scale=alt.Scale(type="log", domain=domain(span), nice=False),
                axis=right_axis(translate("step, ms (line)"), look, format=",~f", values=powers(span)),
            ),
        )
    )
    return [line]
