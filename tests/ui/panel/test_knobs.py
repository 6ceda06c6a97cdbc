"""The hot knobs: bounded by the envelope, truthful about what is in force, silent when shown."""

from __future__ import annotations

import pytest

from workbench.config import POLICIES, EngineConfig, Knobs
from workbench.ui.panel.knobs import KnobForm

ENVELOPE = EngineConfig(max_model_len=4096, max_num_batched_tokens=8192, max_num_seqs=32).envelope


@pytest.fixture
def form():
    """Bound to a fresh engine; ``form.sent`` is what was told."""
    made = KnobForm()
    made.sent = []
    made.on_change(made.sent.append)
    made.bind(ENVELOPE, ENVELOPE.defaults)
    return made


def pick(form, name, value):
    control = form.controls[name]
    control.choose(value) if hasattr(control, "choose") else control.put(value)


def alert(form):
    (said,) = [part for part in form.parts if part.id == "knob_problem"]
    return said.text


def shown(form):
    return Knobs(**{name: one.value for name, one in form.controls.items()})


def hidden(form):
    """Knobs that are not shown."""
    return {name for name, one in form.controls.items() if one.hidden}


def test_every_knob_has_a_control_with_its_text():
    form = KnobForm()
    assert set(form.controls) == set(Knobs.model_fields)
    for name, one in form.controls.items():
        assert any(one is part for top in form.parts for part in top.all())
        assert one.hint.startswith(f"{name}: ")
    assert [one.label for one in form.controls.values()] == [
        "budget (tokens)",
        "chunk (tokens)",
        "running cap (requests)",
        "policy",
        "prefill every (steps)",
        "target gap (ms)",
        "aging (s)",
        "watermark",
        "reserve whole prompt",
        "prefix cache",
    ]


def test_without_an_engine_nothing_can_be_changed():
    form = KnobForm()
    assert form.disabled
    assert all(one.disabled for one in form.controls.values())
    form.bind(ENVELOPE, ENVELOPE.defaults)
    assert not form.disabled
    assert not any(one.disabled for one in form.controls.values())
    form.unbind()
    assert form.disabled
    assert all(one.disabled for one in form.controls.values())


