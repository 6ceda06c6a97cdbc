"""C7 on sweeps with a known cost of a step: seconds = fixed + each * tokens."""

import pytest

from workbench.claims import LongPrompt, golden_range
from workbench.claims.golden_range import StepCost, places
from workbench.errors import InputError

TOKENS = 16_384


def played(make, budget, chunk=0, *, fixed, each, slo_ms=200.0):
    size = chunk or budget
    pieces = [size] * (TOKENS // size)
    return make(pieces, [fixed + each * size] * len(pieces), budget=budget, chunk=chunk, slo_ms=slo_ms)


def sweep(make, *, fixed, each, slo_ms=200.0):
    runs = [played(make, n, fixed=fixed, each=each, slo_ms=slo_ms) for n in (512, 2048, 4096, 8192)]
    return [*runs, played(make, 16_384, 128, fixed=fixed, each=each, slo_ms=slo_ms)]


def test_holds_where_the_knee_lies_between_512_and_2048(make):
    # 10 ms + 60 us a token: 512 runs at 75 % of the rate without the fixed part, 2,048 at 92 %, 8,192 takes 500 ms.
    verdict = golden_range(*sweep(make, fixed=0.010, each=60e-6, slo_ms=300))
    assert verdict.outcome == "holds"
    assert (
        "2,048 and 4,096 do neither: yes, 512 stretches: yes, 8,192 brings pauses: yes, chunk 128 stretches: yes"
        in (verdict.sentence)
    )
    assert "Golden here (≥ 90% and ≤ 300 ms): budgets 2,048, 4,096" in verdict.sentence
    # 0.9 / 0.1 * 10 ms / 60 us = 1,500 tokens; (300 - 10) ms / 60 us = 4,833 tokens
    assert (
        "10.0 ms and 60 µs a token of prefill (60 at the prompt's end): full speed from chunks of 1,500"
        in verdict.sentence
    )
    assert "used up by one of 4,833" in verdict.sentence


def test_in_part_where_the_range_is_golden_but_8192_is_as_well(make):
    verdict = golden_range(*sweep(make, fixed=0.010, each=60e-6, slo_ms=600))
    assert verdict.outcome == "holds in part"
    assert "8,192 brings pauses: no" in verdict.sentence


def test_does_not_hold_where_the_range_already_has_pauses(make):
    verdict = golden_range(*sweep(make, fixed=0.002, each=300e-6))
    assert verdict.outcome == "does not hold here"
    assert "Golden here (≥ 90% and ≤ 200 ms): budgets 512" in verdict.sentence
    assert "2,048 and 4,096 do neither: no, 512 stretches: no" in verdict.sentence


def test_no_golden_budget_is_said(make):
    assert "no budget of the sweep" in str(golden_range(*sweep(make, fixed=0.002, each=600e-6)))


def test_each_place_is_judged_by_rate_and_gap(make):
    found = places(*sweep(make, fixed=0.010, each=60e-6, slo_ms=300))
    assert [(place.fast, place.smooth) for place in found] == [
        (False, True),
        (True, True),
        (True, True),
        (True, False),
        (False, True),
    ]


def test_attention_is_told_from_the_fixed_part(make):
    def run(size):
        pieces = [size] * (TOKENS // size)
        seconds = [0.004 + 50e-6 * size + 1e-8 * size * (size * n + size / 2) for n in range(len(pieces))]
        return LongPrompt.of(make(pieces, seconds, budget=size))

    cost = StepCost.of([run(256), run(1024), run(4096)])
    assert cost.fixed_s == pytest.approx(0.004, rel=1e-3)
    assert cost.token_s == pytest.approx(50e-6 + 1e-8 * TOKENS / 2, rel=1e-3)
    assert cost.last_token_s == pytest.approx(
        50e-6 + 1e-8 * (TOKENS - 128), rel=1e-3
    )  # in the middle of the last chunk


def test_what_the_claim_names_must_have_been_played(make):
    runs = sweep(make, fixed=0.01, each=60e-6)
    with pytest.raises(InputError, match="no budget 8192, chunk 128"):
        golden_range(*runs[:3])
    with pytest.raises(InputError, match="three step sizes"):
        StepCost.of([LongPrompt.of(runs[0])])


def test_what_lies_near_a_threshold_is_called_borderline(make):
    # 2,048 takes 132.9 ms and 4,096 255.8 ms a step; against 8,192 they run at 94 % and 98 % of the rate.
    sentence = golden_range(*sweep(make, fixed=0.010, each=60e-6, slo_ms=260)).sentence
    assert "budget 4,096 98%, 256 ms (borderline)" in sentence
    assert "budget 2,048 94%, 133 ms;" in sentence
    # 2,048 / (0.0165 + 0.12288) against 8,192 / (0.0165 + 0.49152): 91 %, within 3 % of 90 %
    sentence = golden_range(*sweep(make, fixed=0.0165, each=60e-6, slo_ms=300)).sentence
    assert "budget 2,048 91% (borderline), 139 ms;" in sentence


def test_a_budget_that_is_called_golden_has_its_figures(make):
    runs = sweep(make, fixed=0.002, each=100e-6)
    sentence = golden_range(*runs, played(make, 1024, fixed=0.002, each=100e-6)).sentence
    assert "budget 1,024 98%, 104 ms" in sentence


def test_a_setting_played_twice_or_with_another_policy_is_refused(make):
    runs = sweep(make, fixed=0.01, each=60e-6)
    with pytest.raises(InputError, match="budget 512 more than once"):
        golden_range(*runs, runs[0])
    with pytest.raises(InputError, match="chunk 128 more than once"):
        golden_range(*runs, played(make, 8192, 128, fixed=0.01, each=60e-6))
    for policy in ("monolithic", "decode_first"):
        with pytest.raises(InputError, match=f"policy {policy}"):
            golden_range(*runs, make([TOKENS], [1.0], budget=TOKENS, policy=policy))
