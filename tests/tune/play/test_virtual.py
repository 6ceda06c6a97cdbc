"""Players of simulated engines: both say the same, and a hopeless trial costs less."""

import pytest
from search_stand_ins import a_scenario

from workbench.errors import EngineError
from workbench.session import Workbench
from workbench.simulated_config import SimulatedConfig
from workbench.tune.goal import Goal
from workbench.tune.play.judging import cut, look_back
from workbench.tune.play.players import EnginePlayer, longest_prompt
from workbench.tune.play.virtual import VirtualPlayer
from workbench.tune.search.sequential import Sequential
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Point

CONFIG = SimulatedConfig(
    model="qwen2.5-7b", gpu="H100", max_model_len=4096, max_num_batched_tokens=2048, max_num_seqs=16
)
STREAMS = [one.model_dump(by_alias=True, exclude_none=True) for one in a_scenario().streams]
STREAMS[1]["start_s"] = 0.53  # while the second chat streams: all of the document in one step stalls it
SCENARIO = a_scenario(
    engine={"engine": "simulated", "model": "qwen2.5-7b", "gpu": "H100", "max_model_len": 4096}, streams=STREAMS
)
GOAL = Goal(("goodput",), {"gap_max_ms": 12.0}, SCENARIO.slo)
SPACE = Space.of(
    SCENARIO, CONFIG, GOAL, given={"policy": ("chunked",), "budget": (64, 2048), "chunk": (0,), "max_running": (16,)},
    restart={"max_num_seqs": (8,)},
)  # fmt: skip
SMALL, LARGE = list(SPACE.points())


@pytest.fixture(scope="module")
def virtual(shared_simulator):
    player = VirtualPlayer(SCENARIO, GOAL, SPACE)
    yield player
    player.close()


@pytest.fixture(scope="module")
def on_engine(tmp_path_factory, shared_simulator):
    player = EnginePlayer(SCENARIO, GOAL, SPACE, runs=tmp_path_factory.mktemp("runs"))
    yield player
    player.close()


def test_both_players_say_the_same_of_a_point(virtual, on_engine):
    one, other = virtual.play(Asked(3, SMALL, 7)), on_engine.play(Asked(3, SMALL, 7))
    assert one.figures == pytest.approx(other.figures)
    assert one.excess == pytest.approx(other.excess)
    assert one.engine_s == pytest.approx(other.engine_s, rel=0.02)
    assert one.label == other.label == virtual.label
    assert "uncalibrated" in one.label
    assert one.run is None
    recorded = Workbench.open(other.run)
    assert recorded.meta["trial"] == 3
    assert recorded.meta["setting"] == SMALL.name


def test_the_seed_is_that_of_the_workload_and_start_up_fields_are_taken(virtual):
    one = virtual.play(Asked(0, SMALL, 7))
    assert virtual.play(Asked(1, SMALL, 7)).figures == one.figures
    fewer = SPACE.point(SMALL.hot, {"max_num_seqs": 8})
    assert fewer.hot["max_running"] == 8
    assert virtual.play(Asked(2, fewer, 7)).state == "complete"


def test_a_hopeless_trial_is_stopped_where_a_watch_would_have_seen_it(virtual, on_engine):
    whole = virtual.play(Asked(0, LARGE, 7))
    assert whole.excess["gap_max_ms"] > 0
    stopped = [player.play(Asked(0, LARGE, 7), Sequential(GOAL)) for player in (virtual, on_engine)]
    for one in stopped:
        assert one.state == "stopped"
        assert 0 < one.excess["gap_max_ms"] <= whole.excess["gap_max_ms"]
        assert one.engine_s < whole.engine_s
        assert "gap_max_ms cannot stay within 12" in one.error
        assert "failed requests" not in one.excess
    assert stopped[0].engine_s == pytest.approx(stopped[1].engine_s, rel=0.02)
    assert virtual.play(Asked(0, SMALL, 7), Sequential(GOAL)).state == "complete"


def test_a_run_that_is_cut_has_nothing_of_later(on_engine):
    trace = Workbench.open(on_engine.play(Asked(0, LARGE, 7)).run).trace
    shorter = cut(trace, 2.0)
    assert shorter.tokens["engine_s"].max() <= 2.0
    assert shorter.steps["end_s"].max() <= 2.0
    assert set(shorter.requests["status"]) == {"ok", "cancelled"}
    assert len(shorter.requests) == len(trace.requests)
    watch = Sequential(GOAL)
    watch.begin(on_engine.bench.current_run.workload)
    assert look_back(cut(trace, 0.001), watch) is None


def test_an_engine_is_started_anew_for_start_up_fields_and_ended_with_the_player(on_engine):
    on_engine.play(Asked(0, SMALL, 7))
    first = on_engine.bench
    on_engine.play(Asked(1, SMALL, 8))
    assert on_engine.bench is first
    result = on_engine.play(Asked(2, SPACE.point(SMALL.hot, {"max_num_seqs": 8}), 7))
    assert result.state == "complete"
    assert on_engine.bench.config.max_num_seqs == 8
    assert first.engine.state == "stopped"
    on_engine.close()
    assert on_engine.bench.engine.state == "stopped"


def test_a_trial_whose_engine_does_not_come_up_fails_alone(tmp_path):
    space = Space(SPACE.hot, CONFIG, {"gpu_memory_utilization": (0.05,)})
    player = EnginePlayer(SCENARIO, GOAL, space, runs=tmp_path)
    failed = player.play(Asked(0, Point(SMALL.hot, {"gpu_memory_utilization": 0.05}), 7))
    assert failed.state == "failed"
    assert "less than 4.0 GiB a GPU" in failed.error
    player.close()


def test_an_engine_that_was_lent_is_neither_started_nor_ended(tmp_path):
    lent = Workbench(**CONFIG.model_dump(), runs=tmp_path)
    player = EnginePlayer(SCENARIO, GOAL, SPACE, runs=tmp_path, bench=lent)
    with pytest.raises(EngineError, match="was given to the study, and it died"):
        player.play(Asked(0, SMALL, 7))
    other = player.play(Asked(1, SPACE.point(SMALL.hot, {"max_num_seqs": 8}), 7))
    assert other.state == "failed"
    assert lent.engine.state == "new"


def test_the_longest_prompt_is_known_without_an_engine():
    assert longest_prompt(SCENARIO, 4096) == 1500
