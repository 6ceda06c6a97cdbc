from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.config import SLO
from workbench.trace import Trace, table_of
from workbench.ui.charts import Look, gap_chart, memory_chart, queue_chart, run_span, step_chart
from workbench.ui.live.chart_rows import Window
from workbench.ui.live.gap_rows import GapRows
from workbench.ui.live.rows import LiveRows

MIB, GIB = 2**20, 2**30
SPLIT = {"rank": 0, "weights_bytes": 270 * MIB, "kv_bytes": 2 * GIB}


def drawn(chart, *fields):
    """Rows of a static chart that have all of these fields, and of each only those that are given."""
    rows = [row for data in chart.to_dict()["datasets"].values() for row in data]
    return sorted(({name: row[name] for name in fields} for row in rows if set(fields) <= set(row)), key=order)


def order(row):
    """Texts first: numbers of one stream are far enough apart that their last digit does not matter."""
    texts = [str(value) for value in row.values() if value is None or isinstance(value, str)]
    return texts, [value for value in row.values() if isinstance(value, int | float)]


def only(rows, *fields):
    return sorted(({name: row[name] for name in fields} for row in rows), key=order)


def same(found, expected):
    """The same rows; numbers may differ in the last digit that is kept, since numpy rounds otherwise than Python."""
    assert len(found) == len(expected) > 0
    for mine, theirs in zip(found, expected, strict=True):
        for name, value in theirs.items():
            if isinstance(value, float):
                assert mine[name] == pytest.approx(value, abs=1.01e-4 if name in ("t", "t0", "t2") else 0.0101)
            else:
                assert mine[name] == value


def sampled(trace, split=None):
    """The same run with memory samples, and a preemption."""
    last = run_span(trace)[1]
    memory = [
        {"t_s": n / 20, "source": source, "bytes": size, "note": None}
        for n in range(int(last * 20))
        for source, size in (("host engine rss", 3 * GIB + n * MIB), ("host available", 9 * GIB))
    ]
    memory.insert(5, {"t_s": 0.1, "source": "nvml used", "bytes": None, "note": "no GPU"})
    steps = trace.tables["steps"].to_pylist()
    steps[9]["preempted"] = ["chat-1", "doc-0"]
    tables = {"memory": table_of("memory", memory), "steps": table_of("steps", steps)}
    tokens = [row | {"engine_s": None, "step": None} for row in trace.tables["tokens"].to_pylist()]
    tables["tokens"] = table_of("tokens", tokens)  # as they are while a run goes on
    return Trace({**trace.tables, **tables}, {**trace.meta, "engine": {"memory_split": split}})


@pytest.fixture(scope="module")
def trace(make_trace):
    return sampled(make_trace(budget=256, output=100, second_revision=True), SPLIT)


def streams(trace):
    return {row["request"]: row["class"] for row in trace.tables["requests"].to_pylist()}


def live(trace, window_s=60.0, split=SPLIT, **more):
    return LiveRows(window_s, SLO(), streams(trace), split, **more)


@pytest.fixture(scope="module")
def board(trace, played):
    """All of the run, in a window that holds it."""
    return played(trace, live(trace), run_span(trace)[1] + 0.2)


@pytest.fixture(scope="module")
def look():
    return Look(x_domain=(0.0, 60.0))


def test_gap_rows_are_those_of_the_static_chart(trace, board, look):
    chart = gap_chart(trace, SLO(), look)
    gap = ("t", "gap", "stream", "n")
    same(only(board.plain("gaps", "gaps"), *gap), drawn(chart, *gap))
    assert all(row["series"] == row["stream"] for row in board.plain("gaps", "gaps"))
    stall = ("t", "t0", "gap", "stream")
    same(only(board.plain("gaps", "stalls"), *stall), drawn(chart, *stall))
    shades, names = board.plain("gaps", "shades"), board.plain("gaps", "shade_labels")
    same(only([*shades, *names], "t", "t2", "what"), drawn(chart, "t", "t2", "what"))
    same(only(names, "t", "what", "line"), drawn(chart, "t", "what", "line"))
    same(only(board.plain("gaps", "longest"), "gap", "label"), drawn(chart, "gap", "label"))