def test_ranges_end_where_the_envelope_does(form):
    assert form.controls["budget"].options == (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
    assert form.controls["chunk"].options == (0, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    assert form.controls["max_running"].options == (1, 2, 4, 8, 16, 32)
    assert form.controls["policy"].options == POLICIES
    assert form.controls["chunk"].shown == "off"
    small = EngineConfig(max_model_len=3000, max_num_batched_tokens=8, max_num_seqs=3).envelope
    form.bind(small.replace(policies=("chunked",)), small.defaults)
    assert form.controls["budget"].options == (8,)
    assert form.controls["chunk"].options[-2:] == (2048, 3000)
    assert form.controls["max_running"].options == (1, 2, 3)
    assert form.controls["policy"].options == ("chunked",)
    assert shown(form) == small.defaults
    assert not form.sent


def test_a_change_is_told_once_with_what_changed(form):
    pick(form, "budget", 64)
    pick(form, "chunk", 32)
    pick(form, "chunk", 0)
    assert form.sent == [{"budget": 64}, {"chunk": 32}, {"chunk": 0}]


def test_showing_tells_nobody_and_shows_the_truth(form):
    odd = Knobs(budget=1000, chunk=77, max_running=5, policy="decode_first", prefill_every=3)
    form.show(odd)
    assert shown(form) == odd
    assert form.controls["budget"].shown == "1,000"
    assert not form.sent
    pick(form, "budget", 2048)
    assert form.sent == [{"budget": 2048}]  # and not the others, which are in force already


def test_a_clash_is_said_and_not_sent_until_it_is_mended(form):
    pick(form, "budget", 16)
    assert form.problem.startswith("Not sent. budget and max_running: got '16 < 32'")
    assert alert(form) == form.problem
    assert not form.sent
    pick(form, "max_running", 8)
    assert form.problem is None
    assert alert(form) == ""
    assert form.sent == [{"budget": 16, "max_running": 8}]


def test_monolithic_with_a_small_budget_names_both(form):
    pick(form, "budget", 1024)
    pick(form, "policy", "monolithic")
    assert form.problem.startswith("Not sent. policy and budget: got 'monolithic with budget 1024'")
    pick(form, "policy", "chunked")
    assert form.problem is None
    assert form.sent == [{"budget": 1024}]  # back to what is in force: nothing to send


def test_what_is_in_force_can_be_shown_again_after_a_failure(form):
    pick(form, "budget", 64)
    form.show(ENVELOPE.defaults)
    pick(form, "budget", 64)
    assert form.sent == [{"budget": 64}, {"budget": 64}]


@pytest.mark.parametrize(
    ("policy", "own"),
    [("chunked", set()), ("priority", set()), ("qos", {"aging_s"}), ("target_gap", {"target_gap_ms"})],
)
def test_only_the_knobs_of_the_chosen_policy_are_there(form, policy, own):
    pick(form, "policy", policy)
    assert hidden(form) == {"prefill_every", "target_gap_ms", "aging_s"} - own


def test_every_nth_step_is_there_for_decode_first_only(form):
    assert "prefill_every" in hidden(form)
    pick(form, "policy", "decode_first")
    assert "prefill_every" not in hidden(form)
    pick(form, "prefill_every", 8)
    assert form.controls["prefill_every"].shown == "8"
    form.show(ENVELOPE.defaults)
    assert "prefill_every" in hidden(form)
    assert form.sent == [{"policy": "decode_first"}, {"prefill_every": 8}]
    assert form.controls["prefill_every"].shown == "never"


def test_targets_shares_and_switches_are_sent_as_what_they_are(form):
    pick(form, "policy", "target_gap")
    pick(form, "target_gap_ms", 300.0)
    pick(form, "watermark", 0.05)
    pick(form, "reserve_full", False)
    pick(form, "prefix_cache", False)
    assert form.sent == [
        {"policy": "target_gap"},
        {"target_gap_ms": 300.0},
        {"watermark": 0.05},
        {"reserve_full": False},
        {"prefix_cache": False},
    ]
    assert (form.controls["target_gap_ms"].shown, form.controls["watermark"].shown) == ("300", "5 %")


def test_without_a_prefix_cache_there_is_nothing_to_look_up_or_to_empty(form):
    assert not form.empty.disabled
    form.bind(ENVELOPE, ENVELOPE.defaults, caches=False)
    assert form.empty.disabled
    assert form.controls["prefix_cache"].disabled
    assert not form.controls["watermark"].disabled
    (note,) = [part for top in form.parts for part in top.all() if part.id == "uncached"]
    assert note.text.startswith("The engine was started without prefix caching")
    form.unbind()
    assert note.text == ""


def test_a_new_engine_takes_the_old_ones_place(form):
    pick(form, "budget", 16)
    form.bind(ENVELOPE, ENVELOPE.defaults.replace(budget=300))
    assert (form.problem, form.controls["budget"].value) == (None, 300)
    form.bind(ENVELOPE, ENVELOPE.defaults)
    assert 300 not in form.controls["budget"].options


def test_a_late_change_after_the_engines_end_is_not_sent(form):
    form.unbind()
    pick(form, "budget", 64)
    assert not form.sent


def test_the_line_beside_the_budget_follows_the_slider_and_cells():
    form = KnobForm()
    (beside,) = [part for part in form.parts if part.id == "step_memory"]
    assert form.parts.index(beside) == 1 + form.parts.index(form.controls["budget"])
    assert beside.text == ""
    form.bind(ENVELOPE, ENVELOPE.defaults, note=lambda budget: f"a step of {budget}")
    assert beside.text == "a step of 8192"
    pick(form, "budget", 64)
    assert beside.text == "a step of 64"
    form.show(ENVELOPE.defaults.replace(budget=128))
    assert beside.text == "a step of 128"
    form.unbind()
    assert beside.text == ""


def test_locked_nothing_can_be_turned_and_why_is_shown_until_it_is_unlocked(form):
    form.lock("Locked: study one goes on.")
    assert all(one.disabled for one in form.controls.values())
    assert form.empty.disabled
    form.show(ENVELOPE.defaults.model_copy(update={"budget": 64}))  # what the study sets is shown
    assert alert(form) == "Locked: study one goes on."
    assert shown(form).budget == 64
    form.lock("")
    assert not any(one.disabled for one in form.controls.values())
    assert not alert(form)
    assert form.sent == []
