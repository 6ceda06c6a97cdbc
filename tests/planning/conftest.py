"""Step-time models whose answers can be worked out by hand, and plans that nothing is simulated for."""

from __future__ import annotations

import pytest

from workbench.planning.rule import Verdict
from workbench.simulate.steptime import Band


class Constant:
    """Every step takes as long as the other, whatever is in it, but for a price of each prompt token."""

    name, calibrated = "constant", True

    def __init__(self, seconds_each=0.1, token_s=0.0):
        self.each, self.token_s = seconds_each, token_s

    def seconds(self, step):
        return self.each + self.token_s * step.prefill_tokens

    interval = seconds

    def outside(self, step):
        return ""

    def band(self, step):
        return Band(*[self.seconds(step)] * 3)

    def describe(self):
        return {"name": self.name, "calibrated": True, "label": "made up"}

    def spec(self):
        return {"kind": "linear", "base_s": self.each, "prefill_token_s": self.token_s}


def verdict(rate, met, **more):
    """What comes of a play; SYNTHETIC."""
    share = 1.0 if met else 0.6
    fields = {
        "share": share, "late": 1 - share, "stalled": 0.0, "failed": 0.0, "requests": 100, "residence_s": 1.0,
        "steady": True, "growth": 0.0, "worst": ("chat", share),
        "facts": {"busy": 0.9, "prefill_time": 0.8, "kv_max": 0.4, "kv_mean": 0.2, "running_max": 9.0,
                  "waiting_mean": 0.0, "at_cap": 0.0, "preemptions": 0.0, "largest_step": 512.0,
                  "largest_prompt": 500.0, "mfu": 0.3},
    }  # fmt: skip
    return Verdict(rate, met, **(fields | more))


@pytest.fixture(scope="session")
def made_verdict():
    return verdict


@pytest.fixture(scope="session")
def constant():
    return Constant
