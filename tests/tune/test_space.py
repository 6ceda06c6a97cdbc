"""The space: what counts under which policy, what the engine takes, and what is refused."""

import pytest
from search_stand_ins import CONFIG, GOAL, a_scenario, a_space

from workbench.config import EngineConfig
from workbench.errors import ConfigError, EnvelopeError, InputError
from workbench.simulated_config import SimulatedConfig
from workbench.tune.goal import Goal
from workbench.tune.neighbours import distance
from workbench.tune.space import Space


def test_what_makes_sense_is_chosen_where_nothing_is_given():
    space = Space.of(a_scenario(), CONFIG, Goal(limits={"gap_p99_ms": 100.0}))
    assert space.hot["budget"] == (32, 64, 128, 256, 512, 1024, 2048)
    assert space.hot["chunk"] == (32, 64, 128, 256, 512, 1024, 0)
    assert space.hot["max_running"] == (4, 8, 16)
    assert space.hot["policy"] == ("chunked", "decode_first", "target_gap")
    assert space.hot["target_gap_ms"] == (40.0, 55.0, 70.0, 85.0, 100.0)
    assert not space.start_up


def test_classes_with_priorities_bring_qos():
    streams = [one.model_dump(by_alias=True) for one in a_scenario().streams]
    streams[0]["priority"] = 0
    assert "qos" in Space.of(a_scenario(streams=streams), CONFIG, GOAL).hot["policy"]


def test_knobs_of_a_policy_count_under_it_alone():
    space = a_space(given={"policy": ("chunked", "target_gap"), "target_gap_ms": (100, 200)})
    under = {policy: [p for p in space.points() if p.hot["policy"] == policy] for policy in ("chunked", "target_gap")}
    assert all("target_gap_ms" not in point.hot for point in under["chunked"])
    assert [point.hot["target_gap_ms"] for point in under["target_gap"]] == [100, 200]
    assert all("budget" not in point.hot for point in under["target_gap"])


def test_a_cap_that_cuts_nothing_is_off_and_no_point_comes_twice():
    points = [(point.hot["budget"], point.hot["chunk"]) for point in a_space().points()]
    assert len(points) == len(set(points)) == 1 + 2 + 3 + 4 + 5 + 5
    assert (64, 0) in points
    assert all(not chunk or chunk < budget for budget, chunk in points)


def test_a_budget_below_the_running_cap_lowers_it():
    point = a_space(given={"budget": (8, 16)}).point({"policy": "chunked", "budget": 8, "max_running": 16}, {})
    assert point.hot["max_running"] == 8


def test_another_engine_has_its_own_ceilings():
    space = a_space(restart={"max_num_seqs": (8, 16, 32)})
    assert space.starts() == [{"max_num_seqs": 8}, {"max_num_seqs": 32}]
    assert space.restarts == {"max_num_seqs": (16, 8, 32)}
    ceiling = {"policy": "chunked", "budget": 64, "max_running": 16}
    assert space.point(ceiling, {"max_num_seqs": 32}).hot["max_running"] == 32
    assert space.point(ceiling, {"max_num_seqs": 8}).hot["max_running"] == 8
    assert space.point(ceiling | {"max_running": 4}, {"max_num_seqs": 8}).hot["max_running"] == 4
    assert space.config_of({"max_num_seqs": 32}).max_num_seqs == 32


def test_tensor_parallel_of_a_simulated_engine_takes_as_many_gpus():
    space = a_space(config=SimulatedConfig(count=8, max_num_seqs=16), restart={"tensor_parallel_size": (4, 8)})
    assert space.config_of({"tensor_parallel_size": 4}).gpus == 4


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"given": {"budget": (4096, 8192)}}, EnvelopeError, "at most 2048"),
        ({"given": {"budget": ()}}, InputError, "no value"),
        ({"given": {"budget": (0, 64)}}, EnvelopeError, "budget: got '0', expected 1 or more"),
        ({"given": {"chunk": (-1, 64)}}, EnvelopeError, "chunk: got '-1', expected 0 or more"),
        ({"given": {"policy": ("chunked", "monolithic")}}, EnvelopeError, "monolithic with budget 2048"),
        ({"given": {"policy": ("chunked", "qos"), "aging_s": (-1.0, 5.0)}}, EnvelopeError, "aging_s: got '-1.0'"),
        ({"given": {"target_gap_ms": tuple(range(1, 2000))}}, InputError, "expected at most 100,000 combinations"),
        ({"restart": {"model": ("a",)}}, InputError, "--restart: got 'model'"),
        ({"restart": {"max_num_seqs": (0,)}}, ConfigError, "max_num_seqs"),
        ({"restart": {"max_num_seqs": (4096,)}}, ConfigError, "at least one token per sequence"),
    ],
)
def test_what_cannot_be_is_refused_before_an_engine_starts(more, error, says):
    with pytest.raises(error, match=says):
        a_space(**more)


@pytest.mark.parametrize("config", [CONFIG, EngineConfig(extra_args=("--foo",)), SimulatedConfig(count=8)])
def test_a_space_is_the_same_as_plain_data(config):
    space = a_space(config=config, given={"max_running": (16, 4)}, restart={"block_size": (16, 32)})
    assert Space.of_dict(space.as_dict()) == space


def test_points_are_as_far_apart_as_their_places():
    space = a_space()
    one = space.point({"policy": "chunked", "budget": 512, "chunk": 256, "max_running": 16}, {})
    off = space.point({"policy": "chunked", "budget": 1024, "chunk": 0, "max_running": 16}, {})
    assert distance(one, one, space) == 0
    assert distance(one, off, space) == 1 + 2
