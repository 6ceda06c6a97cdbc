"""How a comparison is played, on a workbench that is none: order, seeds, cache, stops, errors, knobs put back."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

from workbench import Workbench
from workbench.config import SLO, EngineConfig
from workbench.errors import EngineDiedError, EnvelopeError, InputError
from workbench.tune.compare import Comparing, compare
from workbench.tune.compare.turns import schedule
from workbench.workload.scenario import Scenario, load_scenario

STREAM = {"class": "chat", "arrivals": {"kind": "at_once", "count": 2}, "prompt_tokens": 8, "output_tokens": 40}
BURST = Scenario.model_validate({"name": "burst", "seed": 5, "streams": [STREAM], "settings_at_s": 1.0})


class Run:
    slo = SLO()

    def __init__(self, trace, status="complete", error=None):
        self.trace, self.meta, self.error = trace, {**trace.meta, "status": status}, error
        self.folder = "runs/one"

    def wait(self, timeout_s=None):
        if self.error:
            raise self.error
        return True


class Bench:
    """Plays at once: gaps of 40 ms with some noise, shorter by a tenth under budget 64."""

    def __init__(self, trace, label="live CPU", cache=True, noise=0.01):
        config = EngineConfig(enable_prefix_caching=cache, max_num_batched_tokens=1024)
        self.engine = SimpleNamespace(
            keeps_cache=cache, envelope=config.envelope, label=label, knobs=config.envelope.defaults.replace(budget=100)
        )
        self.engine.set_knobs = self.engine_set
        self.trace, self.noise = trace, noise
        self.rng = np.random.default_rng(3)
        self.played, self.resets, self.set, self.stopped = [], 0, [], 0
        self.end = {}  # by number of the play: what becomes of it

    def held(self, by):
        return contextlib.nullcontext()

    def engine_set(self, knobs):
        self.set.append(knobs)

    def reset_prefix_cache(self):
        self.resets += 1

    def stop_load(self, timeout_s):
        self.stopped += 1

    def run(self, scenario, *, setting, seed, salt, meta):
        self.played.append((setting.budget, seed, salt, scenario.settings_at_s, meta["comparison"]["what"]))
        status, error = self.end.get(len(self.played), ("complete", None))
        level = 0.04 * (0.9 if setting.budget == 64 else 1.0) * np.exp(self.rng.normal(0, self.noise))
        return Run(self.trace(level * self.rng.uniform(0.95, 1.05, 60)), status, error)


@pytest.fixture
def bench(made_trace):
    return Bench(made_trace)


def test_both_rounds_of_a_pair_have_the_same_seed_and_an_empty_cache(bench):
    found = Comparing(bench, "budget=64", "budget=256", BURST, warm_up=False).run()
    assert found.verdict.kind == "A better"
    assert len(found.rounds) >= 4
    assert bench.resets == len(bench.played) == 2 * len(found.rounds)
    seeds = [seed for _, seed, *_ in bench.played]
    assert seeds == [5 + i // 2 for i in range(len(seeds))]
    assert {(salt, at_s) for _, _, salt, at_s, _ in bench.played} == {(0, 0.0)}, "a setting is in force from the first"
    for one, (first, second) in zip(found.rounds, zip(bench.played[::2], bench.played[1::2], strict=True), strict=True):
        assert (first[0], second[0]) == ((64, 256) if one.order == "AB" else (256, 64))
    assert bench.set == [bench.engine.knobs], "as before"
    ratio = found.estimates["gap_p99"].ratio
    assert ratio == pytest.approx(0.9, abs=0.03)


def test_chance_decides_the_order_and_each_comes_first_as_often():
    many = [schedule(seed) for seed in range(64)]
    drawn = [[next(one) for _ in range(8)] for one in many]
    assert all(sorted(some[i : i + 2]) == ["AB", "BA"] for some in drawn for i in range(0, 8, 2))
    assert 16 < sum(some[0] == "AB" for some in drawn) < 48
    assert len({tuple(some) for some in drawn}) == 16, "2 to the power of 4 ways"


def test_it_warms_up_both_settings_on_a_live_engine_only(bench, made_trace):
    found = Comparing(bench, "budget=64", "budget=256", BURST).run()
    assert found.warm_up in (2, 4)
    assert [what for *_, what in bench.played[: found.warm_up]] == ["warm-up"] * found.warm_up
    assert [budget for budget, *_ in bench.played[:2]] == [64, 256]
    simulated = Bench(made_trace, label="simulated")
    assert Comparing(simulated, "budget=64", "budget=256", BURST).run().warm_up == 0


def test_it_goes_on_until_it_is_clear_or_the_rounds_are_used_up(made_trace):
    noisy = Bench(made_trace, noise=0.4)
    found = Comparing(noisy, "budget=128", "budget=256", BURST, rounds=5, warm_up=False).run()
    assert len(found.rounds) == 5
    assert found.verdict.kind == "needs more rounds"
    assert found.verdict.more > 10
    calm = Bench(made_trace)
    assert (
        len(Comparing(calm, "budget=64", "budget=256", BURST, warm_up=False, rounds=9).run(adaptive=False).rounds) == 9
    )


def test_a_workbench_has_it_as_a_method(bench):
    found = Workbench.compare_settings(bench, "budget=64", "budget=256", BURST, warm_up=False, rounds=4)
    assert found.verdict.kind == "A better"


def test_the_same_setting_twice_is_said_to_be(bench):
    found = compare(bench, "budget=128,chunk=32", "chunk=32,budget=128", BURST, warm_up=False)
    assert found.same
    assert "the same setting" in found.concerns[0]
    assert found.verdict.kind == "no difference shown"
    assert found.as_dict()["verdict"]["kind"] == found.verdict.kind


def test_an_interruption_keeps_the_rounds_ends_the_run_and_puts_the_knobs_back(bench):
    bench.end = {12: ("complete", KeyboardInterrupt())}
    comparing = Comparing(bench, "budget=64", "budget=256", BURST, warm_up=False)
    with pytest.raises(KeyboardInterrupt):
        comparing.run(adaptive=False)
    found = comparing.comparison
    assert len(found.rounds) == 5, "the round that was going on is not whole"
    assert found.stopped
    assert found.verdict.kind == "A better"
    assert bench.stopped == 1
    assert bench.set == [bench.engine.knobs]


def test_an_engine_that_dies_keeps_the_rounds(bench):
    bench.end = {4: ("failed", EngineDiedError("no memory left"))}
    comparing = Comparing(bench, "budget=64", "budget=256", BURST, warm_up=False)
    with pytest.raises(EngineDiedError):
        comparing.run()
    assert len(comparing.comparison.rounds) == 1
    assert comparing.comparison.verdict.words.startswith("needs 3 more rounds")


def test_a_load_that_somebody_stops_ends_it(bench):
    bench.end = {6: ("cancelled", None)}
    found = Comparing(bench, "budget=64", "budget=256", BURST, warm_up=False).run()
    assert found.stopped
    assert len(found.rounds) == 2


def test_requests_that_failed_are_a_concern(bench, made_trace):
    def half(gaps):
        trace = made_trace(gaps)
        requests = trace.tables["requests"]
        status = ["ok", "error"]
        trace.tables["requests"] = requests.set_column(requests.schema.get_field_index("status"), "status", [status])
        return trace

    bench.trace = half
    found = Comparing(bench, "budget=64", "budget=256", BURST, rounds=4, warm_up=False).run()
    assert "round 1: 50% of A's requests failed" in found.concerns


@pytest.mark.parametrize(
    ("a", "how", "says"),
    [
        ("budget=64", {"rounds": 0}, "rounds: got '0', expected 1 to 200"),
        ("budget=64", {"rounds": True}, "rounds: got 'True'"),
        ("budget=64", {"primary": "speed"}, "primary: got 'speed', expected one of throughput"),
        ("budget=64", {"resolve": 0.0}, "resolve: got '0.0'"),
        ("bugdet=64", {}, "A: got 'bugdet', expected one of .*did you mean budget"),
        ("64", {}, "A: got '64', expected name=value"),
        ("", {}, "A: got '', expected name=value"),
        ("budget=64,budget=128", {}, "A: budget, twice: got '64 and 128'"),
        ("budget=many", {}, "A: budget: got 'many'"),
        ("block_size=32", {}, "A: got 'block_size=32', expected hot knobs .* one engine; give block_size to both"),
    ],
)
def test_what_is_wrong_is_one_line_before_anything_is_played(bench, a, how, says):
    with pytest.raises(InputError, match=says):
        Comparing(bench, a, "budget=256", BURST, **how)
    assert not bench.played


def test_a_setting_outside_the_envelope_is_named(bench):
    with pytest.raises(EnvelopeError, match="B: budget: got '2048', expected at most 1024"):
        Comparing(bench, "defaults", "budget=2048", BURST)


def test_a_scenario_without_gaps_needs_another_measure(bench):
    single = BURST.model_copy(update={"streams": (BURST.streams[0].replace(output_tokens=1),)})
    with pytest.raises(InputError, match="scenario burst: got 'requests of 1 output tokens', expected requests of 2"):
        Comparing(bench, "budget=64", "budget=256", single)
    Comparing(bench, "budget=64", "budget=256", single, primary="throughput")


def test_a_measure_that_nobody_has_ends_it_after_two_rounds(bench):
    comparing = Comparing(bench, "budget=64", "budget=256", BURST, primary="long_ttft", warm_up=False)
    with pytest.raises(InputError, match=r"primary: got 'long_ttft'.*take another one"):
        comparing.run()
    assert len(comparing.comparison.rounds) == 2


def test_a_steady_load_leaves_out_its_lead_in_in_both_plays(bench, made_trace):
    steady = load_scenario("interactive")
    bench.trace = lambda gaps: made_trace(np.concatenate(([0.4] * 10, np.tile(gaps, 5))))
    found = Comparing(bench, "budget=64", "budget=256", steady, rounds=4, warm_up=False).run(adaptive=False)
    assert all(one.from_s > 3.5 for one in found.rounds), "ten gaps of 0.4 s"
    assert found.estimates["gap_max"].ratio == pytest.approx(0.9, abs=0.05), "those are in neither"


def test_the_other_way_round_is_said(bench, made_trace):
    found = Comparing(bench, "budget=64", "budget=256", BURST, warm_up=False).run()
    assert found.against == []
    for one in found.rounds:
        one.a["gap_max"], one.b["gap_max"] = 900.0 + one.number, 90.0 + one.number
    assert found.verdict.kind == "A better"
    assert found.against == ["longest gap"]
    table = found.table
    assert table.loc["gap_p99", ["better", "part"]].tolist() == ["A", "primary"]
    assert table.loc["gap_max", ["better", "part"]].tolist() == ["B", "exploratory"]
    assert table.loc["gap_p99", "level"] > table.loc["gap_max", "level"] == 0.95