def test_step_rows_are_those_of_the_static_chart(trace, board, look):
    chart = step_chart(trace, look)
    bar = ("t", "y", "y2", "tokens", "step", "ms")
    bars = board.plain("steps", "bars")
    same(only(bars, *bar), drawn(chart, *bar))
    assert {row["what"] for row in bars} == {"decode", "doc-0", "other prefill"}
    assert {row["kind"] for row in bars if row["what"] == "doc-0"} == {"slot 1"}
    assert board.plain("steps", "slots") == [{"kind": "slot 1", "name": "doc-0"}]
    pixel = 60 / look.width
    ends = {(row["step"], row["y"]): row["t2"] for row in drawn(chart, "step", "y", "t2", "kind")}
    assert all(abs(row["t2"] - ends[row["step"], row["y"]]) < 1.5 * pixel for row in bars)
    line = [row for row in drawn(chart, "t", "ms") if row not in only(bars, "t", "ms")]
    breaks = [row for row in line if row["ms"] is None][:-1]  # that the last one is the end is not known yet
    found = board.plain("steps", "times")
    assert [row["t"] for row in found if row["ms"] is None] == [row["t"] for row in breaks]
    known = sorted((row["t"], row["ms"]) for row in found if row["ms"] is not None)
    steps = sorted(
        (round(row["start_s"], 4), (row["end_s"] - row["start_s"]) * 1e3) for row in trace.tables["steps"].to_pylist()
    )
    assert len(known) == len(steps) + len(breaks)
    assert [ms for _, ms in steps] == pytest.approx([dict(known)[t] for t, _ in steps], abs=0.006)


def test_memory_rows_are_those_of_the_static_chart(trace, board, look):
    chart = memory_chart(trace, look)
    peak = ("t", "mib", "tokens", "step")
    same(only(board.plain("memory", "peaks"), *peak), drawn(chart, *peak))
    level = ("t", "gib", "source")
    same(only(board.plain("memory", "levels"), *level), drawn(chart, *level))
    assert {row["source"] for row in board.plain("memory", "levels")} == {"host engine rss"}
    part = ("part", "y", "y2", "mib")
    same(only(board.plain("memory", "split"), *part), drawn(chart, *part))
    assert [row["part"] for row in board.plain("memory", "split")] == ["weights", "KV pool", "activation peak"]


def test_queue_rows_are_those_of_the_static_chart(trace, board, look):
    chart = queue_chart(trace, look)
    same(only(board.plain("queue", "kv"), "t", "kv"), drawn(chart, "t", "kv"))
    line = ("t", "series", "requests")
    same(only(board.plain("queue", "requests"), *line), drawn(chart, *line))
    (cross,) = board.plain("queue", "losses")
    assert [cross] == drawn(chart, "t", "victims", "who")
    assert cross["who"] == "chat-1, doc-0"


@pytest.mark.parametrize("chart", ["gaps", "steps", "memory", "queue"])
def test_knob_rules_are_those_of_the_static_chart_on_all_four(trace, board, look, chart):
    static = step_chart(trace, look).to_dict()["datasets"].values()
    rules = max((rows for rows in static if rows and "running cap" in rows[0]), key=len)  # the others are the labels
    assert board.plain(chart, "rules") == rules
    assert [row["label"] for row in board.plain(chart, "rule_labels")] == ["rev 2"]  # 2 s are 24 px: rev 1 has no room
    assert [row["t"] for row in rules] == [0.0, 2.01]


