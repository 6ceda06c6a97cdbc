"""When a load counts as met: the share of requests that meet the SLO, in the steady part of a play."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from pydantic import Field

from workbench.architecture import Architecture
from workbench.config import SLO, Frozen
from workbench.i18n import phrase, phrase_counted, phrases
from workbench.metrics.requests import request_metrics
from workbench.planning.step_facts import step_facts
from workbench.trace import Trace

_BEGIN, _END = 0.25, 0.9  # of the arrivals' span: before it the engine fills up, after it it runs empty
_STAYS = 3  # that the counted part lasts at least: times that a request stays
_GROWTH = 0.05  # s of wait a second: what comes is more than what is served by so much
_ALONE = 0.2  # requests in the engine on average, below which they hardly meet
_THIRD = 10  # requests, below which the growth of the wait is not looked at
_FEW = 40  # counted there: each is played alone, and their plays have the most steps


class Rule(Frozen):
    """What a capacity is: the most requests a second of which ``share`` meet the SLO."""

    share: float = Field(
        0.95, gt=0, le=1, description="Share of requests whose TTFT and gaps must both meet the SLO (goodput share)."
    )
    requests: int = Field(
        150,
        ge=10,
        le=100_000,
        description="Requests that are counted in a play, at least; those that arrive in its first 25 % (warm-up) and "
        "last 10 % (the engine runs empty) are played and not counted.",
    )
    most: int = Field(2000, ge=20, le=1_000_000, description="Requests in a play at most.")
    step: float = Field(
        0.15, gt=0, le=1, description="Rates tried are this far apart: a capacity is known to so much of itself."
    )
    seed: int | None = Field(None, ge=0, description="Replaces the scenario's; every play has the same requests.")

    @property
    def words(self) -> str:
        """The rule in a sentence, for tables and charts."""
        return phrase(
            "the most requests/s of which {share:.0%} meet TTFT and gap SLO while the wait does not grow; "
            "the same {requests} or more requests at every rate, without warm-up and end; rates {step:.0%} "
            "apart",
            share=self.share,
            requests=self.requests,
            step=self.step,
        )

    def count(self, rate: float, residence_s: float) -> int:
        """Requests of a play at a rate.

        The counted part lasts three times as long as a request stays, so that the engine is full from its begin on.
        Where requests hardly meet each other, 40 are enough.

        Args:
            rate: 1/s.
            residence_s: from arrival to last token of a typical request.
        """
        if rate * residence_s < _ALONE:
            counted: float = min(self.requests, _FEW)
        else:
            counted = max(self.requests, rate * _STAYS * residence_s)
        return int(min(np.ceil(counted / (_END - _BEGIN)), self.most))


@dataclass(frozen=True)
class Verdict:
    """What came of a load at one rate; all of simulated time.

    Attributes:
        rate: requests/s that came.
        met: whether the rule is met.
        share: of the counted requests, those that met the SLO.
        late: share whose first token was late, or that never began.
        stalled: share whose gaps were too long.
        failed: share that ended with an error, such as out of memory; ``why`` is one of them.
        requests: counted.
        residence_s: median time from arrival to last token.
        steady: whether the counted part lasted three times as long, so that the engine was as full as it gets.
        growth: seconds by which the wait for the first token grew in a second: what came beyond what was served.
        worst: the class with the smallest share of its own, and that share.
        facts: figures of the steps while they arrived, see :func:`workbench.planning.step_facts.step_facts`.
        why: an error's text.
        cut_s: when the play was given up, since too many had missed by then; shares are of those that were decided.
    """

    rate: float
    met: bool
    share: float
    late: float
    stalled: float
    failed: float
    requests: int
    residence_s: float
    steady: bool
    growth: float
    worst: tuple[str, float]
    facts: dict[str, float | None] = field(default_factory=dict)
    why: str = ""
    cut_s: float | None = None

    @property
    def misses(self) -> str:
        """Which part of the SLO is missed by how many, in words."""
        parts = {
            phrase("failed"): self.failed,
            phrase("TTFT late"): self.late - self.failed,
            phrase("gap too long"): self.stalled,
        }
        grows = (
            [phrase("the wait grows by {growth:.0%} of the time", growth=self.growth)] if self.growth > _GROWTH else []
        )
        said = [
            phrase("{name} for {part:.0%}", name=name, part=part) for name, part in parts.items() if round(part, 2) > 0
        ]
        given_up = phrase_counted("given up after {n} request", "given up after {n} requests", self.requests)
        cut = [given_up] if self.cut_s is not None else []
        return phrases(", ", [*(said + grows or [phrase("none missed")]), *cut])


def counted_from(last_arrival_s: float) -> tuple[float, float]:
    """From when until when requests that arrive are counted, s."""
    return last_arrival_s * _BEGIN, last_arrival_s * _END


def judge(
    trace: Trace,
    rate: float,
    slo: SLO,
    rule: Rule,
    architecture: Architecture | None = None,
    peak: float | None = None,
    cut_s: float | None = None,
) -> Verdict:
    """Hold a play against the rule.

    Args:
        trace: of the play, or what was known of it at ``cut_s``.
        rate: at which its requests came, 1/s.
        slo: the promise.
        rule: the rule.
        architecture: of the model, for the MFU.
        peak: FLOP/s of all GPUs together, for the MFU.
        cut_s: when it had failed; requests that were undecided then are not counted.
    """
    frame = request_metrics(trace, slo)
    begin, end = counted_from(float(frame["planned_s"].max()))
    counted = frame[frame["planned_s"].between(begin, end)]
    if cut_s is not None:
        end = min(end, cut_s)
        overdue = counted["ttft_s"].isna() & (counted["planned_s"] + slo.ttft_ms / 1e3 <= cut_s)
        missed = (counted["ttft_s"] * 1e3 > slo.ttft_ms) | (counted["slo_gap_ms"] > slo.gap_ms) | overdue
        counted = counted[missed | (counted["status"] == "ok")]
    if counted.empty:
        counted = frame
    status = counted["status"]
    failed = status == "error" if cut_s is not None else status != "ok"
    late = failed | ~(counted["ttft_s"] * 1e3 <= slo.ttft_ms)
    stalled = counted["slo_gap_ms"] > slo.gap_ms
    good = ~(late | stalled)
    share, growth = float(good.mean()), _growth(counted)
    by_class = good.groupby(counted["class"]).mean().sort_values(kind="stable")
    stay = float(counted["e2e_s"].median()) if (status == "ok").any() else float("inf")
    errors = trace.tables["requests"]["error"].drop_null().to_pylist() if failed.any() else []
    return Verdict(
        rate=rate,
        met=cut_s is None and share >= rule.share and growth <= _GROWTH,
        share=share,
        late=float(late.mean()),
        stalled=float(stalled.mean()),
        failed=float(failed.mean()),
        requests=len(counted),
        residence_s=stay,
        steady=end - begin >= _STAYS * stay,
        growth=growth,
        worst=(str(by_class.index[0]), float(by_class.iloc[0])),
        facts=step_facts(trace, begin, end, architecture, peak),
        why=str(errors[0]) if errors else "",
        cut_s=cut_s,
    )


def _growth(counted: pd.DataFrame) -> float:
    """By how much the wait for the first token grows in a second: medians of the last and the first third compared.

    Where more comes than is served, by a tenth say, the queue grows and each second adds a tenth to the wait; a TTFT
    that is promised generously shows that only after a long time.
    """
    waited = counted[["planned_s", "ttft_s"]].dropna().sort_values("planned_s")
    third = len(waited) // 3
    if third < _THIRD:
        return 0.0
    first, last = waited.iloc[:third].median(), waited.iloc[-third:].median()
    apart = float(last["planned_s"] - first["planned_s"])
    return float(last["ttft_s"] - first["ttft_s"]) / apart if apart > 0 else 0.0
