"""The report's sections: which charts and tables it has, planned first and drawn then."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import altair as alt
import pandas as pd

from workbench import metrics
from workbench.i18n import marked, translate
from workbench.report.details import Details, figures_by_class, stalls_by_cause
from workbench.report.run import ReportRun, differ_in_policy
from workbench.report.svg import static_svg
from workbench.ui.charts import (
    Look,
    decades,
    gap_chart,
    gap_domain,
    history_chart,
    memory_chart,
    memory_scatter,
    mfu_chart,
    policy_waits,
    queue_chart,
    run_span,
    step_chart,
)
from workbench.ui.charts.data import timeline
from workbench.ui.charts.localise import localise
from workbench.ui.charts.stall_marks import cause_words

SMALL = Look(theme="page", width=425, height=150, legend=False)
WIDE = Look(theme="page", width=960, height=190)
_LETTER = 5.3  # px, of the lines below a heading
_FEW = 700  # rows of each history where a report has several
Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.HConcatChart


@dataclass(frozen=True)
class Figure:
    """One chart: static for a start, and the spec that makes it interactive."""

    id: str
    svg: str
    spec: dict[str, Any]
    description: str


@dataclass(frozen=True)
class Section:
    """Charts and a table under one heading.

    Attributes:
        id: unique in the page.
        heading: of the section.
        note: a sentence or two below it.
        keys: what colours and shapes mean: a kind of key and its words.
        figures: the charts.
        wide: each chart has the full width.
        table: below them.
    """

    id: str
    heading: str
    note: str
    keys: tuple[tuple[str, str], ...]
    figures: list[Figure]
    wide: bool
    table: Details | None = None


@dataclass(frozen=True)
class Planned:
    """A section whose charts are still to be drawn: its id, what is told of each while it is drawn, and how to."""

    section: Section
    charts: list[tuple[str, str, Callable[[], Chart]]]

    def draw(self, tick: Callable[[str], None]) -> Section:
        """Draw the charts; ``tick`` is called with a name before each."""
        figures = []
        for name, what, make in self.charts:
            tick(what)
            figures.append(_figure(name, make()))
        return replace(self.section, figures=figures)


def plan(runs: Sequence[ReportRun]) -> list[Planned]:
    """Decide which sections a report has: small multiples on shared scales for several runs, wide charts for one.

    Stalls, classes, preemptions, MFU and policies have a section where there is something to say.

    Args:
        runs: of the report.
    """
    base = replace(WIDE if len(runs) == 1 else SMALL, x_domain=(0.0, max(run_span(run.trace)[1] for run in runs)))
    found = [_gaps(runs, base), _stalls(runs), _classes(runs), _steps(runs, base), _history(runs, base)]
    found += [_memory(runs, base), _queue(runs, base), _mfu(runs, base)]
    return [section for section in found if section is not None]


def _each(
    kind: str, runs: Sequence[ReportRun], draw: Callable[[ReportRun, Look], Chart], look: Look, *, named: bool
) -> list[tuple[str, str, Callable[[], Chart]]]:
    """One chart a run; where they are ``named`` each has the run's label as its heading."""

    def one(run: ReportRun) -> Callable[[], Chart]:
        return lambda: draw(run, replace(look, title=run.label) if named else look)

    return [(f"{kind}-{n}", f"{kind}: {run.label}", one(run)) for n, run in enumerate(runs)]


def _shared(runs: Sequence[ReportRun]) -> str:
    return "" if len(runs) == 1 else translate(" All charts have the same axes.")


def _gaps(runs: Sequence[ReportRun], base: Look) -> Planned:
    look = replace(base, y_domain=gap_domain([run.trace for run in runs], runs[0].slo))
    note = translate("Each point is the time between two outputs of one stream, at the moment it ended.") + _shared(
        runs
    )
    keys: tuple[tuple[str, str], ...] = ()
    if len(runs) > 1:
        causes = cause_words(cause for run in runs for cause in metrics.stalls(run.trace, run.slo)["cause"])
        stall = translate("stall: a gap above the SLO, with the silence before it") + (
            translate("; by {causes}", causes=causes) if causes else ""
        )
        keys = tuple((kind, stall if kind == "stall" else translate(words)) for kind, words in _GAP_KEYS)
    section = Section("gaps", translate("Token gaps"), note, keys, [], len(runs) == 1)
    return Planned(
        section, _each("gaps", runs, lambda run, at: gap_chart(run.trace, run.slo, at), look, named=len(runs) > 1)
    )


def _stalls(runs: Sequence[ReportRun]) -> Planned | None:
    table, explained = stalls_by_cause(runs)
    if table is None:
        return None
    note = translate("What made each gap above the SLO: the cause that accounts for at least half of it.")
    note = f"{note} {explained}"
    return Planned(Section("stalls", translate("Stalls by cause"), note, (), [], wide=True, table=table), [])


