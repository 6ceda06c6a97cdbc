"""The fit finds the law that made the steps, and says when it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import metrics
from workbench.metrics.prefill_cost import PrefillCost
from workbench.trace import Trace

FIXED, TOKEN, PAIR, DECODE, CONTEXT = 0.02, 2e-3, 1e-6, 1e-3, 1e-6


def law(chunk, before, decodes, context):
    pairs = sum(before + n + 1 for n in range(chunk))
    return FIXED + TOKEN * chunk + PAIR * pairs + DECODE * decodes + CONTEXT * decodes * context


@pytest.fixture
def run(trace):
    """Build a run of (chunk, context before it, decodes, context of each decode), timed by ``law``."""

    def build(plan, law=law):
        steps, batch, now = [], [], 1.0
        for number, (chunk, before, decodes, context) in enumerate(plan):
            took = law(chunk, before, decodes, context)
            steps.append({"step": number, "start_s": now, "end_s": now + took})
            steps[-1] |= {"prefill_tokens": chunk, "decode_tokens": decodes}
            now += took
            for n in range(decodes):
                row = {"step": number, "request": f"c{n}", "tokens": 1, "context": context, "prefill": False}
                batch.append(row | {"emitted": 1})
            if chunk:
                row = {"step": number, "request": "doc", "tokens": chunk, "context": before, "prefill": True}
                batch.append(row | {"emitted": 0})
        return Trace(trace(steps=steps, batch=batch).tables, {"label": "live CPU"})

    return build


PLAN = [(0, 0, n % 4 + 1, 100 * n) for n in range(12)]
PLAN += [(size, size * n, 3, 700 + n) for size in (64, 256, 512) for n in range(8)]


def test_the_law_is_found(run):
    cost = metrics.prefill_cost(run(PLAN))
    assert (cost.token_s, cost.pair_s, cost.fixed_s) == pytest.approx((TOKEN, PAIR, FIXED), rel=1e-3)
    assert cost.error < 1e-6
    assert cost.steps == 24
    assert cost.max_tokens == 512 * 8
    assert cost.source == "live CPU, measured over 24 prefill steps"
    assert cost.seconds(1000) == pytest.approx(TOKEN * 1000 + PAIR * 1000 * 1001 / 2, rel=1e-3)
    assert cost.seconds(10, 100) == pytest.approx(TOKEN * 10 + PAIR * sum(range(101, 111)), rel=1e-3)


def test_noise_and_a_few_disturbed_steps_do_not_bend_it(run):
    draw = np.random.default_rng(3)

    def noisy(*part):
        took = law(*part) * draw.normal(1, 0.03)
        return took * 5 if draw.random() < 0.08 else took

    cost = metrics.prefill_cost(run(PLAN * 8, noisy))
    assert cost.seconds(2000) == pytest.approx(TOKEN * 2000 + PAIR * 2000 * 2001 / 2, rel=0.05)
    assert 0.005 < cost.error < 0.05


def test_steps_of_one_size_and_nothing_else_put_all_of_the_time_on_the_tokens(run):
    cost = metrics.prefill_cost(run([(256, 0, 0, 0)] * 6))
    took = FIXED + TOKEN * 256 + PAIR * 256 * 257 / 2
    assert cost.fixed_s == 0
    assert cost.seconds(256) == pytest.approx(took)


def test_nothing_negative_where_the_context_does_not_count(run):
    cost = metrics.prefill_cost(run(PLAN, lambda chunk, before, *_: 0.01 + 1e-3 * chunk - 1e-8 * before))
    assert cost.pair_s >= 0
    assert cost.token_s == pytest.approx(1e-3, rel=0.01)


@pytest.mark.parametrize("plan", [[], PLAN[:12], PLAN[:15]])
def test_too_few_prefill_steps(run, plan):
    assert metrics.prefill_cost(run(plan)) is None


def test_steps_with_a_part_missing_or_no_time_are_left_out(run):
    whole = run(PLAN)
    steps, batch = whole.tables["steps"].to_pylist(), whole.tables["batch"].to_pylist()
    steps[20]["end_s"] = steps[20]["start_s"]
    steps[30]["prefill_tokens"] += 50
    tables = {**whole.tables, "steps": whole.tables["steps"].from_pylist(steps, whole.tables["steps"].schema)}
    cost = metrics.prefill_cost(Trace(tables, whole.meta))
    assert cost.steps == 22
    assert cost.token_s == pytest.approx(TOKEN, rel=1e-2)
    assert len(batch)


def test_a_cost_by_hand():
    cost = PrefillCost(token_s=1e-3, pair_s=1e-6, fixed_s=0.01, source="by hand")
    assert cost.seconds(3) == pytest.approx(3e-3 + 6e-6)
