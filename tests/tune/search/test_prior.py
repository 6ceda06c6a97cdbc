"""A simulation says where to begin, is corrected by what is measured, and says when to end."""

import pytest
from search_stand_ins import BUDGETS, GOAL, Landscape, a_space

from workbench.config import EngineConfig
from workbench.simulated_config import SimulatedConfig
from workbench.tune.search.prior import Prior, simulate, simulated_config
from workbench.tune.search.study import Study
from workbench.tune.search.tuning import Allowance, Tuning
from workbench.tune.trial import Asked, Point


@pytest.fixture
def prior():
    return simulate(Landscape(), a_space(), GOAL)


def at(budget, chunk=0):
    return Point({"policy": "chunked", "budget": budget, "chunk": chunk, "max_running": 16})


def test_the_best_of_the_simulation_is_suggested_first(prior):
    assert len(prior.results) == len(list(a_space().points()))
    assert prior.suggest([], None, ()) == at(256)


def test_a_measurement_moves_what_is_predicted_nearby(prior):
    # Gaps are twice what was simulated: budget 256 has 358 ms, and 128, of which 90 ms were foretold, has 179.
    engine = Landscape(off=2.0)
    measured = [engine.play(Asked(0, at(256), 0))]
    assert prior.suggest(measured, None, {at(256).key}) == at(128)
    by_point = {one.point.key: one for one in prior.predicted(measured)}
    assert by_point[at(256).key].excess == pytest.approx(2 * 0.7 * 256 / 200 - 1, abs=1e-4)
    assert by_point[at(128).key].excess == pytest.approx(2 * 0.7 * 128 / 200 - 1, abs=1e-4)


def test_nothing_is_suggested_where_nothing_better_is_predicted(prior):
    best = Landscape().play(Asked(0, at(256), 0))
    assert prior.suggest([best], best, {at(256).key}) is None


def test_a_search_ends_soon_after_a_simulation_that_is_right(prior, tmp_path):
    study = Study.create("right", GOAL, a_space(), root=tmp_path)
    Tuning(study, Landscape(), Allowance(trials=20, patience=8), prior).run()
    assert study.results[0].point == at(256)
    assert len(study.results) == 3  # and a quarter of its patience
    assert study.best.point == at(256)


def test_a_search_finds_the_best_after_a_simulation_that_is_wrong(prior, tmp_path):
    study = Study.create("wrong", GOAL, a_space(), root=tmp_path)
    Tuning(study, Landscape(off=2.0), Allowance(trials=20, patience=8), prior).run()
    assert study.best.point == at(128)
    assert len(study.results) <= 6


def test_a_large_space_is_sampled_and_looked_at_more_closely_around_its_best():
    player = Landscape()
    prior = simulate(player, a_space(), GOAL, most=12)
    assert len(player.asked) == 12
    assert len({one.point.key for one in player.asked}) == 12
    assert prior.predicted([])[0].point.hot["budget"] in BUDGETS


def test_it_can_be_stopped():
    player = Landscape()
    simulate(player, a_space(), GOAL, stopped=lambda: len(player.asked) >= 3)
    assert len(player.asked) == 3


def test_points_that_failed_are_no_part_of_it():
    failed = Landscape(fails=[at(256).name])
    results = [failed.play(Asked(i, point, 0)) for i, point in enumerate(a_space().points())]
    assert at(256).key not in {one.point.key for one in Prior(results, GOAL, a_space()).predicted([])}


def test_a_live_engine_is_simulated_where_it_was_calibrated():
    assert simulated_config(EngineConfig(model="never-calibrated")) is None
    gpus = simulated_config(EngineConfig(model="qwen2.5-7b", max_num_seqs=48), gpu="H100")
    assert (gpus.gpu, gpus.max_num_seqs, gpus.model) == ("H100", 48, "qwen2.5-7b")
    simulated = SimulatedConfig(count=8)
    assert simulated_config(simulated) is simulated
