"""Configurations: frozen, explained, and refused in one line that names field, value and way out."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from workbench.config import SLO, EngineConfig, Envelope, Frozen, Knobs, parse
from workbench.errors import ConfigError, EnvelopeError, InputError, ScenarioError
from workbench.workload.scenario import Scenario
from workbench.workload.setting import Setting


class Circle(Frozen):
    kind: Literal["circle"]
    radius: float = Field(1.0, gt=0)


class Square(Frozen):
    kind: Literal["square"]
    side: float = 1.0


class Drawing(Frozen):
    shapes: tuple[Annotated[Circle | Square, Field(discriminator="kind")], ...] = ()
    promise: SLO | None = None


@pytest.mark.parametrize(
    ("model", "data", "what", "value", "fix"),
    [
        (EngineConfig, {"max_modl_len": 1}, "max_modl_len", "max_modl_len", "did you mean max_model_len?"),
        (EngineConfig, {"zzz": 1}, "zzz", "zzz", "remove it"),
        (EngineConfig, {"max_model_len": "many"}, "max_model_len", "many", "correct it"),
        (EngineConfig, {"max_model_len": 4096.5}, "max_model_len", 4096.5, "correct it"),
        (EngineConfig, {"max_model_len": 15}, "max_model_len", 15, "correct it"),
        (EngineConfig, {"dtype": "int3"}, "dtype", "int3", "choose one of these"),
        (EngineConfig, {"port": 70000}, "port", 70000, "correct it"),
        (EngineConfig, {"extra_args": ["--seed", 3]}, "extra_args.1", 3, "correct it"),
        (EngineConfig, [1], "EngineConfig", [1], "correct it"),
        (Knobs, {"chunk": 1, "max_running": 1}, "budget", "nothing", "add budget"),
        (Knobs, {"budget": 1, "max_running": 1, "watermark": 0.51}, "watermark", 0.51, "correct it"),
        (Knobs, {"budget": 1, "max_running": 1, "target_gap_ms": 0}, "target_gap_ms", 0, "correct it"),
        (Knobs, {"budget": 1, "max_running": 1, "aging_s": -1}, "aging_s", -1, "correct it"),
        (Knobs, {"budget": 1, "max_running": 1, "policy": "quos"}, "policy", "quos", "choose one of these"),
        # What neither the wire (64 bits) nor a recorded trace (32 bits) has room for.
        (Knobs, {"budget": 1, "max_running": 1, "prefill_every": 2**31}, "prefill_every", 2**31, "correct it"),
        (Knobs, {"budget": 1, "max_running": 1, "prefill_every": 2**64}, "prefill_every", 2**64, "correct it"),
        # True is no number, whatever Python says.
        (Knobs, {"budget": 1, "max_running": True}, "max_running", True, "correct it"),
        (Knobs, {"budget": 1, "max_running": 1, "target_gap_ms": True}, "target_gap_ms", True, "correct it"),
        (Setting, {"name": "s", "chunk": True}, "chunk", True, "correct it"),
        (SLO, {"gap_ms": float("inf")}, "gap_ms", float("inf"), "correct it"),
        (Drawing, {"promise": {"gap": 1}}, "promise.gap", "gap", "did you mean gap_ms?"),
        (
            Drawing,
            {"shapes": [{"kind": "square"}, {"kind": "circle", "radus": 1}]},
            "shapes.1.circle.radus",
            "radus",
            "did you mean radius?",
        ),
        (Drawing, {"shapes": [{"kind": "circle", "radius": 0}]}, "shapes.0.circle.radius", 0, "correct it"),
    ],
)
def test_a_bad_field_is_named_with_its_value_and_a_way_out(model, data, what, value, fix):
    with pytest.raises(ConfigError) as refused:
        parse(model, data)
    error = refused.value
    assert (error.what, error.fix) == (what, fix)
    assert error.value == value
    assert error.exit_code == 2
    assert "\n" not in str(error)
    assert str(error).startswith(f"{what}: got ")


def test_an_unknown_field_lists_those_of_the_model_it_stands_in():
    with pytest.raises(ConfigError) as refused:
        parse(Drawing, {"shapes": [{"kind": "square", "radius": 1}]})
    assert refused.value.expected == "a known field (kind, side)"


@pytest.mark.parametrize(
    ("model", "data", "expected"),
    [
        (EngineConfig, {"max_model_len": "many"}, "a whole number"),
        (EngineConfig, {"max_model_len": 4096.5}, "a whole number"),
        (EngineConfig, {"max_model_len": None}, "a whole number"),
        (EngineConfig, {"max_model_len": "9" * 5000}, "a smaller whole number"),
        (EngineConfig, {"max_model_len": 15}, "16 or more"),
        (EngineConfig, {"port": 70000}, "65535 or less"),
        (EngineConfig, {"kv_offloading_gib": 0}, "more than 0"),
        (EngineConfig, {"kv_offloading_gib": "much"}, "a number"),
        (EngineConfig, {"kv_offloading_gib": [1]}, "a number"),
        (EngineConfig, {"kv_offloading_gib": float("nan")}, "a number that is not infinite"),
        (EngineConfig, {"enforce_eager": "maybe"}, "true or false"),
        (EngineConfig, {"enforce_eager": []}, "true or false"),
        (EngineConfig, {"model": 3}, "text"),
        (EngineConfig, {"extra_args": 3}, "a list"),
        (EngineConfig, {"dtype": "int3"}, "one of auto, bfloat16, float16, float32"),
        (EngineConfig, {"distributed_executor_backend": "x"}, "one of mp, ray"),
        (EngineConfig, [1], "fields with values"),
        (SLO, {"gap_percentile": 100.5}, "100 or less"),
        (Knobs, {"budget": 1, "max_running": 1, "watermark": 0.51}, "0.5 or less"),
        (Knobs, {"budget": 1, "max_running": True}, "a number, neither true nor false"),
        (Drawing, {"shapes": [{"kind": "cube"}]}, "one of circle, square"),
        (Drawing, {"shapes": [{"side": 1}]}, "one with the field kind"),
        (Scenario, {"name": "a b", "streams": []}, "letters, digits, _ and -, with a letter first"),
        (Scenario, {"name": "a", "streams": []}, "1 or more entries"),
    ],
)
def test_what_was_expected_is_said_in_plain_words(model, data, expected):
    with pytest.raises(ConfigError) as refused:
        parse(model, data)
    assert refused.value.expected == expected


def test_the_file_and_the_kind_of_error_are_those_of_the_caller():
    with pytest.raises(ScenarioError, match=r"^mine\.yaml: port: got '0', expected 1 or more"):
        parse(EngineConfig, {"port": 0}, where="mine.yaml", error=ScenarioError)


def test_a_budget_below_the_sequences_names_both():
    with pytest.raises(ConfigError) as refused:
        EngineConfig(max_num_batched_tokens=16, max_num_seqs=32)
    assert str(refused.value) == (
        "max_num_batched_tokens and max_num_seqs: got '16 < 32', expected a budget of at least one token per "
        "sequence; raise max_num_batched_tokens to 32 or lower max_num_seqs"
    )
    assert EngineConfig(max_num_batched_tokens=32, max_num_seqs=32).envelope.max_budget == 32


def test_configurations_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        EngineConfig().max_model_len = 1
    assert hash(EngineConfig()) == hash(EngineConfig())


def test_replace_checks_anew_and_leaves_the_old_one():
    config = EngineConfig(port=8000)
    changed = config.replace(max_num_seqs=8)
    assert (config.max_num_seqs, changed.max_num_seqs, changed.port) == (32, 8, 8000)
    assert changed.replace(max_num_seqs=32) == config
    with pytest.raises(ConfigError, match="budget of at least one token per sequence"):
        config.replace(max_num_batched_tokens=8)
    with pytest.raises(ConfigError, match="did you mean max_num_seqs"):
        config.replace(max_num_seq=8)


@pytest.mark.parametrize("model", [EngineConfig, Envelope, Knobs, SLO])
def test_every_field_is_described(model):
    for name, field in model.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_every_start_up_field_says_its_flag_and_every_knob_its_label():
    for name, field in EngineConfig.model_fields.items():
        assert set(field.json_schema_extra) == {"flag", "unit"}, name
    without = {name for name, field in EngineConfig.model_fields.items() if field.json_schema_extra["flag"] is None}
    assert without == {"device", "start_timeout_s", "extra_args"}
    assert all(field.json_schema_extra["label"] for field in Knobs.model_fields.values())


ENVELOPE = EngineConfig(max_model_len=4096, max_num_batched_tokens=8192, max_num_seqs=32).envelope


def test_an_engine_starts_with_everything_at_its_ceiling():
    assert ENVELOPE.model_dump(exclude={"policies"}) == {
        "max_budget": 8192,
        "max_chunk": 4096,
        "max_running": 32,
        "prefix_caching": False,
    }
    assert ENVELOPE.defaults == Knobs(budget=8192, chunk=0, max_running=32, policy="chunked", prefill_every=0)
    own = ("target_gap_ms", "aging_s", "watermark", "reserve_full", "prefix_cache")
    assert [getattr(ENVELOPE.defaults, name) for name in own] == [200, 30, 0, True, True]
    assert ENVELOPE.check(ENVELOPE.defaults) is not None


@pytest.mark.parametrize(
    ("change", "what", "expected"),
    [
        ({"budget": 8193}, "budget", "at most 8192 (the start-up max_num_batched_tokens)"),
        ({"chunk": 4097}, "chunk", "at most 4096 (the start-up max_model_len)"),
        ({"max_running": 33}, "max_running", "at most 32 (the start-up max_num_seqs)"),
        ({"budget": 31}, "budget and max_running", "a budget of at least one token per running request"),
        (
            {"budget": 4095, "policy": "monolithic"},
            "policy and budget",
            "a budget of at least 4096 (max_model_len), since a longer prompt would wait for ever",
        ),
    ],
)
def test_knobs_outside_the_envelope_are_refused_with_the_bound(change, what, expected):
    with pytest.raises(EnvelopeError) as refused:
        ENVELOPE.check(ENVELOPE.defaults.replace(**change))
    assert (refused.value.what, refused.value.expected) == (what, expected)
    assert refused.value.exit_code == 2


def test_the_envelope_says_whether_there_is_a_prefix_cache():
    assert EngineConfig(enable_prefix_caching=True).envelope.prefix_caching


def test_an_engine_may_know_fewer_policies():
    with pytest.raises(EnvelopeError, match=r"policy: got 'decode_first', expected one of chunked;"):
        ENVELOPE.replace(policies=("chunked",)).check(ENVELOPE.defaults.replace(policy="decode_first"))


@pytest.mark.parametrize(
    "change",
    [
        {"budget": 8192, "chunk": 4096},
        {"budget": 32},
        {"budget": 1, "max_running": 1},
        {"budget": 4096, "policy": "monolithic"},
        {"budget": 32, "policy": "decode_first", "prefill_every": 7},
        {"watermark": 0.5, "aging_s": 0},
        {"prefix_cache": True},  # without a cache it makes no difference
        {"policy": "target_gap", "target_gap_ms": 0.1},  # what an engine can do is known only when it has run
    ],
)
def test_knobs_on_the_bound_are_taken(change):
    knobs = ENVELOPE.defaults.replace(**change)
    assert ENVELOPE.check(knobs) == knobs


@given(budget=st.integers(1, 10_000), chunk=st.integers(0, 5_000), running=st.integers(1, 40))
def test_what_is_taken_is_inside_the_envelope(budget, chunk, running):
    inside = running <= budget <= 8192 and chunk <= 4096 and running <= 32
    knobs = Knobs(budget=budget, chunk=chunk, max_running=running)
    if inside:
        assert ENVELOPE.check(knobs) == knobs
    else:
        with pytest.raises(EnvelopeError):
            ENVELOPE.check(knobs)


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(InputError) as refused:
        parse(EngineConfig, {"dtype": "x" * 5000})
    assert len(str(refused.value)) < 400
    assert len(refused.value.value) == 5000