def test_taking_all_at_once_is_taking_it_bit_by_bit(trace, board, kept):
    rows, late, end = live(trace), kept(), run_span(trace)[1] + 0.2
    for table in ("tokens", "batch", "steps", "memory", "knobs", "requests"):
        rows.take(table, trace.tables[table].to_pylist())
    late.push(rows.changes(end))
    for chart, datasets in board.rows.items():
        for name in datasets:
            if (chart, name) != ("steps", "bars"):
                assert sorted(late.plain(chart, name), key=order) == sorted(board.plain(chart, name), key=order), (
                    chart,
                    name,
                )
    kind = ("t", "y", "y2", "tokens", "what")
    assert only(late.plain("steps", "bars"), *kind) == only(board.plain("steps", "bars"), *kind)
    assert late.signals == board.signals


def test_what_left_the_window_is_dropped(trace, played):
    board = played(trace, live(trace, window_s=2.0), 6.0)
    assert (board.signals["t0"], board.signals["t1"]) == (4.0, 6.0)
    gaps = board.plain("gaps", "gaps")
    client = [row["client_s"] for row in trace.tables["tokens"].to_pylist()]
    assert len(gaps) == sum(4.0 <= at <= 6.0 for at in client) > 5
    assert min(row["t2"] for row in board.plain("steps", "bars")) >= 4.0
    assert [row["label"] for row in board.plain("steps", "rules")] == ["rev 2"]  # in force, though set before
    assert board.count("queue") > 0
    empty = LiveRows(2.0, SLO(), {})
    assert empty.changes(9.0).add == {}
    board = played(trace, live(trace, window_s=2.0), run_span(trace)[1] + 30)
    assert {name: len(rows) for name, rows in board.rows["gaps"].items() if rows} == {"rules": 1, "rule_labels": 1}


def test_names_of_prompts_do_not_lie_on_each_other_in_a_narrow_panel():
    """At 480 px the first name ends at 26 s, at 720 px at 18: the second is a line higher."""
    rows = GapRows(SLO(), {"long-0": "long", "long-1": "long"}, 1000)
    sent = {"prompt_tokens": 16_384, "first_s": None, "class": "long"}
    for n, at in enumerate((2.0, 24.0)):
        rows.requests([{**sent, "request": f"long-{n}", "sent_s": at, "done_s": at + 3}])
    rows.settle(Window(0.0, 60.0))
    added, _ = rows.drain()
    assert [row["t"] for row in added["shades"]] == [2.0, 24.0]
    assert [(row["t"], row["line"]) for row in added["shade_labels"]] == [(2.0, 0), (24.0, 1)]


def test_the_window_begins_at_zero_and_then_follows():
    rows = LiveRows(10.0, SLO(), {})
    assert [rows.changes(now).signals["t0"] for now in (0.5, 10.0, 12.5)] == [0.0, 0.0, 2.5]
    assert rows.changes(12.5).signals["t1"] == 12.5


