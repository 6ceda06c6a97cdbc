"""Knobs as texts: one parser for the options and for --knob."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.config import POLICIES, EngineConfig, Knobs
from workbench.errors import EnvelopeError, InputError
from workbench.knob_options import knob_values, one_value_each, single_knobs
from workbench.workload.scenario import Setting


def test_values_are_of_the_knobs_own_kind_in_the_order_of_the_knobs():
    found = knob_values(
        ["reserve_full=off", "policy=qos,chunked", "watermark=0,0.1", "aging-s = 5", "prefix_cache=true"],
        {"budget": "64,256", "chunk": 128, "max_running": None},
    )
    assert found == {
        "budget": [64, 256],
        "chunk": [128],
        "policy": ["qos", "chunked"],
        "aging_s": [5.0],
        "watermark": [0.0, 0.1],
        "reserve_full": [False],
        "prefix_cache": [True],
    }
    assert list(found) == [name for name in Knobs.model_fields if name in found]
    assert [type(value) for value in found["watermark"]] == [float, float]
    assert found["reserve_full"][0] is False


def test_nothing_given_is_nothing():
    assert knob_values(None, {"budget": None}) == {}
    assert knob_values([]) == {}


@pytest.mark.parametrize(
    ("knobs", "options", "what", "value"),
    [
        (["budgte=64"], {}, "--knob", "budgte"),
        (["name=mine"], {}, "--knob", "name"),  # a field of a setting, and no knob
        (["budget"], {}, "--knob", "budget"),
        (["budget="], {}, "--knob", "budget="),
        (["=64"], {}, "--knob", ""),
        (["budget=many"], {}, "--knob budget", "many"),
        (["budget=64,,128"], {}, "--knob budget", "64,,128"),
        (["budget=64,many"], {}, "--knob budget", "many"),
        (["budget=null"], {}, "--knob budget", "null"),
        (["budget=[64]"], {}, "--knob budget", "[64]"),
        (["budget=64.5"], {}, "--knob budget", "64.5"),
        (["watermark=NaN"], {}, "--knob watermark", "NaN"),
        (["policy=1"], {}, "--knob policy", "1"),
        ([], {"max_running": "8,x"}, "--max-running", "x"),
        (["budget=64"], {"budget": 128}, "--budget and --knob budget", "128 and 64"),
        (["budget=64", "budget=128"], {}, "--knob budget, twice", "64 and 128"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_typed(knobs, options, what, value):
    with pytest.raises(InputError) as refused:
        knob_values(knobs, options)
    assert (refused.value.what, refused.value.value) == (what, value)


def test_a_knob_that_is_nearly_right_is_guessed():
    with pytest.raises(EnvelopeError, match=r"did you mean target_gap_ms\?"):
        knob_values(["target_gap=300"])


def test_where_one_setting_is_played_there_is_one_value():
    assert one_value_each({"budget": [64], "policy": ["qos"]}) == {"budget": 64, "policy": "qos"}
    with pytest.raises(InputError, match=r"knob budget: got '64,128', expected one value; .*workbench sweep"):
        one_value_each({"budget": [64, 128]})


@pytest.mark.parametrize("given", [["policy=foo"], ["budget=abc"], ["watermark=x"]])
def test_the_way_out_fits_the_verb(given):
    with pytest.raises(EnvelopeError, match=r"; give one, or several with commas between$"):
        knob_values(given)
    with pytest.raises(EnvelopeError, match=r"; give one$"):
        single_knobs(given)


def test_a_setting_is_called_by_what_was_typed():
    given = one_value_each(knob_values(["policy=target_gap", "target_gap_ms=300", "reserve_full=false"]))
    assert Setting.of(given).name == "policy target_gap target_gap_ms 300 reserve_full off"


@given(
    budget=st.integers(32, 8192),
    policy=st.sampled_from(POLICIES),
    target=st.floats(0.001, 1e6),
    watermark=st.floats(0, 0.5),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_every_knob_comes_through_as_it_was_written(budget, policy, target, watermark, flags):
    knobs = EngineConfig().envelope.defaults.replace(
        budget=budget,
        policy=policy,
        target_gap_ms=target,
        watermark=watermark,
        reserve_full=flags[0],
        prefix_cache=flags[1],
    )
    texts = [f"{name}={value}" for name, value in knobs.model_dump().items()]
    assert Knobs(**one_value_each(knob_values(texts))) == knobs
