"""One load: streams that follow on each other without a pause, recorded and shown as any run, and what came of it."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.parts.load_engine import LABEL, Bench, StubEngine
from benchmarks.parts.load_memory import Memory, growth, last
from benchmarks.parts.stats import say
from workbench.config import SLO
from workbench.errors import WorkbenchError
from workbench.meter.stub import Stub
from workbench.run import Run
from workbench.store.meta import read_meta
from workbench.telemetry import EngineMemory
from workbench.ui.live.board import Board
from workbench.ui.live.feed import Feed
from workbench.workload.request import Request, Workload

REQUEST_S = 30.0  # of one stream, before the next takes its place
_CLASS = "load"
_SPREAD_S = 0.002  # between two first requests
_PROMPT = (5, 6, 7, 8)
_LATE = 1.05  # over its planned time by so much, a load is ended
_SAY_S = 30.0


def workload(streams: int, minutes: float, rate: float, request_s: float = REQUEST_S) -> Workload:
    """Requests of single tokens, ``streams`` of them in flight at any time.

    Args:
        streams: how many.
        minutes: that it should take.
        rate: tokens a second of each.
        request_s: that a request should take.
    """
    request_s = min(request_s, minutes * 60)
    tokens = max(1, round(rate * request_s))
    rounds = math.ceil(minutes * 60 * rate / tokens)
    requests = tuple(
        Request(
            f"load/{tokens}/{1000 / rate:g}/{i}",
            _CLASS,
            0,
            min(i, streams) * _SPREAD_S,
            _PROMPT,
            tokens,
        )
        for i in range(streams * rounds)
    )
    return Workload(requests, concurrency={_CLASS: streams})


def play(
    streams: int, minutes: float, rate: float, folder: Path, *, panel: bool = True, late: float = _LATE
) -> dict[str, Any]:
    """Play a load to its end, or until its time is over.

    Args:
        streams: in flight at once.
        minutes: how long.
        rate: tokens a second of each, as far as the machine carries them.
        folder: of the run.
        panel: with what feeds the live charts, without a page.
        late: times ``minutes`` after which a load is ended that has not come to its end.
    """
    wanted = workload(streams, minutes, rate)
    offered = streams * rate
    say(f"{streams:,} streams x {rate:g} events/s for {minutes:g} min")
    with Stub() as stub:
        engine = StubEngine(stub)
        try:
            meta = {"label": LABEL, "scenario": "load", "slo": SLO().model_dump()}
            run = Run(engine, wanted, folder, meta, sources=EngineMemory().sources(stub.pid))
            faults: list[str] = []
            feed = _feed(engine, run, faults) if panel else None
            memory = Memory({"kernel": os.getpid(), "client": engine.client.pid, "stub": stub.pid})
            try:
                took_s = _follow(engine, run, stub, minutes * 60 * late, memory)
                open_bytes = _size(folder)
                readings = len(memory.rss["kernel"])
                with contextlib.suppress(WorkbenchError):  # rows were lost: that is what is counted below
                    run.wait()
            finally:
                memory.stop()
                if feed is not None:
                    feed.stop()
        finally:
            engine.stop()
        figures = counts(folder, stub.truth())
    kernel, client = memory.rss["kernel"][:readings], memory.rss["client"][:readings]
    return {
        "streams": streams,
        "minutes": took_s / 60,
        "events_per_s_offered": offered,
        "events_per_s": figures["tokens"] / took_s,
        "kernel_rss_growth_mib": growth(kernel),
        "client_rss_growth_mib": growth(client),
        "kernel_pss_growth_mib": growth(memory.pss["kernel"][:readings]),
        "client_pss_growth_mib": growth(memory.pss["client"][:readings]),
        "kernel_rss_mib": last(kernel),
        "client_rss_mib": last(client),
        "stub_rss_mib": last(memory.rss["stub"][:readings]),
        "kernel_closing_mib": max(0.0, memory.peak("kernel", readings) - last(kernel)),
        "open_bytes_per_token": open_bytes / max(1, figures["tokens"]),
        "faults": [*faults, *([str(run.error)] if run.error else [])],
        **figures,
    }


def counts(folder: Path, truth: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Tokens sent and recorded, request by request, and what the run says that it lost.

    Args:
        folder: a run that has ended.
        truth: of the stub server; see :meth:`workbench.meter.stub.Stub.truth`.
    """
    recorded: dict[str, int] = {}
    for batch in pq.ParquetFile(folder / "tokens.parquet").iter_batches(columns=["request", "n"]):
        for name, n in batch.to_pandas().groupby("request")["n"].sum().items():
            recorded[name] = recorded.get(name, 0) + int(n)
    sent = {name: int(of["sent"]) for name, of in truth.items() if "sent" in of}
    lost = sum(max(0, n - recorded.get(name, 0)) for name, n in sent.items())
    reported = int(read_meta(folder).get("dropped") or 0)
    ended = pq.read_table(folder / "requests.parquet", columns=["status"])["status"]
    tokens = sum(recorded.values())
    return {
        "tokens_sent": sum(sent.values()),
        "tokens": tokens,
        "invented": sum(max(0, n - sent.get(name, 0)) for name, n in recorded.items()),
        "reported_drops": reported,
        "unreported_drops": max(0, lost - reported),
        "requests": {one["values"]: one["counts"] for one in pc.value_counts(ended).to_pylist()},
        "bytes_per_token": _size(folder) / max(1, tokens),
    }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _feed(engine: StubEngine, run: Run, faults: list[str]) -> Feed:
    feed = Feed(Bench(engine, run), Board(), lambda error: faults.append(str(error)), lambda: "ready", lambda: None)  # type: ignore[arg-type]
    feed.start()
    return feed


def _follow(engine: StubEngine, run: Run, stub: Stub, end_s: float, memory: Memory) -> float:
    """Wait for the last token; returns the seconds from the run's zero to it."""
    told_s, finished = 0.0, False
    while not (run.done or engine.playing.done):
        time.sleep(0.2)
        if not finished and run.elapsed_s > end_s:
            finished = True
            stub.finish()
        if run.elapsed_s > told_s + _SAY_S:
            told_s = run.elapsed_s
            held = {name: readings[-1] for name, readings in memory.rss.items() if readings}
            words = ", ".join(f"{name} {mib:,.0f} MiB" for name, mib in held.items())
            say(f"{told_s:,.0f} s: {run.progress[0]:,} tokens; {words}")
    return run.elapsed_s
