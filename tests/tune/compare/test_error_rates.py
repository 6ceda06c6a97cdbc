"""How often a comparison is right on made-up machines that drift and whose noise hangs together; seeds are fixed."""

import pytest

MACHINES = {
    "as here": {},
    "steady": {"drift": 0.0},
    "drifts": {"drift": 0.08, "noise": 0.03, "rho": 0.9},
}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_setting_seldom_differs_from_itself(simulate, machine):
    found = [simulate(seed, **MACHINES[machine]) for seed in range(100)]
    differ = sum(one.verdict.kind in ("A better", "B better") for one in found)
    assert differ <= 9, "5 % of 100 are 5, and ten or more come once in forty"
    covered = sum(one.estimates["throughput"].low <= 1 <= one.estimates["throughput"].high for one in found)
    assert covered == 100 - differ


@pytest.mark.parametrize("faster", [1.1, 1 / 1.1])
@pytest.mark.parametrize("machine", MACHINES)
def test_ten_per_cent_are_found(simulate, machine, faster):
    found = [simulate(seed, faster, **MACHINES[machine]) for seed in range(100, 140)]
    right = "A better" if faster > 1 else "B better"
    assert sum(one.verdict.kind == right for one in found) >= 38
    wrong = {"A better", "B better"} - {right}
    assert not any(one.verdict.kind in wrong for one in found)
    covered = [one.estimates["throughput"].low <= faster <= one.estimates["throughput"].high for one in found]
    assert sum(covered) >= 36, "95 % of 40 are 38"


def test_it_stops_before_the_rounds_are_used_up(simulate):
    rounds = [len(simulate(seed, 1.5).rounds) for seed in range(20)]
    assert sorted(rounds)[10] == 4, "a large difference is clear at the first look"
    assert max(rounds) <= 8


def test_interruptions_find_no_more_differences(simulate):
    """Somebody who looks at any time and stops there sees the interval of that look."""
    cut = [simulate(seed, rounds=20, drift=0.0) for seed in range(60)]
    for one in cut:
        del one.rounds[4:]
    assert sum(one.verdict.kind in ("A better", "B better") for one in cut) <= 2
