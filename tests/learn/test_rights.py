"""Right answers, against values worked out apart from the code."""

import pytest

from workbench import Workbench
from workbench.errors import InputError
from workbench.learn.rights import right


def test_of_steps_and_memory(run):
    steps = right("prefill_steps", run)
    assert steps.value == 3
    assert steps.because == "1,200 prompt tokens were computed, 500 in the largest of the steps."
    assert right("peak_activation_mib", run).number == pytest.approx(500 * 10 / 1024)
    assert right("computed_tokens", run).value == 1210
    assert right("gap_max_ms", run).number == pytest.approx(2000)
    assert right("ttft_max_s.long", run).number == pytest.approx(2.1)  # planned at 1.1 s, first token at 3.2 s
    assert right("stalls_of_prefill_percent", run).number == 100


def test_a_figure_that_is_not_there_is_one_line(run):
    with pytest.raises(InputError, match="did you mean gap_max_ms"):
        right("gap_max", run)


def test_of_several_runs(run, sized):
    both = {"one": run, "two": sized}
    best = right("best_of", both, name="computed_tokens", unit="tokens")
    assert (best.value, best.because) == ("one", "one 1,210 tokens, two 1,500 tokens.")
    assert right("best_of", both, name="computed_tokens", most=True).value == "two"
    assert right("share_left", run, sized, name="computed_tokens").number == pytest.approx(100 * 1210 / 1500)
    assert right("saved_percent", run, sized).number == pytest.approx(100 * (1 - 1210 / 1500))


def test_memory_by_the_fit(sized):
    assert right("memory_of_step", sized, tokens=300).number == pytest.approx(300 * 10 / 1024)
    most = right("tokens_for_memory", sized, mib=5)
    assert most.value == 512  # 5 MiB over 10 KiB
    assert most.cost(1024) == pytest.approx(10)


def test_a_budget_is_the_largest_that_keeps_the_gap():
    runs = [Workbench.open(f"data/runs/chats_beside_a_prompt-budget-{n}") for n in (320, 768)]
    most = right("budget_for_gap", *runs, ms=500)
    assert most.cost(most.value) <= 500 < most.cost(most.value + 1)


def test_blocks_and_work_done_twice():
    run = Workbench.open("data/runs/thrash-chunked")
    assert right("blocks_wanted", run).value == 60  # as the scenario's description says
    assert right("preemptions", run).value == 11  # as data/README.md says
    assert 0 < right("recomputed_percent", run).number < 100


def test_floors_are_those_of_the_article():
    # 64K: 1.46e16 FLOP over 989.4 TFLOP/s are 14.8 s of one H100: 35.1 of them for 420 ms.
    assert right("gpus_for", tokens=65_536, seconds=0.42).value == 36
    assert right("floor_s", tokens=65_536, gpus=8).number == pytest.approx(1.84, abs=0.01)
    # 32K: 2 x 68.45e9 weights (without embedding and head) x 32,768 are 4.486e15 FLOP, attention over causal pairs,
    # 4 x 8,192 x 80 x 32,768^2 / 2, another 1.407e15.
    assert right("floor_s", tokens=32_768, gpus=8).number == pytest.approx(5.893e15 / (8 * 989.4e12), rel=0.005)
