"""A whole plan on plays that are made up: what is searched, compared, refused, stopped, and what it costs."""

from __future__ import annotations

import threading

import pytest

from workbench.errors import EngineError, EnvelopeError, InputError, ModelError
from workbench.planning import Asked, Planner, Rule, plan
from workbench.planning.plays import StoppedError

BREAKS = {(512, 0): 8.0, (2048, 0): 12.0, (2048, 512): 11.0}


class Player:
    """Answers from a table instead of playing; slow steps serve 0.7 as much, fast ones 1.5 as much."""

    breaks, verdict, stop_after = BREAKS, None, None

    def __init__(self, told):
        self.told, self.stopped, self.closed = told, False, False
        Player.made.append(self)

    def start(self, progress):
        progress(0.0, "starting")

    def play(self, place, rate, residence_s, step_time=None):
        if self.stopped:
            raise StoppedError("stopped")
        Player.played.append((place, rate))
        if len(Player.played) == Player.stop_after:
            self.stopped = True
        self.told()
        end = getattr(step_time, "end", None)
        factor = {None: 1.0, "high": 0.7, "low": 1.5}[end] * (1.5 if place.knobs.policy == "qos" else 1.0)
        most = self.breaks.get((place.knobs.budget, place.knobs.chunk), 2.0)
        return Player.verdict(rate, rate <= most * factor)

    def stop(self):
        self.stopped = True

    def close(self):
        self.closed = True


@pytest.fixture(autouse=True)
def _played(monkeypatch, made_verdict):
    Player.made, Player.played, Player.verdict, Player.stop_after = [], [], staticmethod(made_verdict), None
    monkeypatch.setattr("workbench.planning.planner.Player", Player)


def small(**more):
    return Asked.of("azure-like", **({"budgets": (512, 2048), "chunks": (0, 512)} | more))


def test_each_setting_has_a_capacity_a_band_and_a_label():
    found = Planner(small()).run()
    assert [(row.budget, row.chunk) for row in found.cells] == [(512, 0), (512, 512), (2048, 0), (2048, 512)]
    for row in found.cells:
        breaks = BREAKS[2048 if row.budget == 2048 else 512, row.chunk if row.budget == 2048 else 0]
        assert row.capacity.low <= breaks < row.capacity.high
        assert row.label == "simulated, roofline, uncalibrated"
    assert found.cells[1].same_as == (512, 0), "a cap as large as the budget cuts nothing"
    assert found.cells[1].capacity is found.cells[0].capacity
    assert (found.best.budget, found.best.chunk) == (2048, 0)
    low, high = found.best.rates()
    assert low <= 0.7 * 12.0 < low * 1.15
    assert high / 1.15 <= 1.5 * 12.0 < high
    assert [row.band.of for row in found.cells] == ["best", "best", "own", "best"]
    assert found.done
    assert found.plays == len(Player.played)
    assert all(player.closed for player in Player.made)


def test_a_play_that_was_too_short_is_played_again_longer(monkeypatch, made_verdict):
    stays = []

    class Short(Player):
        def play(self, place, rate, residence_s, step_time=None):
            stays.append(residence_s)
            found = super().play(place, rate, residence_s, step_time)
            return made_verdict(rate, found.met, residence_s=7.0, steady=residence_s >= 7.0)

    monkeypatch.setattr("workbench.planning.planner.Player", Short)
    found = Planner(small(chunks=(0,)), workers=1).run()
    assert all(row.capacity.at.steady for row in found.cells)
    assert max(stays) == pytest.approx(1.4 * 7.0)


def test_what_is_found_does_not_depend_on_how_many_work_at_it():
    one, two = (Planner(small(policies=("qos",)), workers=n).run().rows() for n in (1, 2))
    assert one == two


def test_a_calibrated_model_needs_no_band(constant):
    found = Planner(small(step_time=constant())).run()
    assert {row.band.of for row in found.cells} == {"none"}
    assert found.label == "simulated, constant, made up"


def test_policies_are_compared_at_the_best_setting_and_the_winner_is_the_best():
    found = Planner(small(policies=("qos", "chunked", "monolithic"))).run()
    assert [row.policy for row in found.policies] == ["qos", "chunked", "monolithic"]
    qos, chunked, whole = found.policies
    assert (qos.budget, qos.chunk) == (chunked.budget, chunked.chunk) == (2048, 0)
    assert chunked is found.best_cell
    assert qos.capacity.low <= 18.0 < qos.capacity.high
    assert found.best is qos
    assert "# without the policy qos" in found.best.command
    assert qos.band.of == "own"
    assert whole.budget == 16_384, "whole prompts need a budget as large as the longest"
    refused = Planner(
        small(policies=("monolithic",), start_up={"max_num_batched_tokens": 4096, "kv_cache_mib": 40_000})
    )
    assert refused.run().policies[0].budget == 16_384