def busy(seconds, tokens_hz=1000, steps_hz=50, streams=60):
    """SYNTHETIC rows of each tick of 0.1 s: a busy engine, with one long step and gap in the middle."""
    random = np.random.default_rng(1)
    ticks = []
    for tick in range(int(seconds * 10)):
        at = tick / 10
        spike = tick == seconds * 5
        steps, batch = [], []
        for n in range(steps_hz // 10):
            number, start = tick * steps_hz // 10 + n, at + n / steps_hz
            size = 5000 if spike and n == 0 else int(random.integers(0, 200))
            steps.append(
                {"step": number, "scheduled_s": start, "start_s": start, "end_s": start + 0.9 / steps_hz,
                 "prefill_tokens": size, "decode_tokens": 20, "running": 40, "waiting": 2, "kv_use": 0.5,
                 "preempted": [], "activation_bytes": size * 17_000}
            )  # fmt: skip
            batch += [
                {"step": number, "request": f"r{number % streams}", "tokens": size, "context": 0, "prefill": True}
            ]
        tokens = [
            {"request": f"r{n % streams}", "index": 0, "n": 1, "client_s": at + n * 0.1 / (tokens_hz // 10)}
            for n in range(tokens_hz // 10)
            if not (tick % (seconds * 5) < 5 and n % streams == 7 and tick > 10)
        ]
        memory = [{"t_s": at, "source": f"GPU {n} used", "bytes": 70 * GIB, "note": None} for n in range(8)]
        ticks.append({"steps": steps, "batch": batch, "tokens": tokens, "memory": memory})
    return ticks


def test_a_busy_engine_stays_in_bounds_and_keeps_its_spike(kept):
    rows, board = LiveRows(60.0, SLO(), {f"r{n}": f"class-{n % 2}" for n in range(60)}, SPLIT), kept()
    longest = 0
    for tick, tables in enumerate(busy(80)):
        for table, some in tables.items():
            rows.take(table, some)
        board.push(rows.changes((tick + 1) / 10))
        longest = max(longest, *(board.count(chart) for chart in board.rows))
        assert longest <= 2000
    assert longest > 1500
    assert max(row["tokens"] for row in board.plain("steps", "bars")) == 5000
    assert max(row["mib"] for row in board.plain("memory", "peaks")) == round(5000 * 17_000 / MIB, 3)
    gaps = [row["gap"] for row in board.plain("gaps", "gaps")]
    assert max(gaps) > 500 > 150 > np.median(gaps)
    assert board.plain("gaps", "longest")[0]["gap"] == max(gaps)
    assert {row["series"] for row in board.plain("gaps", "gaps")} == {"class-0", "class-1"}
    assert len({row["source"] for row in board.plain("memory", "levels")}) == 8


def test_axes_grow_at_once_and_shrink_late():
    rows = LiveRows(5.0, SLO(), {})

    def step(number, start, tokens):
        rows.take("steps", [{"step": number, "start_s": start, "end_s": start + 0.01, "decode_tokens": tokens}])
        return rows.changes(start + 0.1).signals["tokens_top"]

    assert step(0, 0.0, 4) == 64
    assert step(1, 1.0, 1000) == 1300
    assert step(2, 2.0, 10) == 1300
    assert step(3, 7.0, 10) == 1300  # the large one has just left
    assert step(4, 9.0, 10) == 1300
    assert step(5, 10.2, 10) == 64


def test_gap_axis_holds_gaps_and_the_slo(board):
    gaps = [row["gap"] for row in board.plain("gaps", "gaps")]
    assert board.signals["gap_lo"] <= np.percentile(gaps, 1)
    assert board.signals["gap_hi"] >= 5 * max(gaps)
    fast = LiveRows(5.0, SLO(gap_ms=4000), {})
    fast.take("tokens", [{"request": "a", "index": n, "n": 1, "client_s": n * 0.0004} for n in range(200)])
    signals = fast.changes(1.0).signals
    assert signals["gap_lo"] == pytest.approx(0.1)
    assert signals["gap_hi"] == 20_000
    paired = LiveRows(60.0, SLO(), {})  # each twentieth token came in one read with the one before
    at = np.cumsum([0.0 if n % 20 == 19 else 0.05 for n in range(200)])
    paired.take("tokens", [{"request": "a", "index": n, "n": 1, "client_s": float(t)} for n, t in enumerate(at)])
    assert paired.changes(11.0).signals["gap_lo"] == pytest.approx(1.0)


def test_colours_stay_with_their_requests(kept):
    rows, board = LiveRows(10.0, SLO(), {}), kept()

    def step(number, at, *parts):
        total = sum(tokens for _, tokens in parts)
        rows.take("steps", [{"step": number, "start_s": at, "end_s": at + 0.5, "prefill_tokens": total}])
        rows.take(
            "batch",
            [{"step": number, "request": name, "tokens": n, "context": 0, "prefill": True} for name, n in parts],
        )
        board.push(rows.changes(at + 0.6))
        return {row["name"]: row["kind"] for row in board.plain("steps", "slots")}

    longs = [(f"long-{n}", 2000) for n in range(5)]
    assert step(0, 0.0, ("tiny", 8), longs[0]) == {"long-0": "slot 1"}
    assert step(1, 1.0, *longs[1:4]) == {f"long-{n}": f"slot {n + 1}" for n in range(4)}
    assert step(2, 2.0, longs[4], longs[2])["long-2"] == "slot 3"  # and the fifth has none
    last = {row["what"]: row["kind"] for row in board.plain("steps", "bars") if row["step"] == 2}
    assert last == {"long-2": "slot 3", "other prefill": "other prefill"}
    held = step(3, 11.8, longs[4])  # 0 and 1 have left the window, which begins at 2.4
    assert held == {"long-2": "slot 3", "long-4": "slot 1"}


def test_short_prompts_leave_room_for_long_ones(kept):
    rows, board = LiveRows(60.0, SLO(), {}), kept()
    for number in range(8):
        rows.take("steps", [{"step": number, "start_s": number, "end_s": number + 0.1, "prefill_tokens": 300}])
        rows.take(
            "batch", [{"step": number, "request": f"chat-{number}", "tokens": 300, "context": 0, "prefill": True}]
        )
    rows.take("steps", [{"step": 9, "start_s": 9, "end_s": 9.1, "prefill_tokens": 500}])
    rows.take("batch", [{"step": 9, "request": "doc", "tokens": 500, "context": 900, "prefill": True}])
    board.push(rows.changes(10.0))
    assert {row["name"]: row["kind"] for row in board.plain("steps", "slots")} == {
        "chat-0": "slot 3",
        "chat-1": "slot 4",
        "doc": "slot 1",
    }


def test_a_step_waits_for_its_parts_once(kept):
    rows, board = LiveRows(60.0, SLO(), {}), kept()
    rows.take("steps", [{"step": 4, "start_s": 0.0, "end_s": 0.1, "prefill_tokens": 2000, "decode_tokens": 1}])
    board.push(rows.changes(0.2))
    assert board.plain("steps", "bars") == []
    rows.take("batch", [{"step": 4, "request": "doc", "tokens": 2000, "context": 0, "prefill": True}])
    board.push(rows.changes(0.3))
    assert [row["what"] for row in board.plain("steps", "bars")] == ["decode", "doc"]
    rows.take("steps", [{"step": 5, "start_s": 1.0, "end_s": 1.1, "prefill_tokens": 7, "decode_tokens": 0}])
    for _ in range(2):
        board.push(rows.changes(1.3))  # its parts were lost
    assert [row["what"] for row in board.plain("steps", "bars") if row["step"] == 5] == ["other prefill"]


def test_an_attached_server_shades_from_send_to_first(make_trace, played):
    trace = make_trace(kind="attached", output=20)
    board = played(trace, live(trace, split=None), 60.0)
    doc = trace.requests.set_index("request").loc["doc-0"]
    (shade,) = board.plain("gaps", "shades")
    assert shade["what"] == "doc-0: 3,000 tokens (sent → first)"
    assert (shade["t"], shade["t2"]) == pytest.approx((doc["sent_s"], doc["first_s"]), abs=1e-4)
    assert set(board.rows) == {"gaps"}


def test_a_device_takes_the_place_of_the_resident_line(kept):
    rows, board = LiveRows(60.0, SLO(), {}), kept()

    def sample(at, **sources):
        rows.take(
            "memory", [{"t_s": at, "source": name.replace("_", " "), "bytes": size} for name, size in sources.items()]
        )
        board.push(rows.changes(at))
        return [(row["source"], row["gib"]) for row in board.plain("memory", "levels")]

    assert sample(0.1, host_engine_rss=GIB, host_used=GIB) == [("host engine rss", 1.0)]
    assert sample(0.2, GPU_0_used=2 * GIB, host_engine_rss=GIB) == [("GPU 0 used", 2.0)]
    assert sample(0.3, GPU_0_used=None, GPU_1_used=3 * GIB) == [("GPU 0 used", 2.0), ("GPU 1 used", 3.0)]
    assert board.signals["gib_top"] == 3.5


def test_the_split_may_come_with_the_first_step(trace, kept, played):
    rows, board = live(trace, split=None), kept()
    played(trace, rows, 1.0, board=board)
    assert board.plain("memory", "split") == []
    rows.memory_split = SPLIT
    board.push(rows.changes(1.1))
    parts = {row["part"]: row["mib"] for row in board.plain("memory", "split")}
    assert (parts["weights"], parts["KV pool"]) == (270.0, 2048.0)
    before = parts["activation peak"]
    played(trace, rows, 4.0, board=board)
    (now,) = [row["mib"] for row in board.plain("memory", "split") if row["part"] == "activation peak"]
    assert now > before


def test_what_is_no_number_is_left_out(kept):
    rows, board = LiveRows(60.0, SLO(), {}), kept()
    rows.take("steps", [
        {"step": 0, "start_s": math.nan, "scheduled_s": 0.1, "end_s": 0.2, "prefill_tokens": None, "decode_tokens": 2,
         "kv_use": math.nan, "running": None, "activation_bytes": math.nan, "preempted": None},
        {"step": 1, "start_s": 0.3, "end_s": None, "decode_tokens": 2},
    ])  # fmt: skip
    rows.take("tokens", [{"request": "a", "index": 0, "n": 1, "client_s": None}])
    rows.take("memory", [{"t_s": 0.1, "source": "host engine rss", "bytes": None, "note": "gone"}])
    board.push(rows.changes(1.0))
    (bar,) = board.plain("steps", "bars")
    assert (bar["t"], bar["ms"], bar["tokens"]) == (0.1, 100.0, 2)
    assert set(board.rows) == {"steps"}


def test_a_dropped_prompt_is_in_the_series_of_its_class(make_trace, kept):
    many = {f"chat-{n}": "chat" for n in range(9)} | {"doc-0": "long"}
    rows, board = LiveRows(60.0, SLO(), many), kept()
    rows.take("requests", [{"request": "dropped-0", "class": "long"}, {"request": "odd", "class": "unheard of"}])
    for name in ("chat-3", "dropped-0", "odd"):
        rows.take("tokens", [{"request": name, "index": n, "n": 1, "client_s": n / 10} for n in range(2)])
    board.push(rows.changes(1.0))
    assert {row["stream"]: row["series"] for row in board.plain("gaps", "gaps")} == {
        "chat-3": "chat",
        "dropped-0": "long",
        "odd": "other",
    }


def test_events_are_all_rows_of_the_trace(trace, sink_events):
    """The helper feeds what it says."""
    tables = [table for _, table, _ in sink_events(trace)]
    assert tables.count("steps") == trace.tables["steps"].num_rows
    assert tables.count("tokens") == trace.tables["tokens"].num_rows


def test_streams_that_have_ended_and_left_the_window_are_forgotten():
    rows = LiveRows(5.0, SLO(), {})
    for second in range(100):
        name = f"r{second}"
        # Its end may be told before its last token.
        rows.take("tokens", [{"request": name, "index": 0, "n": 1, "client_s": second + 0.1}])
        rows.take("requests", [{"request": name, "class": "chat", "done_s": second + 0.3, "status": "ok"}])
        rows.take("tokens", [{"request": name, "index": 1, "n": 1, "client_s": second + 0.3}])
        changes = rows.changes(second + 1.0)
        assert [row["gap"] for row in changes.add["gaps"]["gaps"]] == [200.0]
    assert sorted(rows._gaps._last_s) == ["r95", "r96", "r97", "r98", "r99"]
    assert len(rows._gaps._ended) == 5
