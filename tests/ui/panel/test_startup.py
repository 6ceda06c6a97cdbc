"""The start-up form: every field, presets, and problems said before a start."""

from __future__ import annotations

import pytest

from workbench import startable
from workbench.config import EngineConfig
from workbench.presets import preset, presets
from workbench.simulated_config import SimulatedConfig
from workbench.startable import Machine
from workbench.ui.panel.startup import FIRST, StartUpForm

EVERY_FIELD = EngineConfig(
    model="some/<b>model</b>",
    device="cpu",
    dtype="float16",
    quantization="fp8",
    max_model_len=3000,
    max_num_batched_tokens=5000,
    max_num_seqs=33,
    tensor_parallel_size=3,
    pipeline_parallel_size=5,
    block_size=48,
    gpu_memory_utilization=0.5,
    kv_cache_mib=None,
    kv_offloading_gib=2.5,
    enable_prefix_caching=True,
    attention_backend="FLASHINFER",
    async_scheduling=False,
    enforce_eager=False,
    scheduling_policy="priority",
    distributed_executor_backend="ray",
    port=8123,
    start_timeout_s=30.0,
    extra_args=("--seed", "7", "--name", "a b"),
)


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A laptop without a GPU, whatever the tests run on."""
    monkeypatch.setattr(startable, "this_machine", lambda: Machine("cpu", 1))


def choose(form, name):
    """As a person would, in the drop-down of presets."""
    form.preset.choose(name)


def pick(form, field, value):
    form.controls[field].choose(value)


def alert(form):
    (said,) = [part for part in form.parts if part.id == "start_problem"]
    return said.text


def test_every_field_has_a_control_on_screen_and_those_that_matter_come_first():
    form = StartUpForm()
    assert set(form.controls) == set(EngineConfig.model_fields)
    shown = [part for top in form.parts for part in top.all()]
    assert len({part.id for part in shown}) == len(shown), "ids differ"
    for name, one in form.controls.items():
        assert sum(one is part for part in shown) == 1, name
        assert one.hint.startswith(f"{name}: "), name
        assert one.label, name
    order = [form.controls["model"], form.preset, *(form.controls[name] for name in FIRST)]
    assert list(form.parts[: len(order)]) == order
    hardware, server, drawer = [part for part in form.parts if part.parts]
    assert (server.title, server.parts) == ("Server that runs already", tuple(form.server.values()))
    assert (hardware.title, hardware.parts) == ("Simulated hardware", (form.engine, *form.hardware.values()))
    assert (drawer.title, len(drawer.parts)) == ("More start-up fields", len(form.controls) - 1 - len(FIRST))


def test_the_defaults_are_the_laptop_preset_and_differ_in_nothing():
    form = StartUpForm()
    assert (form.values(), form.problem, form.preset.value, form.config) == ({}, None, "laptop", EngineConfig())


def test_every_field_is_shown_and_read_back():
    assert not set(EngineConfig.model_fields) - set(EVERY_FIELD.model_dump(exclude_defaults=True))
    form = StartUpForm(EVERY_FIELD.model_dump())
    assert form.config == EVERY_FIELD
    assert EngineConfig(**form.values()) == EVERY_FIELD
    form.set({})
    assert form.config == EngineConfig()


@pytest.mark.parametrize("name", presets())
def test_a_preset_fills_the_form(name):
    form = StartUpForm(EVERY_FIELD.model_dump())
    told = []
    form.observe(lambda: told.append(form.config))
    choose(form, name)
    assert told == [preset(name).config]
    assert form.preset.value == name
    assert form.preset.hint == preset(name).description


def test_a_changed_field_is_no_preset_any_more_until_it_is_changed_back():
    form = StartUpForm()
    pick(form, "max_num_seqs", 64)
    assert (form.values(), form.preset.value) == ({"max_num_seqs": 64}, "own")
    pick(form, "max_num_seqs", 32)
    assert form.preset.value == "laptop"
    choose(form, "own")  # nothing to fill in
    assert (form.preset.value, form.config) == ("laptop", EngineConfig())


def test_a_clash_names_both_fields_and_goes_when_one_is_mended():
    form = StartUpForm()
    told = []
    form.observe(lambda: told.append(form.problem))
    pick(form, "max_num_batched_tokens", 256)
    pick(form, "max_num_seqs", 512)
    assert told[0] is None
    assert told[1].startswith("max_num_batched_tokens and max_num_seqs: got '256 < 512'")
    assert form.config is None
    assert form.values() == {"max_num_batched_tokens": 256, "max_num_seqs": 512}
    assert alert(form) == told[1]
    pick(form, "max_num_batched_tokens", 512)
    assert (told[2], form.problem, alert(form)) == (None, None, "")


def test_a_context_that_the_model_has_not_names_both():
    form = StartUpForm()
    pick(form, "max_model_len", 32768)
    assert form.problem.startswith("max_model_len and model: got '32768 with smollm2'")
    form.controls["model"].put("tiny-long")
    assert form.problem is None


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("port", "seventy", "port: got 'seventy', expected a whole number"),
        ("port", "70000", "port: got '70000', expected 65535 or less"),
        ("gpu_memory_utilization", "90 %", "gpu_memory_utilization: got '90 %', expected a number"),
        ("extra_args", "'open", "extra_args: got"),
        ("model", "", "model: got '', expected a preset"),
    ],
)
def test_text_that_makes_no_sense_is_refused_by_name(field, text, message):
    form = StartUpForm()
    form.controls[field].put(text)
    assert form.problem.startswith(message)
    form.controls[field].reset()


def test_what_cannot_start_here_is_said_and_can_still_be_copied():
    form = StartUpForm(preset("article").fields)
    assert "tensor_parallel_size times pipeline_parallel_size: got '4 x 1'" in form.problem
    assert form.config == preset("article").config
    assert form.values()["tensor_parallel_size"] == 4


def test_setting_from_code_tells_nobody():
    form = StartUpForm()
    told = []
    form.observe(lambda: told.append(1))
    form.set(EVERY_FIELD.model_dump())
    form.set(preset("article").fields)
    assert not told
    assert form.preset.value == "article"


def test_nothing_can_be_changed_while_an_engine_runs():
    form = StartUpForm()
    for off in (True, False):
        form.disabled = off
        assert form.disabled is off
        every = (*form.controls.values(), *form.hardware.values(), *form.server.values(), form.preset, form.engine)
        assert {one.disabled for one in every} == {off}


def note(form):
    (said,) = [part for part in form.parts if part.id == "start_memory"]
    return said.text


def test_a_simulated_engine_has_its_own_fields_and_defaults():
    form = StartUpForm()
    assert all(one.hidden for one in form.hardware.values())
    assert set(SimulatedConfig.model_fields) - set(EngineConfig.model_fields) == {"engine", "count", *form.hardware}
    form.engine.choose("simulated")
    assert not any(one.hidden for one in form.hardware.values())
    assert form.config == SimulatedConfig()
    assert form.problem is None
    pick(form, "tensor_parallel_size", 1)  # 70B on one H100
    assert "take more GPUs" in form.problem
    pick(form, "tensor_parallel_size", 8)
    assert form.values() == {"engine": "simulated", "tensor_parallel_size": 8}
    assert form.fields["engine"] == "simulated"
    assert form.preset.value == "own"
    form.engine.choose("live")
    assert (form.config, form.preset.value, form.fields["engine"], note(form)) == (EngineConfig(), "laptop", "live", "")


def test_the_memory_beside_the_budget_is_that_of_the_hardware():
    form = StartUpForm(SimulatedConfig(tensor_parallel_size=8, max_num_batched_tokens=2048).model_dump())
    # 2,048 x 93,972 bytes and 256 rows of logits of 1.28 MB; 5 % of 79.6 GiB and that is free: see test_memory
    assert note(form).startswith("roofline, uncalibrated: A step of 2,048 tokens needs 0.49 GiB of 6.9 free; ")
    assert note(form).endswith("the longest prompt fits into one step (estimate).")
    pick(form, "max_model_len", 131072)
    assert "unchunked, 74,853 tokens or more die (estimate)" in note(form)
    form.hardware["gpu"].put("abacus")
    assert form.problem.startswith("GPU: got 'abacus', expected one of ")
    assert note(form) == ""
    form.set({})
    assert form.config == EngineConfig()
