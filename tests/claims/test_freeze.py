"""C1 on runs where it is known how many streams stood still, and for how long."""

import pytest

from workbench.claims import freeze
from workbench.errors import InputError


def test_holds_when_all_stand_still_for_seconds(make):
    verdict = freeze(make([4000], [2.5]))
    assert (verdict.claim, verdict.outcome) == ("C1", "holds")
    assert "4 of 4 running streams" in verdict.sentence
    assert "2.5 s in which one step prefilled 4,000 tokens" in verdict.sentence
    assert "the usual one 10 ms" in verdict.sentence
    assert verdict.untested == "a prompt of 32,768 tokens, and how long it lasts on a GPU."


@pytest.mark.parametrize(
    ("fields", "outcome", "said"),
    [
        ({"seconds": [0.4]}, "holds in part", "4 of 4"),  # all, but not for seconds
        ({"seconds": [2.0], "lively": 1}, "holds in part", "3 of 4"),
        ({"seconds": [2.0], "lively": 2}, "holds in part", "2 of 4"),
        ({"seconds": [2.0], "lively": 3}, "does not hold here", "1 of 4"),
    ],
)
def test_other_outcomes(make, fields, outcome, said):
    verdict = freeze(make([4000], **fields))
    assert verdict.outcome == outcome
    assert said in verdict.sentence


def test_on_a_gpu_at_full_length_nothing_is_left_untested(make):
    assert freeze(make([32_768], [2.0], label="live GPU")).untested == ""


def test_the_article_cannot_mean_one_model_with_both_figures(make):
    # 2 * 68.45e9 weights * 32768 + 4 * 8192 * 80 * 32768 * 32769 / 2 = 4.49e15 + 1.41e15 FLOP; four H100s do 3.958e15.
    arithmetic = freeze(make([4000], [2.5])).arithmetic
    assert "5.9e+15 FLOP, 1.5 s at the full peak of 4 H100 SXMs" in arithmetic
    assert "3 s is 50% of that peak, 600 ms would be 248%: 600 ms is impossible and 3 s is not" in arithmetic
    assert "cannot both be of this model" in arithmetic


def test_a_run_that_shows_nothing_is_refused(make):
    with pytest.raises(InputError, match="2 steps"):
        freeze(make([2000, 2000], [1.0, 1.0]))
    with pytest.raises(InputError, match="no stream"):
        freeze(make([4000], [2.5], streams=0))
