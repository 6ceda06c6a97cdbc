"""Which trial is ahead, and whether a new one is progress."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.i18n import phrase
from workbench.tune.goal import Goal
from workbench.tune.trial import Result

TIED = 0.01  # share by which goodputs differ that count as equal
_GAIN = 0.01  # share by which a trial must be better to count as progress


def best_of(results: Sequence[Result], goal: Goal) -> Result | None:
    """The feasible trial with the best first objective; None where none is feasible.

    Goodputs within a hundredth of the best are as good, and the one whose requests had the most room is taken.
    """
    aim = goal.aims[0]
    sign = 1 if aim.direction == "maximize" else -1
    feasible = [one for one in results if one.feasible]
    if not feasible:
        return None
    top = max(sign * one.objectives[0] for one in feasible)
    tied = TIED * abs(top) if aim.name == "goodput" else 0.0
    ahead = [one for one in feasible if sign * one.objectives[0] >= top - tied]
    return max(ahead, key=lambda one: (one.figures.get("slack", 0.0), sign * one.objectives[0]))


def is_progress(before: Result | None, now: Result | None, goal: Goal) -> bool:
    """Whether the trial that is ahead now is better than the one that was by more than a hundredth."""
    if now is None or before is None:
        return now is not None
    if len(goal.objectives) > 1:
        return now is not before
    gain = abs(now.objectives[0] - before.objectives[0])
    return now is not before and gain > _GAIN * abs(before.objectives[0])


def at_the_top(best: Result | None, goal: Goal) -> str:
    """Why no setting can do more, where nearly all requests that come are served in time; empty where they are not."""
    if best is None or goal.objectives != ("goodput",):
        return ""
    served = best.figures.get("requests_per_s", 0.0)
    if not served or best.objectives[0] < (1 - _GAIN) * served:
        return ""
    return phrase(
        "{share:.0%} of the requests are served in time, no setting can do more", share=best.objectives[0] / served
    )
