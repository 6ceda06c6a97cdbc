"""The answer of a study, on made-up results."""

from __future__ import annotations

import json
import math

import pytest
from made_results import MadeUpPlayer, result

from workbench.i18n import speaking, translate
from workbench.tune.answer.answer import Answer
from workbench.tune.answer.confirm import confirm
from workbench.tune.answer.importance import importance, parameters
from workbench.tune.goal import Goal

GOAL = Goal(("goodput",), {"gap_p99_ms": 200})
SEARCH = [
    result(0, {"budget": 64}, 1.0, gap=50.0),
    result(1, {"budget": 128}, 2.0, gap=90.0),
    result(2, {"budget": 256}, 2.2, gap=190.0),
    result(3, {"budget": 512}, 3.0, gap=400.0),
    result(4, {"budget": 32}, state="failed", objectives=(), error="engine: it died"),
]


def test_before_a_confirmation_the_best_of_the_search_is_the_answer_and_says_so():
    answer = Answer.of(SEARCH, GOAL)
    assert (answer.best.name, answer.runner_up.name) == ("budget 256", "budget 128")
    assert answer.words == [
        "budget 256: goodput 2.2 (one play) requests/s [live CPU]",
        "not confirmed yet: it rests on 1 play, and budget 128 may be as good",
        "runner-up: budget 128, 9.1% behind",
        "gap_p99_ms is 190 of 200 allowed (5% below); it binds: budget 512 would be 36.4% better and misses it by 100%",
    ]


def test_the_answer_is_told_in_chinese_and_stays_english_itself():
    with speaking("zh"):
        words = [*Answer.of(SEARCH, GOAL).words, *Answer.of(SEARCH[3:], GOAL).words, *Answer.of([], GOAL).words]
        told = [translate(one) for one in [*words, GOAL.words]]
    assert words[2] == "runner-up: budget 128, 9.1% behind"
    assert told == [
        "budget 256：有效吞吐（请求/s）2.2（一次运行） [真实 CPU]",
        "尚未复验：只依据 1 次运行，budget 128 也可能同样好",
        "次选：budget 128，落后 9.1%",
        "gap_p99_ms 为 190，上限 200（低于 5%）；它起约束作用：budget 512 会好 36.4%，但超出该限制 100%",
        "1 个设置都不满足限制：gap_p99_ms 起约束作用，为 400，上限 200（超出 100%），最接近的是 budget 512",
        "尚未运行任何试验",
        "最大化有效吞吐，限制 gap_p99_ms ≤ 200",
    ]


def test_what_wins_the_confirmation_is_recommended():
    played = confirm(SEARCH, GOAL, MadeUpPlayer(lambda point, seed: (300.0 / point.hot["budget"], 100.0)))
    answer = Answer.of(SEARCH, GOAL, played)
    assert (answer.best.name, answer.runner_up.name) == ("budget 128", "budget 256")
    # 300/128 = 2.34 against 300/256 = 1.17: 100 % better, and not said again as 50 % behind
    assert "better than budget 256 (+100.0%" in answer.words[1]
    assert answer.words[2] == "runner-up: budget 256, in the same fresh plays"
    assert answer.engine_s == pytest.approx(2.0 * 11)
    assert json.loads(json.dumps(answer.as_dict()))["confirmation"]["winner"] == "budget 128"


def test_a_runner_up_that_broke_a_limit_on_fresh_seeds_is_none():
    played = confirm(
        SEARCH,
        GOAL,
        MadeUpPlayer(lambda point, seed: (point.hot["budget"], 250.0 if point.hot["budget"] == 256 else 9.0)),
    )
    answer = Answer.of(SEARCH, GOAL, played)
    assert (answer.best.name, answer.runner_up.name) == ("budget 128", "budget 64")


def test_where_no_setting_is_within_the_limits_the_answer_is_why():
    answer = Answer.of(SEARCH[3:], GOAL)
    assert answer.best is None
    assert answer.words == [
        "the only setting is not within the limits: gap_p99_ms binds, with 400 where 200 is allowed (100% above), "
        "at the nearest, budget 512"
    ]
    assert Answer.of([], GOAL).words == ["nothing was played yet"]


