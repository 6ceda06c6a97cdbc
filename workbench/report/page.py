"""The report's charts, section by section, and the data behind them for download."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import pandas as pd

from workbench import metrics
from workbench.report.run import ReportRun
from workbench.report.svg import static_svg
from workbench.store.folder import plain
from workbench.ui.charts import (
    Look,
    decades,
    gap_chart,
    gap_domain,
    memory_chart,
    memory_scatter,
    queue_chart,
    run_span,
    step_chart,
)
from workbench.ui.charts.data import timeline

SMALL = Look(theme="page", width=425, height=150, legend=False)
WIDE = Look(theme="page", width=960, height=190)
_DECIMALS = {"at_s": 4, "gap_ms": 3, "engine_gap_ms": 3, "start_s": 4, "end_s": 4, "activation_mib": 3, "kv_use": 4}


@dataclass(frozen=True)
class Figure:
    """One chart: static for a start, and the spec that makes it interactive."""

    id: str
    svg: str
    spec: dict[str, Any]
    description: str


@dataclass(frozen=True)
class Section:
    """Charts under one heading; ``keys`` explain colours and shapes, ``wide`` gives each the full width."""

    id: str
    heading: str
    note: str
    keys: tuple[tuple[str, str], ...]
    figures: list[Figure]
    wide: bool


def chart_sections(runs: Sequence[ReportRun], tick: Callable[[str], None]) -> list[Section]:
    """Make all charts: small multiples on shared scales for several runs, wide charts for one.

    Args:
        runs: of the report.
        tick: called with a name before each chart is drawn.
    """
    traces = [run.trace for run in runs]
    span = (0.0, max(run_span(trace)[1] for trace in traces))
    steps = pd.concat([timeline(trace) for trace in traces])
    alone = len(runs) == 1
    base = WIDE if alone else SMALL
    base = replace(base, x_domain=span)
    tallest = steps["tokens"].max() if len(steps) else 1
    gaps = replace(base, y_domain=gap_domain(traces, runs[0].slo))
    make_up = replace(base, y_domain=(0, 1.3 * float(tallest)), y2_domain=decades(steps["ms"]), legend=True)
    one_scale = "" if alone else " All charts have the same axes."

    def each(kind: str, draw: Callable[[ReportRun, Look], alt.Chart | alt.LayerChart], look: Look) -> list[Figure]:
        figures = []
        for n, run in enumerate(runs):
            tick(f"{kind}: {run.label}")
            figures.append(_figure(f"{kind}-{n}", draw(run, look if alone else replace(look, title=run.label))))
        return figures

    found = [
        Section(
            "gaps",
            "Token gaps",
            "Each point is the time between two outputs of one stream, at the moment it ended." + one_scale,
            () if alone else _GAP_KEYS,
            each("gaps", lambda run, look: gap_chart(run.trace, run.slo, look), gaps),
            alone,
        ),
        Section(
            "steps",
            "Step make-up",
            "Each bar is one scheduler step: as wide as it was long, as high as its tokens, decode below prefill. "
            "The line is the step’s time." + one_scale,
            (),
            each("steps", lambda run, look: step_chart(run.trace, look), make_up),
            alone,
        ),
    ]
    memory = []
    if alone:
        memory = each("memory", lambda run, look: memory_chart(run.trace, look), base)
    tick("memory against tokens")
    scatter = memory_scatter({run.label: run.trace for run in runs}, replace(WIDE, height=300))
    memory.append(_figure("memory-scatter", scatter))
    note = "What a step needed and gave back. On square-root axes a proportion is a straight line."
    found.append(Section("memory", "Memory", note, (), memory, wide=True))
    if alone:
        queue = each("queue", lambda run, look: queue_chart(run.trace, look), base)
        found.append(Section("queue", "KV use and queue", "What the scheduler had on its hands.", (), queue, wide=True))
    return found


_GAP_KEYS = (
    ("gap", "token gap"),
    ("stall", "stall: a gap above the SLO, with the silence before it"),
    ("slo", "SLO"),
    ("prefill", "a long prompt is being prefilled"),
    ("knob", "knob revision (values on hover)"),
)


def _figure(name: str, chart: alt.Chart | alt.LayerChart) -> Figure:
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("$schema")  # an address, and the page knows what it holds
    return Figure(name, static_svg(spec, name), spec, spec["description"])


def download_data(run: ReportRun) -> dict[str, dict[str, list[Any]]]:
    """The run's gaps, steps, requests and knob revisions, column by column: nothing thinned out.

    Times are seconds from the run's zero, rounded to 0.1 ms; gaps to 1 µs.
    """
    gaps = metrics.gaps(run.trace)[["request", "class", "index", "n", "at_s", "gap_ms", "engine_gap_ms"]]
    steps = timeline(run.trace)
    columns = ["step", "start", "end", "prefill_tokens", "decode_tokens", "running", "waiting", "kv_use", "revision"]
    steps = steps[[*columns, "activation_mib"]].rename(columns={"start": "start_s", "end": "end_s"})
    requests = metrics.request_metrics(run.trace, run.slo)
    tables = {"gaps": gaps, "steps": steps, "requests": requests, "knobs": run.trace.knobs}
    return {name: _columns(frame) for name, frame in tables.items()}


def _columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    rounded = frame.round({name: digits for name, digits in _DECIMALS.items() if name in frame})
    floats = [name for name in rounded if rounded[name].dtype.kind == "f" and name not in _DECIMALS]
    rounded[floats] = rounded[floats].round(5)
    return {str(name): [plain(v) for v in _nulls(rounded[name])] for name in rounded}


def _nulls(column: pd.Series) -> list[Any]:
    """Values with every kind of missing as None, and whole numbers as such."""
    values: list[Any] = column.astype(object).where(column.notna(), None).tolist()
    known = [v for v in values if v is not None]
    if column.dtype.kind == "f" and known and all(float(v).is_integer() for v in known):
        return [None if v is None else int(v) for v in values]
    return values
