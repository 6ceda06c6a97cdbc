"""C9 on runs whose MFU is known: 4 streams decode, a prompt rides along."""

import pytest

from workbench.architecture import Architecture
from workbench.claims import utilisation
from workbench.errors import InputError
from workbench.trace import Trace

MODEL = Architecture("tiny", 1, 64, 1, 1, 64, 64, 128, 256)


def run(make, peak, *, usual=0.010, seconds=0.020, pieces=8, streams=4, **fields):
    made = make([100] * pieces, [seconds] * pieces, usual=usual, streams=streams, **fields)
    compute = {"architecture": MODEL.as_dict(), "peak": {"flops_per_s": peak, "source": "made-up peak"}}
    made.trace = Trace(made.trace.tables, {**made.trace.meta, "compute": compute})
    return made


# A token is 2 x 40,960 FLOP and its head 2 x 16,384, so 4 decodes are about 0.46 MFLOP: 46 MFLOP/s in steps of 10 ms.
# A chunk of 100 adds 8.2 MFLOP for its weights and, in the middle of the prompt, 10 MFLOP for 40,000 pairs.
@pytest.mark.parametrize(
    ("peak", "seconds", "outcome"),
    [
        (1e9, 0.020, "holds"),  # 4.7 % and 95 %
        (1e9, 0.300, "holds in part"),  # decode leaves it idle, and mixed steps are a third better
        (2e8, 0.020, "holds in part"),  # decode uses 23 %, mixed steps more than twice that (a peak set too low)
        (2e8, 0.270, "holds in part"),  # 23 %, and mixed half as much again: a rise, by less than claimed
        (2e8, 0.400, "does not hold here"),  # 23 % and 24 %
    ],
)
def test_idle_and_raised_each_count(make, peak, seconds, outcome):
    verdict = utilisation(run(make, peak, seconds=seconds))
    assert verdict.outcome == outcome
    assert verdict.claim == "C9"
    assert "15 steps of decodes alone (4.0 tokens each)" in verdict.sentence
    assert "8 mixed steps (104.0 tokens each)" in verdict.sentence
    assert "Peak: made-up peak." in verdict.sentence
    assert "from about 44 streams on" in verdict.arithmetic
    assert "a GPU" in verdict.untested


def test_the_figures_are_those_of_the_steps(make):
    verdict = utilisation(run(make, 1e9))
    # attention: 4 streams, contexts 0 to 9 and 18 to 22, each with itself; 2 x 128 FLOPs a pair
    decode = 15 * 4 * (2 * 40_960 + 2 * 16_384) + 4 * (sum(range(1, 11)) + sum(range(19, 24))) * 256
    assert f"reached {decode / (15 * 0.010 * 1e9):.1%} MFU" in verdict.sentence


def test_the_same_load_kept_apart_is_named(make):
    verdict = utilisation(run(make, 1e9), run(make, 1e9, seconds=0.2))
    assert "reached 51.1%, with prefill kept apart 9.1%" in verdict.sentence  # 0.31 and 1.75 s


def test_a_run_without_mixed_or_decode_steps_is_refused(make):
    with pytest.raises(InputError, match="got '4 mixed steps', expected at least 5"):
        utilisation(run(make, 1e9, pieces=4))
    with pytest.raises(InputError, match="0 decode steps"):
        utilisation(run(make, 1e9, streams=0))


def test_a_run_without_a_peak_says_why(make):
    made = make([100] * 8, [0.02] * 8)
    with pytest.raises(InputError, match="does not say which model it was"):
        utilisation(made)
    blind = run(make, 1e9)
    compute = {"architecture": MODEL.as_dict(), "peak": None, "missing": {"peak": "torch is not installed"}}
    blind.trace = Trace(blind.trace.tables, {"compute": compute})
    with pytest.raises(InputError, match="torch is not installed"):
        utilisation(blind)
