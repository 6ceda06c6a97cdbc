"""The live charts as specs: drawn by the same code as the static ones, with names in place of rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import altair as alt

from workbench.config import SLO
from workbench.i18n import marked, speaking, spoken, translate
from workbench.ui.charts import DARK, LIGHT, Look, Palette, gap_marks, memory_marks, queue_marks, step_marks
from workbench.ui.charts.gaps import STREAMS
from workbench.ui.charts.localise import localise
from workbench.ui.charts.memory import describe
from workbench.ui.charts.scales import RIGHT_ROOM, named
from workbench.ui.charts.theme import PADDING, finish
from workbench.ui.live.changes import BoardChart
from workbench.ui.live.kept import compiled
from workbench.ui.live.server_specs import LATENCY, server_charts

OTHER = "other"  # series of streams and classes that were not planned
_DARK_FOR = {getattr(LIGHT, one.name): getattr(DARK, one.name) for one in fields(Palette)}
_WITHOUT_RIGHT = ("gaps", "rates", LATENCY)  # charts without a right axis
_RULES = ("rules", "rule_labels")
_HEIGHT = 150  # px of each plot: four of them and the header fit a laptop's screen
# Parameters and their values before the first row; the window is that of the panel.
SIGNALS = {
    "t0": 0.0,
    "t1": 30.0,
    "gap_lo": 1.0,
    "gap_hi": 1000.0,
    "tokens_top": 64.0,
    "ms_lo": 1.0,
    "ms_hi": 100.0,
    "mib_top": 1.0,
    "gib_top": 1.0,
    "requests_top": 4.0,
    "rate_top": 64.0,
    "lat_lo": 0.01,
    "lat_hi": 10.0,
}


def live_charts(slo: SLO, streams: Mapping[str, str], *, label: str, attached: bool = False) -> list[BoardChart]:
    """Specs of the charts ``gaps``, ``steps``, ``memory`` and ``queue``, light and dark.

    Of an attached server without our probe: ``gaps``, ``rates``, ``queue`` and ``latency``.

    Their data come from :class:`workbench.ui.live.rows.LiveRows`, their parameters are :data:`SIGNALS`.

    Args:
        slo: the promise that makes a gap a stall.
        streams: request → class, of the requests that are planned.
        label: where the numbers come from, such as "live CPU".
        attached: whether there are no steps, but what a server says of itself.
    """
    return list(_built(slo, tuple(series_names(streams)[1]), label, attached, spoken()))


def written(slo: SLO, streams: Mapping[str, str], *, label: str, attached: bool = False) -> list[BoardChart]:
    """The same in Vega-Lite, as Altair writes it; :func:`live_charts` compiles it, so that no page has to."""
    look = Look(height=_HEIGHT, live=True)
    made = []
    for name, title, description, chart in _charts(slo, series_names(streams)[1], label, look, attached=attached):
        light = _spec(name, chart)
        note = str(light["title"]["subtitle"])
        made.append(BoardChart(name, title, description, light, _in_the_dark(light), note, timed=name != LATENCY))
    return made


@lru_cache(maxsize=16)
def _built(slo: SLO, names: tuple[str, ...], label: str, attached: bool, lang: str) -> tuple[BoardChart, ...]:
    """Altair takes a tenth of a second a chart; a further run of the same classes has the same charts."""
    with speaking(lang):
        charts = written(slo, {name: name for name in names if name != OTHER}, label=label, attached=attached)
    return tuple(replace(one, light=_compiled(one.light), dark=_compiled(one.dark)) for one in charts)


def _compiled(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec as Vega, without what the page has beside it: heading and width."""
    bare = {key: value for key, value in spec.items() if key not in ("title", "autosize")}
    vega: dict[str, Any] = json.loads(compiled(json.dumps(bare | {"width": Look.width}, sort_keys=True)))
    return vega


