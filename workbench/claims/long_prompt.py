"""What happened to the long prompt of a run, and to the streams beside it, from the step records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from workbench import metrics
from workbench.claims.verdict import Measured
from workbench.errors import InputError
from workbench.i18n import phrase
from workbench.metrics.requests import LONG_PROMPT

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LongPrompt:
    """The prefill of the longest prompt of a run.

    Attributes:
        request: its name.
        tokens: length of the prompt.
        chunks: prompt tokens in each of its steps.
        step_s: time of each of these steps, s.
        beside: tokens of other requests in the same steps.
        start_s: the worker began the first of these steps; seconds from the run's zero.
        end_s: the last of them ended.
        ttft_s: from the planned arrival (the send, where none was planned) to the first token.
        budget: token budget in force.
        chunk: chunk cap in force; 0 is off.
        policy: policy in force.
        streams: requests that got output both before and after the prefill, so that they ran all through it.
        before_ms: gaps of these streams that ended before the prefill, ms.
        during_ms: gaps of these streams that touch the prefill, ms.
        worst_ms: longest of these for each stream, in the order of ``streams``.
    """

    request: str
    tokens: int
    chunks: tuple[int, ...]
    step_s: tuple[float, ...]
    beside: tuple[int, ...]
    start_s: float
    end_s: float
    ttft_s: float
    budget: int
    chunk: int
    policy: str
    streams: tuple[str, ...]
    before_ms: Floats
    during_ms: Floats
    worst_ms: Floats

    @classmethod
    def of(cls, run: Measured) -> Self:
        """Find it.

        Raises:
            InputError: the run has no long prompt, no records of its steps, records that do not add up to the prompt
                (see :func:`_expect_whole`), or changed its knobs during the prefill.
        """
        table = metrics.request_metrics(run.trace, run.slo)
        long = table[table["prompt_tokens"] >= LONG_PROMPT]
        if long.empty:
            raise InputError("run", "no long prompt", f"a prompt of {LONG_PROMPT} tokens or more", "play one")
        row = long.loc[long["prompt_tokens"].idxmax()]
        steps = _prefill(run, str(row["request"]))
        _expect_whole(str(row["request"]), int(row["prompt_tokens"]), steps)
        start, end = float(steps["start"].iloc[0]), float(steps["end_s"].iloc[-1])
        knobs = _knobs(run, steps)
        streams, before, during, worst = _around(run, str(row["request"]), start, end)
        ttft = row["ttft_s"] if not np.isnan(row["ttft_s"]) else row["ttft_sent_s"]
        return cls(
            request=str(row["request"]),
            tokens=int(row["prompt_tokens"]),
            chunks=tuple(steps["tokens"].astype(int)),
            step_s=tuple((steps["end_s"] - steps["start"]).astype(float)),
            beside=tuple((steps["prefill_tokens"] + steps["decode_tokens"] - steps["tokens"]).astype(int)),
            start_s=start,
            end_s=end,
            ttft_s=float(ttft),
            budget=int(knobs["budget"]),
            chunk=0 if pd.isna(knobs["chunk"]) else int(knobs["chunk"]),
            policy=str(knobs["policy"]),
            streams=tuple(streams),
            before_ms=before,
            during_ms=during,
            worst_ms=worst,
        )

    @property
    def seconds(self) -> float:
        """From the beginning of its first step to the end of its last."""
        return self.end_s - self.start_s

    @property
    def tokens_per_s(self) -> float:
        """Prompt tokens that were computed a second of that time."""
        return sum(self.chunks) / self.seconds

    @property
    def setting(self) -> str:
        """The knob that cut it, in words."""
        if len(self.chunks) == 1:
            return phrase("one step")
        return phrase("chunk {size:,}", size=self.chunk) if self.chunk else phrase("budget {size:,}", size=self.budget)

    def during(self, percentile: float) -> float:
        """That percentile of the streams' gaps during the prefill, ms; NaN without a stream."""
        return float(np.percentile(self.during_ms, percentile)) if len(self.during_ms) else float("nan")

    @property
    def usual_ms(self) -> float:
        """Median gap of the streams before the prefill, ms; NaN without one."""
        return float(np.median(self.before_ms)) if len(self.before_ms) else float("nan")

    def row(self) -> dict[str, Any]:
        """One row of a table of runs."""
        return {
            "setting": self.setting,
            "budget": self.budget,
            "chunk": self.chunk,
            "prompt tokens": self.tokens,
            "steps": len(self.chunks),
            "largest chunk": max(self.chunks),
            "TTFT s": round(self.ttft_s, 2),
            "prefill tokens/s": round(self.tokens_per_s),
            "gap before P50 ms": round(self.usual_ms, 1),
            "gap during P50 ms": round(self.during(50), 1),
            "gap during P99 ms": round(self.during(99), 1),
            "gap during max ms": round(self.during(100), 1),
        }


