"""Single plays on the real simulator, whose steps have a price that makes the answer known by hand."""

from __future__ import annotations

import pytest

from workbench.config import parse
from workbench.planning import Asked, Rule
from workbench.planning.plays import Player
from workbench.workload.scenario import Scenario


@pytest.fixture(scope="module")
def player(shared_simulator):
    one = Player()
    one.start()
    yield one
    one.close()


def place(stream, step_time, ttft_ms=300, rule=None, **fields):
    made = parse(Scenario, {"name": "made", "streams": [stream], "slo": {"ttft_ms": ttft_ms, "gap_ms": 300}})
    fields = {"async_scheduling": False, "max_model_len": 1024, "block_size": 16} | fields
    asked = Asked.of(made, model="qwen2.5-7b", count=1, start_up=fields, step_time=step_time, rule=rule or Rule())
    load = asked.load()
    return asked.place(load, 512, 0, "chunked"), load


def recorded(tmp_path, times, tokens=20, output=5):
    """A trace with requests at these times, s. SYNTHETIC."""
    rows = ["Timestamp,Request tokens,Response tokens", *(f"{at},{tokens},{output}" for at in times)]
    (tmp_path / "trace.csv").write_text("\n".join(rows))
    return {"class": "code", "arrivals": {"kind": "trace", "path": str(tmp_path / "trace.csv")}}


def test_bursts_of_a_recorded_trace_are_there_at_any_rate(player, constant, tmp_path):
    # Eight at once, four places: the other four wait 0.5 s, however far apart the bursts are.
    stream = recorded(tmp_path, [burst for burst in range(0, 90, 3) for _ in range(8)])
    for ttft_ms, met in ((700, True), (500, False)):
        at, load = place(stream, constant(0.1), ttft_ms, max_num_seqs=4)
        found = player.play(at, 0.5, 1.0)
        assert found.met is met, "0.1 s for the first four, 0.6 s for the others"
    assert (found.stalled, found.failed) == (0, 0)
    assert load.concerns.startswith("a recorded trace at another speed")


def test_a_recorded_trace_is_played_whole_as_pieces_of_it_have_other_rates(player, constant, tmp_path):
    # 300 in 300 s, then 300 in 75 s: the first 154, which the rule alone would take, come at half the rate of all.
    times = [*range(300), *(299 + 0.25 * i for i in range(1, 301))]
    at, _ = place(recorded(tmp_path, times), constant(0.01), rule=Rule(requests=100))
    found = player.play(at, 599 / 374, 0.05)
    begin, end = 0.25 * 374, 0.9 * 374
    assert found.met
    assert found.requests == sum(begin <= time <= end for time in times)


@pytest.mark.parametrize(("cache", "late"), [(False, True), (True, False)])
def test_prefix_hits_are_those_that_the_scenario_makes(player, constant, cache, late):
    # A prompt of 512 tokens takes 0.522 s. With 496 of them in the cache, 16 are left: 0.026 s.
    stream = {"class": "chat", "prompt_tokens": 16, "output_tokens": 1, "shared_prefix": {"tokens": 496},
              "arrivals": {"kind": "constant", "rate": 1.0, "count": 1}}  # fmt: skip
    at, load = place(stream, constant(0.01, 0.001), ttft_ms=400, enable_prefix_caching=cache)
    found = player.play(at, 1.0, 0.6)
    assert found.met is not late
    if not late:
        assert found.residence_s == pytest.approx(0.026)
    assert "prefix" in load.concerns
