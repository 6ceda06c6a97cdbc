"""An attached server's own figures: rates, KV use and queue against time, and the quantiles of its histograms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from workbench import metrics
from workbench.i18n import marked, translate
from workbench.trace import Trace
from workbench.ui.charts.data import decimate, known, on_span
from workbench.ui.charts.knobs import RULES, knob_frames
from workbench.ui.charts.origin import origin
from workbench.ui.charts.queue import CROSSES
from workbench.ui.charts.queue_marks import DESCRIPTION, RUNNING, WAITING, draw_queue
from workbench.ui.charts.scales import decades, present
from workbench.ui.charts.server_marks import (
    LATENCY_DESCRIPTION,
    LATENCY_NAME,
    QUEUE_NAME,
    RATES_DESCRIPTION,
    RATES_NAME,
    draw_latency,
    draw_rates,
)
from workbench.ui.charts.server_rows import COUNTERS, SHARES, TTFT, WHOLE, ends, lost, quantile_rows, rates, row_name
from workbench.ui.charts.server_rows import GAP as GAP_ROW
from workbench.ui.charts.theme import Look, finish, message_chart

_ROW = 17  # px of a quantile
_NONE = marked("No reading of /metrics in this trace:\nonly runs on an attached server that has them do.")
_NO_COUNTERS = marked("The server's /metrics told no tokens.")
_NO_HISTOGRAMS = marked("The server's /metrics has no histogram of latencies,\nor nothing was counted in it.")
_COLUMNS = {"kv_use": marked("KV use"), "running": RUNNING, "waiting": WAITING, "preemptions": marked("preemptions")}


def server_rate_chart(trace: Trace, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """Prompt and output tokens a second by the server's counters, between two readings, against time.

    Args:
        trace: the run.
        look: size, theme and shared domains (``y_domain`` tokens a second).
    """
    look = on_span(look or Look(), trace)
    where, readings = origin(trace), _readings(trace)
    frame = pd.DataFrame(_rate_rows(readings), columns=["t", "series", "rate"])
    if not frame["rate"].notna().any():
        why = translate(_NO_COUNTERS if readings else _NONE)
        return message_chart(look, name=RATES_NAME, subtitle=where, message=why)
    kept = decimate(frame, "t", ["rate"], look.limit, by="series")
    top = look.y_domain[1] if look.y_domain else max(1.0, 1.15 * float(frame["rate"].max()))
    totals = [
        translate("{total:,} {what} tokens", total=int(readings[-1][column]), what=translate(series))
        for series, column in COUNTERS.items()
        if readings[-1].get(column) is not None
    ]
    lines = [
        " · ".join([where, *totals]),
        translate("all that the server did in this time, also for others · {n:,} readings", n=len(readings)),
    ]
    if len(kept) < len(frame):
        lines.append(
            translate("{kept:,} of {all:,} rows drawn: the largest of each bucket", kept=len(kept), all=len(frame))
        )
    chart = draw_rates({"rates": kept.round({"t": 3, "rate": 2})}, look, top=top)
    return finish(chart, look, name=RATES_NAME, subtitle=lines, description=translate(RATES_DESCRIPTION))


def server_queue_chart(trace: Trace, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """KV pool in use (%, area), running and waiting requests (lines), preemptions (crosses), as the server says.

    Args:
        trace: the run.
        look: size, theme and shared domains (``y_domain`` per cent, ``y2_domain`` requests).
    """
    look = on_span(look or Look(), trace)
    where, frame = origin(trace), trace.server.sort_values("t_s", kind="stable").reset_index(drop=True)
    lacking = [text for column, text in _COLUMNS.items() if not known(frame, column)]
    if len(lacking) == len(_COLUMNS):
        why = translate(marked("The server's /metrics told neither KV use nor a queue.") if len(frame) else _NONE)
        return message_chart(look, name=QUEUE_NAME, subtitle=where, message=why)
    rules, readings = knob_frames(trace, look), _readings(trace)
    gone = [lost(before, row) for before, row in zip([None, *readings], readings, strict=False)]
    frame = frame[["t_s", *_COLUMNS]].assign(
        t=frame["t_s"].clip(lower=0.0).round(3),
        kv=(frame["kv_use"].astype(float) * 100).round(2),
        running=frame["running"].astype(float),
        waiting=frame["waiting"].astype(float),
        victims=gone,
        who=translate("not told"),
    )
    losses = decimate(frame[frame["victims"] > 0], "t", ["victims"], CROSSES)
    kept = decimate(frame, "t", ["kv", RUNNING, WAITING], (look.limit - RULES * bool(rules) - len(losses)) // 3)
    lines = kept.melt("t", [RUNNING, WAITING], "series", "requests").dropna()
    chart = draw_queue(
        present(kv=kept.loc[kept["kv"].notna(), ["t", "kv"]], requests=lines, losses=losses[["t", "victims", "who"]])
        | rules,
        look,
        span=look.y_domain or (0, 100),
        requests=look.y2_domain or (0, 1.2 * max([1.0, *lines["requests"]])),
    )
    words = [where]
    if "kv_use" in frame and frame["kv"].notna().any():
        words.append(translate("KV use up to {most:.0f} %", most=frame["kv"].max()))
    if known(frame, "preemptions"):
        words.append(translate("{n:,} preemptions", n=sum(gone)))
    words.append(translate("{n:,} readings", n=len(frame)))
    subtitle = [" · ".join(words)]
    if lacking:
        subtitle.append(translate("not told: {what}", what=translate(", ").join(map(translate, lacking))))
    return finish(chart, look, name=QUEUE_NAME, subtitle=subtitle, description=translate(DESCRIPTION))


def server_latency_chart(trace: Trace, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """P50, P90 and P99 of the server's own histograms, with the bucket that each lies in, beside our client's.

    A histogram tells in which bucket a quantile lies and no more: that is the band. The client's TTFT and whole
    requests count from the actual send, as the server's do from the arrival.

    Args:
        trace: the run.
        look: theme and width; the height follows from the rows (``x_domain`` s).
    """
    look = look or Look()
    where, rows = origin(trace), quantile_rows(histograms_of(trace))
    if not rows:
        why = translate(_NO_HISTOGRAMS if len(trace.tables["server"]) else _NONE)
        return message_chart(look, name=LATENCY_NAME, subtitle=where, message=why)
    names = [row["row"] for row in rows]
    seen = pd.DataFrame([one for one in _seen(trace) if one["row"] in names], columns=["row", "value"])
    span = look.x_domain or latency_span([trace])
    counts = dict.fromkeys((row["what"], row["count"]) for row in rows)
    subtitle = [
        f"{where} · "
        + translate("counted: {counts}", counts=translate(", ").join(f"{translate(w)} {n:,}" for w, n in counts)),
        translate("band: its bucket, no more is known · dot: interpolated · diamond: our client, from the send"),
    ]
    sources = present(quantiles=pd.DataFrame(rows), seen=seen.round(5))
    chart = draw_latency(sources, look, rows=names, span=span)
    look = replace(look, height=_ROW * len(rows))
    return finish(chart, look, name=LATENCY_NAME, subtitle=subtitle, description=translate(LATENCY_DESCRIPTION))


def latency_span(traces: list[Trace]) -> tuple[float, float]:
    """The decades, in seconds, that hold the quantiles of these runs and what the client measured."""
    values = [end for trace in traces for end in ends(quantile_rows(histograms_of(trace)))]
    values += [one["value"] for trace in traces for one in _seen(trace)]
    return decades(pd.Series(values, dtype=float))


def histograms_of(trace: Trace) -> Mapping[str, Any]:
    """What an attached server's histograms counted during a run; empty where it has none."""
    attached = (trace.meta.get("engine") or {}).get("attached") or {}
    found = attached.get("histograms") if isinstance(attached, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _readings(trace: Trace) -> list[dict[str, Any]]:
    return sorted(trace.tables["server"].to_pylist(), key=lambda row: row["t_s"])


def _rate_rows(readings: list[dict[str, Any]]) -> Iterator[tuple[float, str, float | None]]:
    """Each interval at its end; the first also at its beginning, since a line needs two ends."""
    for n, (before, after) in enumerate(pairwise(readings)):
        found = rates(before, after)
        for series in COUNTERS:
            if n == 0 and series in found:
                yield max(0.0, before["t_s"]), series, found[series]
            yield after["t_s"], series, found.get(series)


def _seen(trace: Trace) -> Iterator[dict[str, Any]]:
    """The same quantiles as our client measured them, of requests that it got an answer to."""
    requests = trace.requests
    ok = requests[requests["status"] == "ok"]
    measured = {
        TTFT: (ok["first_s"] - ok["sent_s"]).astype(float),
        GAP_ROW: metrics.gaps(trace)["gap_ms"].astype(float) / 1000,
        WHOLE: (ok["done_s"] - ok["sent_s"]).astype(float),
    }
    for what, values in measured.items():
        values = values[values > 0]
        if len(values):
            for share, at in SHARES.items():
                yield {"row": row_name(what, share), "value": float(np.quantile(values, at))}
