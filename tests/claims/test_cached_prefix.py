"""C15: the longest cached prefix first, on runs of which each lookup is known."""

import pytest

from workbench.claims import cache_lookups, cached_prefix
from workbench.errors import InputError

# Two groups of a prefix of 40 tokens; blocks of 16 tokens, so that 32 of the 40 can be shared.
META = {
    "engine": {"config": {"model": "smollm2"}, "resolved": {"block_size": 16}},
    "workload": {"scenario": {"streams": [{"class": "chat", "shared_prefix": {"tokens": 40, "groups": 2}}]}},
}
REQUESTS = {f"chat-{n}": {"class": "chat", "prompt_tokens": 50} for n in range(4)}


def played(cached=32, *, computed=None, order=(0, 1, 2, 3)):
    """Four prompts of 50 tokens, one a step; the third and fourth have a prefix that is there, and take ``cached``."""
    steps = []
    for n in order:
        context = cached if n >= 2 else 0
        steps.append({f"chat-{n}": (50 - context if computed is None or n < 2 else computed, context, True, 1)})
    return steps


@pytest.fixture
def run(play):
    return lambda steps, **more: play(steps, REQUESTS, meta=META, **more)


def off():
    """Without the cache each prompt is computed in two steps."""
    return [part for n in range(4) for part in ({f"chat-{n}": (40, 0, True, 0)}, {f"chat-{n}": (10, 40, True, 1)})]


def test_every_figure_of_a_known_run(run):
    table = cache_lookups(run(played()))
    assert list(table.index) == ["chat-0", "chat-1", "chat-2", "chat-3"]
    assert list(table["cached_tokens"]) == [0, 0, 32, 32]
    assert list(table["computed_tokens"]) == [50, 50, 18, 18]
    assert list(table["shared_tokens"].fillna(-1)) == [-1, -1, 32, 32]  # whole blocks of 40 tokens
    assert list(table["prefill_steps"]) == [1] * 4
    assert list(table["ttft_s"]) == pytest.approx([0.6, 0.7, 0.8, 0.9])


def test_fewer_tokens_and_nothing_twice_hold(run):
    verdict = cached_prefix(run(off()), run(played()))
    assert (verdict.claim, verdict.outcome) == ("C15", "holds")
    assert "With the cache 136 prompt tokens were computed, without it 200: 32% less" in verdict.sentence
    assert "4 of 4 requests computed exactly what the cache did not have" in verdict.sentence
    assert "2 of 2 took every whole block of a prefix that was there" in verdict.sentence
    # without: chat-2 and chat-3 after six and eight steps, 1.1 and 1.3 s; with: 0.8 and 0.9 s
    assert "median TTFT of the 2 with a hit goes from 1.20 s to 0.85 s" in verdict.sentence
    assert "the cache together with chunks" in verdict.untested


def test_a_shorter_prefix_than_there_is_is_not_the_longest(run):
    verdict = cached_prefix(run(off()), run(played(cached=16)))
    assert verdict.outcome == "holds in part"
    assert "0 of 2 took every whole block" in verdict.sentence


def test_tokens_that_are_computed_though_they_are_cached_are_found(run):
    verdict = cached_prefix(run(off()), run(played(computed=20)))
    assert verdict.outcome == "holds in part"
    assert "2 of 4 requests computed exactly what the cache did not have" in verdict.sentence


def test_a_prefix_that_is_still_being_computed_is_not_there_yet(run):
    """The third request begins in the same step as the first one, whose prefix it shares."""
    steps = [{"chat-0": (50, 0, True, 1), "chat-2": (50, 0, True, 1)}, {"chat-1": (50, 0, True, 1)}, *played()[3:]]
    assert list(cache_lookups(run(steps))["shared_tokens"].isna()) == [True, True, True, False]


def test_nothing_saved_does_not_hold(run):
    with pytest.raises(InputError, match="no request with tokens from the cache"):
        cached_prefix(run(off()), run(off()))
    slow = [*played(), {"chat-3": (64, 50, True, 0)}]  # more was computed than without
    verdict = cached_prefix(run(off()), run(slow))
    assert verdict.outcome == "does not hold here"


def test_a_run_that_reads_the_cache_is_no_baseline(run):
    with pytest.raises(InputError, match="off: got 'a request with tokens from the cache'"):
        cached_prefix(run(played()), run(played()))


def test_reset_chunks_and_preemption_are_told(run):
    chunked = [
        {"chat-0": (40, 0, True, 0)},
        {"chat-0": (10, 40, True, 1)},
        {"chat-1": (40, 0, True, 0)},
        {"chat-1": (10, 40, True, 1)},
        {"chat-2": (18, 32, True, 1)},
        {"chat-3": (18, 32, True, 1)},
    ]

    def lost(again):
        back = [({"chat-1": (50, 0, True, 1)}, {"preempted": ["chat-0"]}), {"chat-0": (again, 51 - again, True, 1)}]
        return run([{"chat-0": (50, 0, True, 1)}, {"chat-0": (1, 50, False, 1)}, *back])

    verdict = cached_prefix(
        run(off()), run(played()), reset=run(played()), chunked=run(chunked), preempted=lost(3), preempted_off=lost(51)
    )
    assert verdict.outcome == "holds"
    assert "After a reset of the cache 136 were computed." in verdict.sentence
    assert "Chunked, a prompt without a hit took 2 steps and one with a hit 1 (medians)." in verdict.sentence
    said = "Of the tokens that lost their KV in a preemption, 3 of 51 with the cache, 51 of 51 without it were computed"
    assert said in verdict.sentence
    assert verdict.untested == "a GPU, where blocks are 16 tokens."


def test_without_the_plan_of_the_workload_the_longest_is_untested(run, play):
    verdict = cached_prefix(run(off()), play(played(), REQUESTS))
    assert verdict.outcome == "holds"
    assert verdict.untested.startswith("whether it is the longest prefix")


def test_a_run_without_steps_is_refused(run):
    with pytest.raises(InputError, match="no step records"):
        cache_lookups(run([]))
