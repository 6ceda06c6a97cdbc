"""Goals: what clashes is named before anything starts, and figures are those of a trace made by hand."""

import pytest
from search_stand_ins import a_scenario

from workbench.config import SLO
from workbench.errors import InputError, ScenarioError
from workbench.trace import Trace, table_of
from workbench.tune.goal import FAILED, Goal


def a_trace():
    """Two chats and a document. Gaps of the chats: 100, 100, 300 and 50 ms; TTFT 0.5, 1.0 and 3.0 s."""

    def request(name, of, planned, first, last, prompt, output, status="ok"):
        return {
            "request": name, "class": of, "priority": 1, "prompt_tokens": prompt, "max_tokens": output,
            "planned_s": planned, "sent_s": planned, "first_s": first, "last_s": last, "done_s": last,
            "output_tokens": output, "status": status,
        }  # fmt: skip

    def arrivals(name, *at):
        return [{"request": name, "index": i, "n": 1, "client_s": t} for i, t in enumerate(at)]

    requests = [
        request("chat-0", "chat", 0.0, 0.5, 1.0, 10, 4),
        request("chat-1", "chat", 1.0, 2.0, 2.05, 10, 2),
        request("doc-0", "document", 0.0, 3.0, 3.0, 2000, 1),
    ]
    tokens = [*arrivals("chat-0", 0.5, 0.6, 0.7, 1.0), *arrivals("chat-1", 2.0, 2.05), *arrivals("doc-0", 3.0)]
    made = dict(Trace.empty().tables)
    made["requests"], made["tokens"] = table_of("requests", requests), table_of("tokens", tokens)
    return Trace(made)


def test_figures_objectives_and_excess_of_a_trace():
    goal = Goal(
        ("goodput", "throughput", "long_ttft"),
        {"gap_max_ms": 250.0, "gap_p50_ms.chat": 200.0, "ttft_max_s.chat": 2.0},
        SLO(gap_ms=200, ttft_ms=2000),
    )
    figures, objectives, excess = goal.judge(a_trace())
    # chat-1 alone meets 2 s and 200 ms: chat-0 has a gap of 300 ms, the document a TTFT of 3 s. All of it took 3 s.
    assert objectives == pytest.approx((1 / 3, (7 + 2020) / 3, 3.0))
    assert figures["gap_max_ms"] == pytest.approx(300)
    assert figures["gap_p50_ms.chat"] == pytest.approx(100)
    assert figures["ttft_max_s"] == pytest.approx(3.0)
    # 1 - the larger of TTFT and gap over its promise: 1 - 1.5, 1 - 0.5 and 1 - 1.5.
    assert figures["slack"] == pytest.approx((-0.5 + 0.5 - 0.5) / 3)
    assert excess == pytest.approx({"gap_max_ms": 0.2, "gap_p50_ms.chat": -0.5, "ttft_max_s.chat": -0.5, FAILED: 0.0})


def test_what_did_not_end_well_is_an_excess_of_its_own():
    trace = a_trace()
    rows = trace.tables["requests"].to_pylist()
    rows[0]["status"] = "error"
    failed = Trace({**trace.tables, "requests": table_of("requests", rows)})
    assert Goal().judge(failed)[2] == pytest.approx({FAILED: 1 / 3})
    assert Goal(("goodput", "gap_p99")).judge(Trace.empty())[1] == (0.0, float("inf"))


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"gap_p99": 200}, "got 'gap_p99', expected one of gap_p50_ms"),
        ({"gap_p99_s": 0.2}, "got 'gap_p99_s'"),
        ({"gap_p99_ms": 0}, "limit gap_p99_ms: got '0', expected a number of ms above 0"),
        ({"ttft_p99_s": float("nan")}, "limit ttft_p99_s"),
        ({"gap_p99_ms": True}, "limit gap_p99_ms"),
        ({"gap_p99_ms": 300, "gap_max_ms": 200}, "limits gap_p99_ms and gap_max_ms: got '300 and 200'"),
        ({"gap_p50_ms.chat": 300, "gap_p99_ms.chat": 200}, "limits gap_p50_ms.chat and gap_p99_ms.chat"),
        ({"ttft_max_s.chat": 3, "ttft_max_s": 2}, "limits ttft_max_s.chat and ttft_max_s"),
    ],
)
def test_limits_that_cannot_be_are_named(limits, says):
    with pytest.raises(InputError) as error:
        Goal(limits=limits)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_limits_that_can_be_together():
    Goal(limits={"gap_p99_ms": 200, "gap_max_ms": 200, "ttft_p99_s.chat": 3.0, "ttft_p99_s": 2.0, "ttft_max_s": 5})


@pytest.mark.parametrize(
    ("objectives", "says"), [((), "none"), (("goodput", "goodput"), "differ"), (("speed",), "one of")]
)
def test_objectives_that_cannot_be_are_named(objectives, says):
    with pytest.raises(InputError, match=says):
        Goal(objectives)


def test_a_class_or_a_long_prompt_that_the_load_lacks_is_named():
    with pytest.raises(InputError, match=r"ttft_p99_s\.vip: got 'vip', expected a class of chat, document"):
        Goal(limits={"ttft_p99_s.vip": 1.0}).check(a_scenario())
    short = a_scenario(streams=[a_scenario().streams[0].model_dump(by_alias=True)])
    with pytest.raises(InputError, match="a longest prompt of 64"):
        Goal(("long_ttft",)).check(short)
    Goal(("long_ttft",), {"ttft_p99_s.chat": 1.0}).check(a_scenario())


def test_what_a_load_has_none_of_cannot_be_looked_for():
    (chat, _) = (one.model_dump(by_alias=True) for one in a_scenario().streams)
    single = a_scenario(streams=[chat | {"output_tokens": 1}])
    Goal(("goodput",), {"ttft_p99_s": 1.0}).check(single)
    for goal in (Goal(limits={"gap_p99_ms": 50.0}), Goal(("throughput", "gap_max"))):
        with pytest.raises(InputError, match="got 'requests of 1 output token', expected requests of 2 or more"):
            goal.check(single)
    never = a_scenario(streams=[chat | {"arrivals": {"kind": "poisson", "rate": 0.001, "duration_s": 1}}])
    with pytest.raises(InputError, match="scenario small: got 'no request with seed"):
        Goal().check(never)


def test_the_engine_says_how_long_a_request_may_be():
    with pytest.raises(ScenarioError, match="1500"):
        Goal().check(a_scenario(), 1024)
    Goal().check(a_scenario(), 2048)


def test_a_goal_is_the_same_as_plain_data():
    goal = Goal(("long_ttft",), {"gap_max_ms": 500.0}, SLO(gap_ms=123))
    assert Goal.of_dict(goal.as_dict()) == goal
    assert goal.words == "least long prompt's TTFT with gap_max_ms ≤ 500"
