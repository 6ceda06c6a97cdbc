"""Points by name, results as plain data."""

import json
import math

from workbench.tune.trial import Point, Result


def test_points_are_called_by_what_they_turn():
    point = Point({"budget": 256, "chunk": 128, "policy": "qos"}, {"max_num_seqs": 16})
    assert point.name == "budget 256 chunk 128 qos max_num_seqs 16"
    assert Point({"budget": 64, "chunk": 0, "target_gap_ms": 212.345, "reserve_full": False}).name == (
        "budget 64 chunk off target_gap_ms 212.3 reserve_full off"
    )
    assert point.setting.budget == 256
    assert point.setting.policy == "qos"
    assert Point().name == "as started"


def test_a_point_is_the_same_in_any_order_and_after_json():
    one, other = Point({"budget": 64, "chunk": 0}), Point({"chunk": 0, "budget": 64})
    assert one.key == other.key
    assert Point.of_dict(json.loads(json.dumps(one.as_dict()))) == one


def test_a_result_is_the_same_after_json():
    result = Result(
        3,
        Point({"budget": 64}),
        7,
        "stopped",
        {"gap_p99_ms": 250.0, "ttft_p99_s": math.inf},
        (1.5, math.inf),
        {"gap_p99_ms": 0.25},
        4.5,
        "live CPU",
        error="gap_p99_ms cannot be met",
    )
    again = Result.of_dict(json.loads(json.dumps(result.as_dict(), allow_nan=False)))
    assert again.figures == {"gap_p99_ms": 250.0}
    assert (again.objectives, again.excess, again.point) == (result.objectives, result.excess, result.point)
    assert again.worst == ("gap_p99_ms", 0.25)
    assert not again.feasible


def test_feasible_is_complete_and_within_all_limits():
    within = {"gap_p99_ms": -0.1, "failed requests": 0.0}
    assert Result(0, Point(), 0, "complete", {}, (1.0,), within).feasible
    assert not Result(0, Point(), 0, "stopped", {}, (1.0,), within).feasible
    assert not Result(0, Point(), 0, "complete", {}, (1.0,), within | {"failed requests": 0.1}).feasible
    assert not Result(0, Point(), 0, "failed").feasible