def _classes(runs: Sequence[ReportRun]) -> Planned | None:
    """Figures by class; of runs that differ in their policy only, with a chart on one scale."""
    table = figures_by_class(runs)
    if table is None:
        return None
    if not differ_in_policy(runs):
        note = translate("The most urgent class first; TTFT counts from the planned arrival.")
        return Planned(Section("classes", translate("Classes"), note, (), [], wide=True, table=table), [])
    note = translate("The same load under each policy, all else equal. TTFT counts from the planned arrival.")
    traces = {run.label: run.trace for run in runs}
    section = Section("policies", translate("Policies"), note, (), [], wide=True, table=table)
    look = replace(WIDE, width=WIDE.width - 40)  # the policies' names take more room than an axis
    return Planned(section, [("policy-waits", "policies", lambda: policy_waits(traces, runs[0].slo, look))])


def _steps(runs: Sequence[ReportRun], base: Look) -> Planned:
    steps = pd.concat([timeline(run.trace) for run in runs])
    tallest = float(steps["tokens"].max()) if len(steps) else 1.0
    look = replace(base, y_domain=(0, 1.3 * tallest), y2_domain=decades(steps["ms"]), legend=True)
    note = translate(
        "Each bar is one scheduler step: as wide as it was long, as high as its tokens, decode below prefill. "
        "The line is the step’s time."
    ) + _shared(runs)
    section = Section("steps", translate("Step make-up"), note, (), [], len(runs) == 1)
    return Planned(section, _each("steps", runs, lambda run, at: step_chart(run.trace, at), look, named=len(runs) > 1))


def _history(runs: Sequence[ReportRun], base: Look) -> Planned | None:
    """The histories of the runs in which a request was preempted."""
    hit = [run for run in runs if len(metrics.preemptions(run.trace))]
    if not hit:
        return None
    look = replace(WIDE, x_domain=base.x_domain, limit=WIDE.limit if len(hit) == 1 else _FEW)
    note = translate("What each request went through. vLLM preempts by recompute: KV that is lost is computed again.")
    charts = _each("history", hit, lambda run, at: history_chart(run.trace, at), look, named=len(runs) > 1)
    return Planned(Section("history", translate("Preemptions and recompute"), note, (), [], wide=True), charts)


def _memory(runs: Sequence[ReportRun], base: Look) -> Planned:
    charts = []
    if len(runs) == 1:
        charts = _each("memory", runs, lambda run, look: memory_chart(run.trace, look), base, named=False)
    traces = {run.label: run.trace for run in runs}
    charts.append(
        ("memory-scatter", "memory against tokens", lambda: memory_scatter(traces, replace(WIDE, height=300)))
    )
    note = translate("What a step needed and gave back. On square-root axes a proportion is a straight line.")
    return Planned(Section("memory", translate("Memory"), note, (), [], wide=True), charts)


def _queue(runs: Sequence[ReportRun], base: Look) -> Planned | None:
    if len(runs) > 1:
        return None
    section = Section(
        "queue", translate("KV use and queue"), translate("What the scheduler had on its hands."), (), [], wide=True
    )
    return Planned(section, _each("queue", runs, lambda run, look: queue_chart(run.trace, look), base, named=False))


def _mfu(runs: Sequence[ReportRun], base: Look) -> Planned | None:
    """MFU of the runs of which it is known, on one scale."""
    tops = {run.label: metrics.mfu(run.trace)["mfu"].max() for run in runs}
    known = [run for run in runs if pd.notna(tops[run.label])]
    if not known:
        return None
    top = 115 * max(float(tops[run.label]) for run in known)
    note = translate(
        "The arithmetic that the model needed in a step, over what the device’s peak would do in its time."
    )
    section = Section("mfu", translate("Model FLOPs utilisation"), note + _shared(known), (), [], len(runs) == 1)
    look = replace(base, y_domain=(0.0, top), legend=True)
    return Planned(section, _each("mfu", known, lambda run, at: mfu_chart(run.trace, at), look, named=len(runs) > 1))


_GAP_KEYS = (
    ("gap", marked("token gap")),
    ("stall", ""),
    ("slo", "SLO"),
    ("prefill", marked("a long prompt is being prefilled")),
    ("knob", marked("knob revision (values on hover)")),
)


def _figure(name: str, chart: Chart) -> Figure:
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("$schema")  # an address, and the page knows what it holds
    localise(spec)
    wrap_heading(spec)
    return Figure(name, static_svg(spec, name), spec, spec["description"])


def wrap_heading(spec: dict[str, Any]) -> None:
    """Break the lines below a chart's heading that are wider than its plot, since a drawing is as wide as its text."""
    title, width = spec.get("title"), spec.get("width")
    if not isinstance(title, dict) or not isinstance(width, int) or not title.get("subtitle"):
        return
    lines = [title["subtitle"]] if isinstance(title["subtitle"], str) else title["subtitle"]
    most, wrapped = int(width / _LETTER), list[str]()
    for line in lines:
        wrapped.append("")
        for part in line.split(" · "):
            longer = f"{wrapped[-1]} · {part}" if wrapped[-1] else part
            if _letters(longer) <= most:
                wrapped[-1] = longer
                continue
            pieces = (
                [part]
                if _letters(part) <= most
                else textwrap.wrap(part, most, break_long_words=False, break_on_hyphens=False)
            )
            wrapped[-1:] = [*filter(None, wrapped[-1:]), *pieces]
    title["subtitle"] = wrapped


def _letters(text: str) -> int:
    """How wide a text is; a Han character takes two letters."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
