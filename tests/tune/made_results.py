"""MADE-UP results of trials, for the tests of what is done with them."""

from __future__ import annotations

from workbench.tune.trial import Point, Result


def result(number, hot, goodput=1.0, *, gap=100.0, limit=200.0, state="complete", seed=7, start_up=None, **more):
    """A play of a setting; ``gap`` is its P99 in ms, held against ``limit``; ``more`` are fields and figures."""
    names = ("engine_s", "label", "run", "error", "excess", "objectives")
    fields = {name: more.pop(name) for name in names if name in more}
    figures = {"goodput_per_s": goodput, "gap_p99_ms": gap, "ttft_p99_s": 1.0, "tokens_per_s": 100.0} | more
    over = {"gap_p99_ms": gap / limit - 1, "failed requests": 0.0}
    given = {"objectives": (goodput,), "excess": over, "engine_s": 2.0, "label": "live CPU"} | fields
    return Result(number, Point(hot, start_up or {}), seed, state, figures, **given)


class MadeUpPlayer:
    """Answers with what ``figures`` says of a setting and a seed: (goodput, gap); keeps what it was asked."""

    label = "live CPU"

    def __init__(self, figures):
        self.figures, self.asked = figures, []

    def play(self, asked, watch=None):
        self.asked.append(asked)
        goodput, gap = self.figures(asked.point, asked.seed)
        return result(
            asked.number, asked.point.hot, goodput, gap=gap, seed=asked.seed, start_up=dict(asked.point.start_up)
        )

    def close(self):
        pass
