"""SYNTHETIC comparisons: figures of rounds on a machine whose speed drifts and whose noise hangs together."""

from itertools import pairwise

import numpy as np
import pytest

from workbench.trace import TABLES, Trace, table_of
from workbench.tune.compare.comparison import Comparison, Round
from workbench.tune.compare.turns import schedule
from workbench.workload.setting import Setting


class Machine:
    """Logarithm of the time that each play takes: a random walk and autocorrelated noise.

    Args:
        seed: of both.
        plays: how many.
        drift: standard deviation of a step of the walk; 0.08 is 1.7 times over some 45 plays.
        noise: standard deviation of the noise.
        rho: correlation of the noise of two plays, one after the other.
    """

    def __init__(self, seed, plays, drift=0.03, noise=0.04, rho=0.5):
        rng = np.random.default_rng([seed, 77])
        walk = np.cumsum(rng.normal(0, drift, plays))
        fresh = rng.normal(0, noise * np.sqrt(1 - rho**2), plays)
        held = np.empty(plays)
        last = rng.normal(0, noise)
        for i, new in enumerate(fresh):
            last = held[i] = rho * last + new
        self.logs = walk + held


@pytest.fixture
def simulate():
    """Plays a comparison of throughput, A faster than B by a factor, until the verdict is clear."""

    def play(seed, faster=1.0, rounds=20, **machine):
        found = Comparison(Setting(name="a"), Setting(name="b"), "made up", rounds, "throughput")
        logs, orders = Machine(seed, 2 * rounds, **machine).logs, schedule(seed)
        for number in range(rounds):
            value = {}
            for place, letter in enumerate(order := next(orders)):
                value[letter] = 100 * np.exp(-logs[2 * number + place]) * (faster if letter == "A" else 1.0)
            a, b = ({"throughput": value[letter]} for letter in "AB")
            found.rounds.append(Round(number, number, order, a, b))
            if found.verdict.clear:
                break
        return found

    return play


@pytest.fixture
def made_trace():
    """A trace of streams whose gaps (seconds) are given, one step a gap; steps are decode only."""

    def make(gaps, streams=2, prompt=8, factor=1.0, meta=None):
        ends = 0.1 + np.cumsum(np.asarray(gaps) * factor)
        times = np.concatenate(([0.1], ends))
        names = [f"chat-{n}" for n in range(streams)]
        requests = [
            {
                "request": name,
                "class": "chat",
                "priority": 1,
                "prompt_tokens": prompt,
                "planned_s": 0.0,
                "sent_s": 0.0,
                "first_s": 0.1,
                "last_s": times[-1],
                "done_s": times[-1],
                "output_tokens": len(times),
                "status": "ok",
            }
            for name in names
        ]
        tokens = [
            {"request": name, "index": i, "n": 1, "client_s": at, "engine_s": at}
            for name in names
            for i, at in enumerate(times)
        ]
        steps = [
            {"step": i, "start_s": begin, "end_s": end, "prefill_tokens": 0, "decode_tokens": streams}
            for i, (begin, end) in enumerate(pairwise(times))
        ]
        tables = {name: TABLES[name].empty_table() for name in TABLES}
        for name, rows in (("requests", requests), ("tokens", tokens), ("steps", steps)):
            tables[name] = table_of(name, rows)
        return Trace(tables, {"label": "live CPU", "status": "complete", **(meta or {})})

    return make