def _in_the_dark(spec: Any) -> Any:
    """The same spec with each colour of the light palette replaced by its counterpart."""
    if isinstance(spec, dict):
        return {key: _in_the_dark(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [_in_the_dark(value) for value in spec]
    return _DARK_FOR.get(spec, spec) if isinstance(spec, str) else spec


def series_names(streams: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Which series a stream's gaps belong to, and all series, :data:`OTHER` last.

    Up to six planned streams have a shape each; beyond, each class has one. What comes unplanned is in the series of
    its class where there is one, else in :data:`OTHER`.
    """
    of = {request: request for request in streams} if len(streams) <= STREAMS else dict(streams)
    return of, [*sorted(set(of.values()) - {OTHER}), OTHER]


def _charts(
    slo: SLO, names: Sequence[str], label: str, look: Look, *, attached: bool = False
) -> Iterator[tuple[str, str, str, alt.LayerChart]]:
    """Id, title, description and chart of each."""
    gpu = "GPU" in label.upper()
    what = marked("device used") if gpu else marked("resident")
    yield _finished(
        "gaps",
        gap_marks.NAME,
        f"{label} · "
        + translate("diamond: stall, with the silence before it · shaded: prefill of a long prompt · dotted: knobs"),
        translate("Points: time between two outputs of one stream, in ms on a log axis, against the time it ended.")
        + translate(
            " Diamonds: stalls above the promise of {gap:,.0f} ms. Shaded: prefill of a long prompt.", gap=slo.gap_ms
        ),
        gap_marks.draw_gaps(
            named("shades", "shade_labels", "gaps", "stalls", "longest", *_RULES),
            look,
            slo=slo,
            domain=("gap_lo", "gap_hi"),
            series="series",
            names=list(names),
            engine=False,
        ),
        look,
    )
    if attached:
        for name, title, subtitle, description, chart in server_charts(label, look):
            yield _finished(name, title, subtitle, description, chart, look)
        return
    yield _finished(
        "steps",
        step_marks.NAME,
        f"{label} · " + translate("a bar is a step: as wide as it was long, decode below prefill · line: step time"),
        translate("Bars of decode and prefill tokens per scheduler step against time, with step time as a line."),
        step_marks.draw_steps(
            named("bars", "times", "slots", *_RULES),
            look,
            names=step_marks.SLOTS,
            rest=True,
            tokens=(0, "tokens_top"),
            span=("ms_lo", "ms_hi"),
        ),
        look,
    )
    yield _finished(
        "memory",
        memory_marks.NAME,
        f"{label} · "
        + translate(
            "bars: what a step needed and gave back · line: {what} · at the right: what the engine holds",
            what=translate(what),
        ),
        describe(what, split=True),
        memory_marks.draw_memory(
            named("peaks", "levels", "split", *_RULES),
            look,
            span=(0, "mib_top"),
            held=(0, "gib_top"),
            what=what,
            parts=[part for part in memory_marks.PARTS if gpu or part != memory_marks.GRAPHS],
        ),
        look,
    )
    yield _finished(
        "queue",
        queue_marks.NAME,
        f"{label} · " + translate("cross: preemption"),
        translate(queue_marks.DESCRIPTION),
        queue_marks.draw_queue(
            named("kv", "requests", "losses", *_RULES), look, span=(0, 100), requests=(0, "requests_top")
        ),
        look,
    )


def _finished(
    name: str, title: str, subtitle: str, description: str, chart: alt.LayerChart, look: Look
) -> tuple[str, str, str, alt.LayerChart]:
    done = finish(chart, look, name=title, subtitle=subtitle, description=description)
    return name, translate(title), description, done


def _spec(name: str, chart: alt.LayerChart) -> dict[str, Any]:
    spec: dict[str, Any] = localise(chart.to_dict(validate=False))  # the tests compile it
    if name in _WITHOUT_RIGHT:  # leave the room, so that the time axes line up
        spec["padding"] = dict.fromkeys(("left", "top", "bottom"), PADDING) | {"right": PADDING + RIGHT_ROOM}
    return spec | {"params": [{"name": key, "value": value} for key, value in SIGNALS.items()]}
