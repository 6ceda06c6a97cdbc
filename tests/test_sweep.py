"""Grids of settings."""

import pytest

from workbench.config import EngineConfig
from workbench.errors import EnvelopeError, InputError
from workbench.sweep import grid, with_restarts
from workbench.workload.scenario import Scenario


def test_a_grid_holds_all_combinations_in_order():
    settings = grid({"budget": [64, 256], "chunk": [0, 128], "policy": []})
    assert [(s.budget, s.chunk, s.policy) for s in settings] == [
        (64, 0, None),
        (64, 128, None),
        (256, 0, None),
        (256, 128, None),
    ]
    assert [s.name for s in settings][:2] == ["budget 64 chunk 0", "budget 64 chunk 128"]


def test_names_differ():
    names = [s.name for s in grid({"budget": [64, 256], "policy": ["chunked", "decode_first"]})]
    assert len(set(names)) == 4


def test_a_value_given_twice_counts_once():
    assert [s.budget for s in grid({"budget": [64, 256, 64]})] == [64, 256]


def test_a_grid_without_values_is_empty():
    assert grid({"budget": []}) == ()


def test_too_many_combinations_are_refused():
    with pytest.raises(InputError, match="at most 1000"):
        grid({"budget": list(range(1, 102)), "chunk": list(range(10))})


def test_a_wrong_value_is_one_line():
    with pytest.raises(EnvelopeError, match="policy: got 'magic', expected one of chunked, monolithic"):
        grid({"policy": ["magic"]})


def test_the_longest_name_fits():
    (setting,) = grid({"budget": [131072], "chunk": [32768], "max_running": [128], "policy": ["decode_first"]})
    assert setting.name == "budget 131072 chunk 32768 max_running 128 policy decode_first"


def test_all_settings_are_checked_before_an_engine_is_started(tmp_path):
    stream = {"class": "a", "arrivals": {"kind": "at_once", "count": 1}, "prompt_tokens": 8, "output_tokens": 1}
    scenario = Scenario.model_validate({"name": "x", "streams": [stream]})
    played = with_restarts(
        scenario, grid({"budget": [16384, 16]}), lambda *_: None, config=EngineConfig(), runs=tmp_path
    )
    with pytest.raises(InputError, match="16 < 32"):
        next(played)
    assert not list(tmp_path.iterdir())