def test_what_was_not_measured_is_null_and_said():
    never = result(5, {"budget": 8}, objectives=(math.inf,))
    answer = Answer.of([result(0, {"budget": 64}, objectives=(2.0,)), never], Goal(("long_ttft",), {"gap_p99_ms": 200}))
    assert "runner-up: budget 8, whose long prompt's TTFT was not measured" in answer.words
    facts = json.loads(json.dumps(answer.as_dict(), allow_nan=False))
    assert facts["runner_up"]["objectives"] == [None]


def test_simulated_figures_are_not_compared_with_measured_ones():
    answer = Answer.of([*SEARCH, result(5, {"budget": 1024}, 9.0, label="simulated · roofline, uncalibrated")], GOAL)
    assert answer.best.name == "budget 256"
    assert answer.words[-1] == "1 simulated trials are not compared with these"


def test_a_pick_that_plain_vllm_cannot_serve_comes_with_one_that_it_can():
    answer = Answer.of([result(0, {"policy": "qos"}, 4.0), result(1, {"policy": "chunked"}, 3.0)], GOAL)
    assert "plain vLLM has no policy qos; the best that it can serve is chunked, 25.0% behind" in answer.words
    assert answer.best_stock.name == "chunked"
    assert Answer.of(SEARCH, GOAL).best_stock is None


def test_the_table_has_the_best_on_top_and_then_by_how_far_they_miss():
    more = [*SEARCH, result(5, {"budget": 1024}, state="stopped", excess={"gap_p99_ms": -0.5})]
    table = Answer.of(more, GOAL).table
    assert table["setting"].tolist() == [f"budget {n}" for n in (256, 128, 64, 1024, 512)]
    assert table["limits"].tolist() == ["met", "met", "met", "stopped early", "broken"]
    assert table["goodput"].tolist()[:3] == [2.2, 2.0, 1.0]


def test_what_tells_the_best_from_the_rest_matters_most():
    grid = [(budget, chunk) for budget in (64, 128, 256, 512) for chunk in (0, 32, 64, 128)]
    results = [
        result(number, {"budget": budget, "chunk": chunk, "policy": "chunked"}, 5.0 if budget == 256 else 1.0)
        for number, (budget, chunk) in enumerate(grid)
    ]
    candidates = Answer.of(results, GOAL).candidates
    shares = importance(candidates, GOAL)
    assert list(shares) == ["budget", "chunk"], "what was not varied has no share"
    assert shares["budget"] > 0.9
    assert sum(shares.values()) == pytest.approx(1.0)
    assert importance(candidates[:7], GOAL) == {}


def test_parameters_that_a_setting_does_not_have_are_unset():
    results = [
        result(0, {"policy": "chunked", "budget": 64}),
        result(1, {"policy": "target_gap", "target_gap_ms": 90.0}),
    ]
    varied = parameters(Answer.of(results, GOAL).candidates)
    assert varied == {
        "policy": ["chunked", "target_gap"],
        "budget": [64, "unset"],
        "target_gap_ms": [90.0, "unset"],
    }


def test_each_limit_is_told_with_how_far_it_is_and_those_that_bind_come_first():
    goal = Goal(("goodput",), {"ttft_p99_s": 4.0, "gap_p99_ms": 200})
    excess = {"ttft_p99_s": -0.75, "failed requests": 0.0}
    results = [
        result(0, {"budget": 128}, 2.0, excess={**excess, "gap_p99_ms": -0.5}),
        result(1, {"budget": 512}, 3.0, excess={**excess, "gap_p99_ms": 0.25}),
    ]
    assert [one for one in Answer.of(results, goal).words if "allowed" in one] == [
        "gap_p99_ms is 100 of 200 allowed (50% below); it binds: budget 512 would be 50.0% better and misses it by 25%",
        "ttft_p99_s is 1 of 4 allowed (75% below)",
    ]


def test_with_several_objectives_the_answer_names_their_front():
    goal = Goal(("goodput", "long_ttft"), {"gap_p99_ms": 200})
    results = [
        result(0, {"budget": 64}, objectives=(1.0, 3.0)),
        result(1, {"budget": 128}, objectives=(2.0, 5.0)),
        result(2, {"budget": 256}, objectives=(1.5, 6.0)),  # 128 is better in both
        result(3, {"budget": 512}, gap=400.0, objectives=(9.0, 1.0)),  # breaks the limit
    ]
    answer = Answer.of(results, goal)
    assert "on the front of the objectives: budget 128, budget 64" in answer.words
    assert answer.as_dict()["trade_off"] == ["budget 128", "budget 64"]
    assert not any("front" in one for one in Answer.of(SEARCH, GOAL).words)
