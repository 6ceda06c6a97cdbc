"""The decode floor: of steps without prefill only, on the clock of the steps themselves."""

import pytest

from workbench.config import Knobs
from workbench.engine.decode_floor import DecodeFloor
from workbench.engine.probe import wire
from workbench.errors import EnvelopeError

DECODE, PREFILL = wire.Part("a", 1, 50, prefill=False), wire.Part("b", 64, 0, prefill=True)
KNOBS = Knobs(budget=256, max_running=8, policy="target_gap", target_gap_ms=100)


def step(number, scheduled_s, end_s, parts=(DECODE,)):
    return wire.Step(number, scheduled_s, 100.0, 0, 1, 0, 0.1, [], list(parts), end_s=end_s)


def after(milliseconds, parts=(DECODE,)):
    floor = DecodeFloor()
    for number, ms in enumerate(milliseconds):
        floor.see(step(number, float(number), number + ms / 1000, parts))
    return floor


def test_it_is_the_tenth_percentile_of_the_steps():
    assert after(range(20, 61)).ms == pytest.approx(24.0)  # 41 steps of 20 to 60 ms: the 5th smallest


def test_until_twenty_steps_were_seen_it_is_not_known():
    assert after([30] * 19).ms is None
    assert after([30] * 20).ms == pytest.approx(30)


@pytest.mark.parametrize("parts", [(PREFILL,), (DECODE, PREFILL), ()])
def test_steps_with_prefill_and_steps_without_anything_do_not_count(parts):
    assert after([500] * 50, parts).ms is None


def test_with_two_steps_in_flight_a_step_begins_when_the_one_before_ends():
    floor = DecodeFloor()
    for number in range(30):  # each takes 40 ms and is scheduled 35 ms before the one before it has ended
        floor.see(step(number, number * 0.04 - 0.035, (number + 1) * 0.04, (DECODE,) if number else (PREFILL,)))
    assert floor.ms == pytest.approx(40)


def test_it_follows_the_last_steps():
    floor = after([10] * 600)
    for number in range(600, 1200):
        floor.see(step(number, float(number), number + 0.05))
    assert floor.ms == pytest.approx(50)


def test_only_a_target_that_no_step_could_meet_is_refused():
    floor = after([80] * 20)
    floor.check(KNOBS)
    floor.check(KNOBS.replace(target_gap_ms=80))
    floor.check(KNOBS.replace(policy="qos", target_gap_ms=1))
    DecodeFloor().check(KNOBS.replace(target_gap_ms=1))
    with pytest.raises(EnvelopeError) as refused:
        floor.check(KNOBS.replace(target_gap_ms=60))
    assert refused.value.what == "target_gap_ms"
    assert refused.value.expected.startswith("at least 80.0, the measured decode floor")
    assert "120 or more" in refused.value.fix