def test_the_cost_is_the_price_over_the_tokens():
    found = Planner(small(price=2.5, need=100.0)).run()
    row, best = found.best.figures(2.5, 100.0), found.best
    tokens = best.rate * found.load.output_tokens
    assert row["output_tokens_per_s"] == pytest.approx(tokens)
    assert row["cost_per_million_output_tokens"] == pytest.approx(8 * 2.5 / (tokens * 3600) * 1e6)
    low, high = best.rates()
    assert row["cost_high"] == pytest.approx(row["cost_per_million_output_tokens"] * best.rate / low)
    assert row["cost_low"] == pytest.approx(row["cost_per_million_output_tokens"] * best.rate / high)
    assert row["replicas"] == 10, "100 over 10.8"
    assert row["replicas_worst"] == -int(-100 // low)
    assert found.as_dict()["best"]["cost_high"] == row["cost_high"]
    assert {"capacity_low_per_s", "label", "mfu", "largest_step_tokens"} <= set(found.table.columns)


def test_the_command_has_the_hub_name_and_the_settings():
    command = Planner(small()).run().best.command
    assert command.startswith("vllm serve meta-llama/Llama-3.1-70B-Instruct ")
    for words in ("--max-num-batched-tokens 2048", "--tensor-parallel-size 8", "--max-num-seqs 256"):
        assert words in command


def test_a_promise_that_nothing_meets_is_a_plan_with_the_reason(made_verdict):
    Player.verdict = staticmethod(lambda rate, met: made_verdict(rate, False, late=0.4))
    found = Planner(small()).run()
    assert found.done
    assert found.best is None
    assert "almost one at a time, the SLO is met by 60% (TTFT late for 40%" in found.why_nothing
    assert all(row.limit == "TTFT: even a lone request" for row in found.cells)
    assert all(row["capacity_per_s"] == 0 for row in found.rows())


def test_a_plan_that_is_stopped_keeps_what_there_is():
    Player.stop_after = 7
    found = Planner(small(), workers=1).run()
    assert (found.stopped, found.done) == (True, False)
    assert 0 < len(found.cells) < 4
    assert found.cells[0].capacity is not None
    assert found.as_dict()["complete"] is False
    assert all(player.closed for player in Player.made)


def test_it_can_be_stopped_from_another_thread():
    planner = Planner(small(), workers=1)
    threading.Thread(target=planner.stop).start()
    assert planner.run().stopped


def test_an_error_of_a_play_ends_the_plan_and_its_children(made_verdict):
    def broken(rate, met):
        raise EngineError("simulator: it broke")

    Player.verdict = staticmethod(broken)
    with pytest.raises(EngineError, match="it broke"):
        Planner(small(), workers=2).run()
    assert all(player.closed for player in Player.made)


def test_all_children_are_ended_also_where_one_cannot_be(monkeypatch):
    def close(player):
        player.closed = True
        raise EngineError("it does not go")

    monkeypatch.setattr(Player, "close", close)
    with pytest.raises(EngineError, match="it does not go"):
        Planner(small(chunks=(0,)), workers=2).run()
    assert [player.closed for player in Player.made] == [True, True]


def test_progress_counts_up_to_what_was_expected():
    seen = []
    Planner(small(), seen.append, workers=1).run()
    assert [one.plays for one in seen] == sorted(one.plays for one in seen)
    assert all(one.expected >= one.plays for one in seen)
    assert seen[-1].expected == seen[-1].plays == len(Player.played)


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ({"gpu": "H900"}, InputError, "^GPU: got 'H900', expected one of h100-sxm"),
        ({"count": 1}, InputError, r"memory of Llama-3.1-70B on 1 x H100 SXM: got .*take more GPUs"),
        ({"model": "gpt-9"}, ModelError, "^model: got 'gpt-9'"),
        ({"start_up": {"step_time": "calibrated"}}, InputError, "^step_time: got 'calibrated'"),
        ({"gpu": "cpu", "count": 1}, InputError, "^step_time: got 'auto', expected a calibration"),
        ({"need": 0}, InputError, "^need: got '0', expected a number above 0"),
        ({"price": -1.0}, InputError, "^price: "),
        ({"budgets": ()}, InputError, "^budget: got 'none'"),
        ({"chunks": (0, 0)}, InputError, "values that differ"),
        ({"policies": ("fastest",)}, EnvelopeError, "^policy: got 'fastest'"),
        ({"ttft_ms": 0.0}, InputError, "^ttft_ms: got '0.0'"),
        ({"rule": Rule(seed=2**40)}, InputError, "^seed: "),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_do(asked, kind, words):
    with pytest.raises(kind, match=words) as raised:
        plan("azure-like", **asked)
    assert "\n" not in str(raised.value)
    assert not Player.played


def test_a_budget_that_does_not_fit_is_a_row_that_says_why():
    row = Planner(small(budgets=(512, 900_000), chunks=(0,))).run().cells[1]
    assert row.figures()["capacity_per_s"] is None
    assert "activation" in row.refused
    assert row.limit == row.refused
