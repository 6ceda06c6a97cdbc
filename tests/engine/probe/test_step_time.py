"""The step-time model against step times whose law is known."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.engine.probe.policies.step_time import Load, StepTime, attended
from workbench.engine.probe.wire import Part

DECODES = 8


def law(load, start=6.5e-3, token=1.87e-3, pair=0.93e-6):
    """SmolLM2 on one CPU core, as it was measured: every token of a step with prefill costs, decodes alone are dear."""
    if not load.prefill:
        return 30e-3 + 0.4e-3 * load.decodes
    return start + token * (load.prefill + load.decodes) + pair * (load.pairs + load.context)


def chunk(tokens, context=0, decodes=DECODES, past=800):
    return Load(tokens, attended(tokens, context), decodes, past if decodes else 0)


def taught(truth=law, seed=0, steps=100, noise=0.0, slow=1.0, model=None):
    """A model that has seen chunks of one long prompt after another, and some steps without."""
    rng, model, context = random.Random(seed), model or StepTime(), 0
    for i in range(steps):
        tokens = rng.choice((16, 32, 64, 96, 128))
        past = rng.randrange(400, 2000)
        load = chunk(tokens, context, past=past) if i % 2 else Load(0, 0, rng.randrange(1, 9), past)
        model.learn(load, slow * truth(load) * math.exp(rng.gauss(0, noise)))
        context = (context + tokens) % 3000
    return model


@pytest.mark.parametrize(("tokens", "context"), [(1, 0), (1, 7), (5, 0), (4, 10), (300, 2700)])
def test_a_token_attends_to_all_before_it_and_to_itself(tokens, context):
    assert attended(tokens, context) == sum(place + 1 for place in range(context, context + tokens))


def test_the_load_of_a_step_counts_prefill_and_decodes_apart():
    parts = [Part("a", 3, 10, True), Part("b", 1, 40, False), Part("c", 2, 0, True), Part("d", 1, 2, False)]
    assert Load.of(parts) == Load(prefill=5, pairs=(11 + 12 + 13) + (1 + 2), decodes=2, context=42)


def test_nothing_is_predicted_before_a_step_of_the_kind_was_seen():
    model = StepTime()
    assert model.predict(chunk(16)) is None
    assert model.beside(Load(0, 0, 8, 800)) is None
    model.learn(Load(0, 0, 8, 800), 0.033)
    assert model.predict(Load(0, 0, 8, 800)) == pytest.approx(0.033, rel=0.05)
    assert model.predict(chunk(16)) is None


@pytest.mark.parametrize("load", [chunk(48, 500), chunk(128, 2900), chunk(200, 0), Load(0, 0, 3, 700)])
def test_a_straight_law_is_found_exactly(load):
    assert taught().predict(load) == pytest.approx(law(load), rel=0.01)


@pytest.mark.parametrize("load", [chunk(48, 500), chunk(128, 2900), Load(0, 0, 3, 700)])
def test_noise_of_five_percent_leaves_less_than_five_percent(load):
    errors = [taught(seed=seed, noise=0.05).predict(load) / law(load) - 1 for seed in range(20)]
    assert max(map(abs, errors)) < 0.05


def test_the_first_guess_of_a_larger_chunk_is_too_long_and_not_too_short():
    model = StepTime()
    model.learn(chunk(16), law(chunk(16)))
    assert law(chunk(64)) < model.predict(chunk(64)) < 4 * law(chunk(16))


def test_steps_that_only_decode_have_a_start_of_their_own():
    model = taught()
    assert model.predict(Load(0, 0, 1, 90)) == pytest.approx(30.4e-3, rel=0.02)
    assert model.beside(Load(0, 0, 8, 800)) == pytest.approx(6.5e-3 + 8 * 1.87e-3 + 800 * 0.93e-6, rel=0.02)


def test_one_step_in_which_the_machine_did_something_else_hardly_counts():
    model, load = taught(noise=0.02), chunk(64, 1000)
    before = model.predict(load)
    model.learn(load, 20 * law(load))
    assert model.predict(load) == pytest.approx(before, rel=0.03)


@pytest.mark.parametrize("slow", [2.0, 0.5])
def test_a_machine_that_changes_for_good_is_followed(slow):
    model = taught(noise=0.02)
    taught(noise=0.02, slow=slow, seed=1, steps=40, model=model)
    for load in (chunk(64, 1000), Load(0, 0, 4, 400)):
        assert model.predict(load) == pytest.approx(slow * law(load), rel=0.1)


@given(st.integers(0, 2**32), st.floats(0, 0.5), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_no_share_is_ever_negative(seed, noise, steps):
    model = taught(seed=seed, noise=noise, steps=steps)
    small, large = chunk(10, 100, decodes=2, past=100), chunk(11, 101, decodes=3, past=101)
    assert steps < 2 or model.predict(large) >= model.predict(small) >= 0
    assert (model.predict(Load(0, 0, 2, 9)) or 0) >= (model.predict(Load(0, 0, 1, 9)) or 0) >= 0


@given(st.floats(0, 3), st.integers(0, 100_000))
@settings(max_examples=100, deadline=None)
def test_room_is_the_largest_chunk_whose_cost_fits(seconds, context):
    model = taught()
    room = model.room(seconds, context)
    assert room == 0 or model.cost(room, context) <= seconds * (1 + 1e-6)
    assert model.cost(room + 1, context) >= seconds * (1 - 1e-6)


def test_where_all_chunks_take_the_same_any_chunk_fits():
    model = taught(lambda load: 5e-3, steps=400)
    assert model.room(1e-3, 0) > 10_000
    assert model.room(0.0, 0) == model.room(-1.0, 0) == 0


def test_a_step_without_a_duration_is_not_learned():
    model = StepTime()
    model.learn(chunk(16), 0.0)
    assert model.predict(chunk(16)) is None
