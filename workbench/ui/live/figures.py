"""The figures above the charts: what the requests of the last minute got, once a second."""

from __future__ import annotations

from collections import deque
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workbench import metrics
from workbench.config import SLO
from workbench.i18n import marked, translate
from workbench.store.compact import finish
from workbench.trace import TABLES, Trace, table_of

Kpi = dict[str, str]  # label, value, hint
_STALLS = 30  # in the list
_RATE_S = 5.0  # what tokens a second are counted over
_OF_REQUESTS = ("requests", "tokens", "batch")
_BEFORE_S = 60.0  # before a request's first token, for the steps of its prompt: when it was sent is told at its end
_LAG_S = 5.0  # between the end of a step and the arrival of its tokens, at most
MOST_TOKENS = 200_000  # arrivals that are looked through once a second; only streams of many minutes bring more
NONE = marked("n/a")


class LiveFigures:
    """Collects rows, and works the figures out with the same code as a finished run.

    The scope are the requests that were alive in the window, each from its beginning: a figure of half a stream
    would be another figure. Of more than ``most_tokens`` arrivals the oldest are left out all the same: a stream may go
    on for hours, and what is kept of it must not grow with it.

    Args:
        slo: the promise that makes a gap a stall.
        window_s: requests that ended before it are left out.
        meta: the run's metadata.
        most_tokens: arrivals that are kept.
    """

    def __init__(
        self, slo: SLO, window_s: float, meta: dict[str, Any] | None = None, most_tokens: int = MOST_TOKENS
    ) -> None:
        self._slo, self._window_s, self._meta, self._most = slo, window_s, meta or {}, most_tokens
        self._fresh: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
        self._tables: dict[str, pa.Table] = {name: schema.empty_table() for name, schema in TABLES.items()}
        self._arrivals: deque[tuple[float, int]] = deque()
        self._step: dict[str, Any] = {}
        self._reading: dict[str, Any] = {}  # of an attached server's /metrics
        self._stalled: tuple[Trace, pd.DataFrame] | None = None

    def take(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Take rows as a sink gets them."""
        if table == "memory":
            return
        if table == "server":
            self._reading = rows[-1] if rows else self._reading
            return
        self._fresh[table] += rows
        if table == "tokens":
            self._arrivals += ((row["client_s"], row["n"]) for row in rows)
            # How far a stream got is in its closing row; until then its TTFT is known from here.
            begun = [{"request": row["request"], "first_s": row["client_s"]} for row in rows if row["index"] == 0]
            self._fresh["requests"] += begun
        elif table == "steps" and rows:
            self._step = rows[-1]

    def trace(self, now_s: float) -> Trace:
        """What the figures are of, as a trace."""
        for name, rows in self._fresh.items():
            if rows:
                self._tables[name] = pa.concat_tables([self._tables[name], table_of(name, rows)]).combine_chunks()
                self._fresh[name] = []
        begin = now_s - self._window_s
        finished = finish(self._tables)
        requests = finished["requests"]
        gone = requests.filter(pc.field("done_s") < begin)["request"]
        if len(gone):
            for name in _OF_REQUESTS:
                own = pc.is_in(self._tables[name]["request"], value_set=gone.combine_chunks())
                self._tables[name] = self._tables[name].filter(pc.invert(own))
                own = pc.is_in(finished[name]["request"], value_set=gone.combine_chunks())
                finished[name] = finished[name].filter(pc.invert(own))
        # Of those that have begun: in a closed loop, requests that nobody has sent yet were planned for the beginning.
        oldest = pc.min(finished["requests"]["first_s"]).as_py()
        keep_from = begin if oldest is None else min(begin, oldest - _BEFORE_S)
        arrived = finished["tokens"]["client_s"]
        if len(arrived) > self._most:
            cut = arrived[len(arrived) - self._most].as_py()
            finished["tokens"] = finished["tokens"].filter(pc.field("client_s") >= cut)
            self._tables["tokens"] = self._tables["tokens"].filter(pc.field("client_s") >= cut)
            keep_from = max(keep_from, cut - _LAG_S)
            self._fold(keep_from)
        self._tables["steps"] = self._tables["steps"].filter(pc.field("end_s") >= keep_from)
        late = self._tables["client"]  # its first row says that somebody measures
        self._tables["client"] = pa.concat_tables([late[:1], late[1:].filter(pc.field("t_s") >= keep_from)])
        return Trace(finished, self._meta)

    def _fold(self, before_s: float) -> None:
        """Let go of what steps did that ended before then, but for how many tokens they made of each request.

        That number says which step made a later token; it becomes a row of the last of these steps.
        """
        steps, batch = self._tables["steps"], self._tables["batch"]
        last = pc.max(steps.filter(pc.field("end_s") < before_s)["step"]).as_py()
        if last is None:
            return
        old = batch.filter((pc.field("step") <= last) & (pc.field("emitted") > 0))
        made = old.group_by("request", use_threads=False).aggregate([("step", "max"), ("emitted", "sum")])
        names = {"request": "request", "step": "step_max", "emitted": "emitted_sum"}
        folded = [
            made[names[field.name]].cast(field.type) if field.name in names else pa.nulls(made.num_rows, field.type)
            for field in batch.schema
        ]
        fresh = batch.filter(pc.field("step") > last)
        self._tables["batch"] = pa.concat_tables([pa.table(folded, schema=batch.schema), fresh]).combine_chunks()

    def stalls(self, trace: Trace) -> dict[str, Any]:
        """The stalls of :meth:`trace`, for the page: ``text``, ``hint``, ``caption``, and ``rows`` of the longest.

        A row is when it ended (s), the stream, the gap (ms), the cause, and what exactly. Empty where none is.
        """
        found = self._found(trace)
        if found.empty:
            return {}
        counts = found["cause"].value_counts()
        causes = " · ".join(f"{translate(cause)} {counts[cause]:,}" for cause in metrics.CAUSES if cause in counts)
        longest = found.sort_values("gap_ms", ascending=False, kind="stable").head(_STALLS)
        columns = (longest[name] for name in ("at_s", "request", "gap_ms", "cause", "detail"))
        rows = [[float(at), str(who), float(gap), translate(str(cause)), translate(what or "")]
                for at, who, gap, cause, what in zip(*columns, strict=True)]  # fmt: skip
        return {
            "text": translate(
                "Stalls: {causes} · explained {share}", causes=causes, share=_share(metrics.explained(found))
            ),
            "hint": translate(
                "How many gaps above the promise have each cause; explained: their share with a known cause. "
                "Press to see the longest."
            ),
            "caption": translate(
                "The longest {shown} of {all:,} stalls of the last {window:,.0f} s",
                shown=len(rows),
                all=len(found),
                window=self._window_s,
            ),
            "rows": rows,
        }

    def kpis(self, now_s: float) -> list[Kpi]:
        """The figures, in the order in which they are shown."""
        return self.kpis_of(self.trace(now_s), now_s)

    def kpis_of(self, trace: Trace, now_s: float) -> list[Kpi]:
        """The same, of a trace that :meth:`trace` has given."""
        figures = metrics.summary(trace, self._slo, self._found(trace))
        while self._arrivals and self._arrivals[0][0] < now_s - _RATE_S:
            self._arrivals.popleft()
        rate = sum(n for _, n in self._arrivals) / max(min(now_s, _RATE_S), 0.1)
        gap, slo = (figures[f"gap_{name}_ms"] for name in ("p50", "p99", "max")), self._slo
        scope = translate("requests of the last {window:,.0f} s", window=self._window_s)
        return [
            _kpi(
                translate("gap P50 · P99 · max, ms"),
                " · ".join(_number(value) for value in gap),
                translate("all gaps pooled, {scope}", scope=scope),
            ),
            _kpi(
                translate("TTFT P50, s"),
                _ttft(figures["classes"]),
                translate("from the planned arrival, by class, {scope}", scope=scope),
            ),
            _kpi(
                translate("stalls"),
                _stalls(figures),
                translate("gaps above {gap:,g} ms and what caused most of them, {scope}", gap=slo.gap_ms, scope=scope),
            ),
            _kpi(
                translate("tokens/s"),
                _number(rate),
                translate("output tokens that arrived in the last {rate:g} s", rate=_RATE_S),
            ),
            _kpi(
                translate("goodput, 1/s"),
                _number(figures["goodput_per_s"], 2),
                translate(
                    "requests that ended within TTFT {ttft:,g} ms and gap {gap:,g} ms, {scope}",
                    ttft=slo.ttft_ms,
                    gap=slo.gap_ms,
                    scope=scope,
                ),
            ),
            _kpi(
                translate("KV in use"),
                self._kv(),
                translate("share of KV blocks; running and waiting requests, in the newest step"),
            ),
        ]

    def _found(self, trace: Trace) -> pd.DataFrame:
        """The stalls of a trace; the figures and the list share them."""
        if self._stalled is None or self._stalled[0] is not trace:
            self._stalled = trace, metrics.stalls(trace, self._slo)
        return self._stalled[1]

    def _kv(self) -> str:
        newest = self._step or self._reading
        use = newest.get("kv_use")
        if use is None:
            return translate(NONE)
        running, waiting = (
            translate(NONE) if (n := newest.get(name)) is None else n for name in ("running", "waiting")
        )
        return translate("{use:.0%} · {running} run, {waiting} wait", use=use, running=running, waiting=waiting)


def no_kpis(slo: SLO, window_s: float) -> list[Kpi]:
    """The same labels with nothing measured yet."""
    return [{**kpi, "value": translate(NONE)} for kpi in LiveFigures(slo, window_s).kpis(0.0)]


def _kpi(label: str, value: str, hint: str) -> Kpi:
    return {"label": label, "value": value, "hint": hint}


def _number(value: float | None, digits: int = 0) -> str:
    if value is None:
        return translate(NONE)
    return f"{value:,.{digits if abs(value) < 10 and digits else 0}f}"


def _ttft(classes: dict[str, dict[str, Any]]) -> str:
    known = {name: of["ttft_p50_s"] for name, of in classes.items() if of.get("ttft_p50_s") is not None}
    return " · ".join(
        f"{name} {value:,.2f}" if value < 10 else f"{name} {value:,.0f}" for name, value in known.items()
    ) or translate(NONE)


def _share(share: float | None) -> str:
    return translate(NONE) if share is None else f"{share:.0%}"


def _stalls(figures: dict[str, Any]) -> str:
    causes: dict[str, int] = figures["stall_causes"]
    if not figures["stalls"]:
        return "0" if figures["gap_count"] else translate(NONE)
    most = max(causes, key=lambda cause: causes[cause])
    return f"{figures['stalls']:,} · {translate(most)} ({causes[most]:,})"
