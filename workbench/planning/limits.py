"""What keeps a setting from more: which part of the SLO breaks first, and what of the engine is used up then."""

from __future__ import annotations

from workbench.i18n import marked, phrase, phrases
from workbench.planning.capacity import Capacity
from workbench.planning.rule import Verdict
from workbench.planning.step_facts import used_up

_RARE = 0.05  # share of requests, below which it is the growing queue that breaks the rule
_ALIKE = 0.5  # a part of the SLO that is missed at least this often, beside the one missed most


def limiting(capacity: Capacity, max_running: int) -> str:
    """A few words: "gap: steps with prefill", "TTFT: KV pool full"; at the lowest rate that was not met.

    Args:
        capacity: of the setting.
        max_running: its running cap.
    """
    over = capacity.over
    if over is None:
        return phrase("nothing up to {low:.3g}/s", low=capacity.low)
    part = _part(over)
    if not capacity.low:
        return phrase("{part}: even a lone request", part=part)
    return phrase("{part}: {resource}", part=part, resource=_resource(over, max_running))


def _part(over: Verdict) -> str:
    """The parts of the SLO that are missed most; "throughput" where more comes than is served, and little is missed."""
    shares = {marked("errors"): over.failed, "TTFT": over.late - over.failed, "gap": over.stalled}
    most = max(shares.values())
    if most < _RARE and over.growth > 0:
        return phrase("throughput")
    missed = [
        name if name == "TTFT" else phrase(name)
        for name, share in shares.items()
        if most > 0 and share >= _ALIKE * most
    ]
    return phrases(" and ", missed) if missed else "SLO"


def _resource(over: Verdict, max_running: int) -> str:
    if over.failed and over.why:
        return over.why
    if spent := used_up(over.facts, max_running):
        return spent
    return (
        phrase("steps with prefill")
        if (over.facts["prefill_time"] or 0.0) >= 1 / 2 or over.stalled > over.late
        else phrase("decode steps")
    )
