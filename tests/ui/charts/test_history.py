"""The history: a lane a request, its phases, and what each preemption cost."""

from __future__ import annotations

import pandas as pd
import pytest

from workbench import metrics
from workbench.ui.charts import Look, history_chart
from workbench.ui.charts.history import LANE, LANES
from workbench.ui.charts.history_marks import short


def bars(rows, chart):
    return pd.DataFrame([row for row in rows(chart) if "phase" in row])


def test_every_request_has_a_lane_and_classes_stand_together(crowded, rows):
    chart = history_chart(crowded)
    drawn = bars(rows, chart)
    lane = ((drawn["y"] + drawn["y2"]) / 2).groupby(drawn["request"]).agg(["min", "max"])
    assert (lane["min"] == lane["max"]).all()
    order = lane["min"].sort_values().index.tolist()
    asked = crowded.requests.sort_values(["priority", "planned_s"])
    assert order == asked["request"].tolist()
    headings = [row["what"] for row in rows(chart) if "what" in row]
    assert headings == ["vip (priority 0)", "chat (priority 1)", "offline (priority 2)"]
    assert chart.to_dict()["height"] == (12 + 3 + 1) * LANE


def test_heights_tell_phases_apart(crowded, rows):
    drawn = bars(rows, history_chart(crowded))
    height = (drawn["y2"] - drawn["y"]).round(2).groupby(drawn["phase"]).unique().map(list).to_dict()
    assert height == {"decode": [0.34], "prefill": [0.8], "preempted": [0.0], "queued": [0.0], "recompute": [0.8]}


def test_bars_are_the_phases(crowded, rows):
    drawn = bars(rows, history_chart(crowded))
    doc = crowded.requests.set_index("request").loc["offline-3"]
    mine = drawn[drawn["request"] == "offline-3"].sort_values(["t", "t2"])
    assert mine["phase"].tolist()[:2] == ["queued", "prefill"]
    assert mine["t"].iloc[0] == pytest.approx(doc["sent_s"], abs=1e-3)
    batch = crowded.batch
    computed = batch.loc[batch["request"] == "offline-3", "tokens"].sum()
    assert mine["tokens"].sum() == computed


def test_crosses_say_what_was_lost(crowded, rows, subtitle, svg):
    steps = crowded.steps.explode("preempted").dropna(subset=["preempted"])
    chart = history_chart(crowded)
    crosses = [row for row in rows(chart) if "lost" in row]
    marks = {(row["request"], row["t"]) for row in crosses}
    assert len(marks) == len(steps)
    held = metrics.preemptions(crowded)["lost_tokens"].sum()
    assert f"{len(steps)} preemptions, {held:,} tokens lost" in subtitle(chart)
    chat = next(row for row in crosses if row["request"] == "chat-3")
    assert chat["fits"]
    assert f">−{chat['lost']}</text>" in svg(chart)


def test_no_label_without_room(crowded, rows, svg):
    crosses = [row for row in rows(history_chart(crowded, Look(x_domain=(0.0, 400.0)))) if "fits" in row]
    assert crosses
    assert not any(row["fits"] for row in crosses)


def many(with_rows, trace, count=60):
    """SYNTHETIC: so many chats one after the other, each queued for n ms; every tenth is lost once."""
    requests, steps, batch = [], [], []
    for n in range(count):
        at, name = float(n), f"chat-{n}"
        requests.append({"request": name, "class": "vip" if n == 7 else "chat", "priority": 1, "sent_s": at,
                         "planned_s": at, "done_s": at + 0.9})  # fmt: skip
        plan = [(0.1 + n / 1000, 9, 0, True, []), (0.3, 1, 9, False, [])]
        if n % 10 == 0:
            plan += [(0.5, 1, 0, True, [name]), (0.6, 9, 1, True, []), (0.7, 1, 10, False, [])]
        for begin, tokens, context, prefill, lost in plan:
            step = len(steps)
            steps.append({"step": step, "scheduled_s": at + begin, "start_s": at + begin, "end_s": at + begin + 0.05,
                          "prefill_tokens": tokens * prefill, "decode_tokens": tokens * (not prefill),
                          "preempted": lost})  # fmt: skip
            batch.append({"step": step, "request": name, "tokens": tokens, "context": context, "prefill": prefill,
                          "emitted": int(not prefill)})  # fmt: skip
    return with_rows(trace, requests=requests, steps=steps, batch=batch, tokens=[], knobs=[], memory=[])


def test_too_many_requests_are_thinned_to_those_that_tell_most(trace, rows, subtitle, with_rows):
    chart = history_chart(many(with_rows, trace))
    shown = set(bars(rows, chart)["request"])
    assert len(shown) <= LANES
    assert {f"chat-{n}" for n in range(0, 60, 10)} <= shown, "all that lost something"
    assert "chat-7" in shown, "each class has a lane"
    assert "chat-59" in shown, "it waited longest"
    assert "chat-1" not in shown
    assert f"{len(shown)} of 60 requests shown" in subtitle(chart)


def test_too_many_phases_are_thinned_to_the_longest(crowded, rows, subtitle):
    chart = history_chart(crowded, Look(limit=160))
    assert len(rows(chart)) <= 160
    assert "phases drawn: the longest" in subtitle(chart)


def test_without_preemptions_it_says_so(trace, subtitle):
    assert "no preemption" in subtitle(history_chart(trace))


def test_names_keep_what_tells_them_apart():
    assert [short(name) for name in ("chat-12", "interactive-12", "interactive-13")] == [
        "chat-12",
        "in…e-12",
        "in…e-13",
    ]
