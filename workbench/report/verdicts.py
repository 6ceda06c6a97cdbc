"""Which of the articles' claims the runs of a report can judge, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from workbench import claims
from workbench.claims.verdict import Verdict
from workbench.errors import InputError
from workbench.report.run import ReportRun


def verdicts(runs: Sequence[ReportRun]) -> list[Verdict]:
    """A verdict on each claim that these runs have something to say about, in the order of the claims.

    A claim that asks for other runs than these (a long prompt, preemptions, classes) is left out.
    """
    found = [verdict for judge in _judges(runs) if (verdict := _tried(judge)) is not None]
    return sorted(found, key=lambda verdict: int(verdict.claim.lstrip("C")))


def _judges(runs: Sequence[ReportRun]) -> Iterator[Callable[[], Verdict]]:
    whole = next((run for run in runs if _tried(partial(claims.freeze, run)) is not None), None)
    with_long = [run for run in runs if _tried(partial(claims.chunk_steps, run)) is not None]
    if with_long:
        yield partial(claims.chunk_steps, *with_long)
    if whole is not None:
        yield partial(claims.freeze, whole)
        beside = [run for run in with_long if _tried(partial(claims.flat_gaps, whole, run)) is not None]
        if beside:
            yield partial(claims.flat_gaps, whole, *beside)
    yield partial(claims.preemption_cost, *runs)
    qos = [run for run in runs if run.setting.get("policy") == "qos"]
    if qos:
        plain = next((run for run in runs if run.setting.get("policy") in ("priority", "chunked")), None)
        yield partial(claims.qos_classes, *qos, against=plain)
    yield partial(claims.step_order, *runs)


def _tried(judge: Callable[[], Verdict]) -> Verdict | None:
    try:
        return judge()
    except InputError:
        return None