def long_prompts(*runs: Measured) -> pd.DataFrame:
    """One row a run: what its long prompt and the streams beside it felt, for a table or a chart.

    Raises:
        InputError: see :meth:`LongPrompt.of`.
    """
    return pd.DataFrame([LongPrompt.of(run).row() for run in runs]).set_index("setting")


def _prefill(run: Measured, request: str) -> pd.DataFrame:
    """The steps that computed the prompt, in order, with the beginning of each."""
    batch = run.trace.batch
    mine = batch[(batch["request"] == request) & batch["prefill"].eq(True) & (batch["tokens"] > 0)]
    steps = mine[["step", "tokens", "context"]].merge(run.trace.steps, on="step").sort_values("step")
    steps["start"] = steps["start_s"].fillna(steps["scheduled_s"])
    steps = steps[steps["end_s"].notna() & steps["start"].notna()]
    if steps.empty:
        raise InputError(
            "run", f"no records of the steps that computed {request}", "step records", "play it on a live engine"
        )
    return steps


def _expect_whole(request: str, tokens: int, steps: pd.DataFrame) -> None:
    """Refuse a prefill that was not computed exactly once, or of which not every step is on record."""
    computed = int(steps["tokens"].sum())
    if computed == tokens:
        return
    if computed > tokens:
        why = "part of it was computed again after a preemption"
    elif steps["context"].iloc[0] == tokens - computed:
        why = "its beginning came from the prefix cache, or its first step records are missing"
    else:
        why = "step records are missing"
    got = f"{computed:,} tokens of prefill for {request} with {tokens:,}: {why}"
    raise InputError("run", got, "each prompt token computed once", "play it again")


def _knobs(run: Measured, steps: pd.DataFrame) -> pd.Series:
    revisions = steps["revision"].unique()
    if len(revisions) > 1:
        raise InputError("run", f"{len(revisions)} knob revisions during the prefill", "one", "play it without changes")
    knobs = run.trace.knobs
    found = knobs[knobs["revision"] == revisions[0]]
    if found.empty:
        raise InputError("run", f"no knobs of revision {revisions[0]}", "the knobs in force", "record it again")
    return found.iloc[0]


def _around(run: Measured, request: str, start: float, end: float) -> tuple[list[str], Floats, Floats, Floats]:
    """Streams that ran through the prefill; their gaps before it and during it, and the longest of each stream."""
    gaps = metrics.gaps(run.trace)
    gaps = gaps[gaps["request"] != request].assign(begin_s=gaps["at_s"] - gaps["gap_ms"] / 1e3)
    span = gaps.groupby("request", observed=True).agg(first=("begin_s", "min"), last=("at_s", "max"))
    through = sorted(str(name) for name in span[(span["first"] < start) & (span["last"] >= end)].index)
    gaps = gaps[gaps["request"].isin(through)]
    touches = (gaps["begin_s"] < end) & (gaps["at_s"] > start)
    longest = gaps[touches].groupby("request", observed=True)["gap_ms"].max()
    return (
        through,
        gaps.loc[gaps["at_s"] <= start, "gap_ms"].to_numpy(dtype=np.float64),
        gaps.loc[touches, "gap_ms"].to_numpy(dtype=np.float64),
        longest.reindex(through).to_numpy(dtype=np.float64),
    )
