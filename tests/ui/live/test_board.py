"""What the board tells its page, without a page."""

from __future__ import annotations

import json
import threading

import pytest
from traitlets import TraitError

from workbench.ui.live.board import Board
from workbench.ui.live.changes import BoardChart, Changes

CHART = BoardChart("gaps", "Gaps", "Points.", {"mark": "point"}, {"mark": "bar"})
STATUS = {"kpis": [], "badge": "live CPU", "state": "ready", "dropped": 0}


def row(number, value=1.0):
    return {"id": number, "t": number / 10, "v": value}


@pytest.fixture
def board(monkeypatch):
    """A board whose messages are kept, as JSON made them."""
    made = Board()
    made.sent = []
    monkeypatch.setattr(
        made, "send", lambda message, buffers=None: made.sent.append(json.loads(json.dumps(message, allow_nan=False)))
    )
    return made


def hello(board):
    board._handle_custom_msg({"kind": "hello"}, [])
    return board.sent[-1]


def test_the_page_is_one_module_that_asks_for_nothing():
    made = Board()
    assert made._esm.rstrip().endswith("export{__default as default};")
    assert "import(" not in made._esm
    assert "esm.sh" not in made._esm
    assert "unpkg.com" not in made._esm
    assert ".wb-board" in made._css


def test_a_push_carries_columns_and_the_state(board):
    board.show([CHART], {"t0": 0.0})
    board.push(
        Changes({"gaps": {"points": [row(1), row(2, 4.0)]}}, {"gaps": {"points": []}}, {"t0": 0.0, "t1": 9.0}), STATUS
    )
    said = board.sent[-1]
    assert said.pop("sent_ms") > 1.6e12  # the wall clock, in ms
    assert said == {
        "kind": "push",
        "epoch": 1,
        "seq": 1,
        "rows_sent": 2,
        "add": {"gaps": {"points": {"id": [1, 2], "t": [0.1, 0.2], "v": [1.0, 4.0]}}},
        "drop": {"gaps": {"points": []}},
        "signals": {"t0": 0.0, "t1": 9.0},
        "status": STATUS,
    }


def test_a_late_page_gets_what_is_shown(board):
    board.show([CHART], {"t0": 0.0})
    board.push(Changes({"gaps": {"points": [row(1), row(2)]}}, {}, {"t0": 0.0}), STATUS)
    board.push(Changes({"gaps": {"points": [row(3, 7.0)]}}, {"gaps": {"points": [1]}}, {"t0": 5.0}), STATUS)
    said = hello(board)
    assert said["kind"] == "reset"
    assert (said["epoch"], said["seq"], said["rows_sent"]) == (1, 2, 3)
    assert said["rows"] == {"gaps": {"points": {"id": [2, 3], "t": [0.2, 0.3], "v": [1.0, 7.0]}}}
    assert said["signals"] == {"t0": 5.0}
    assert said["status"] == STATUS
    assert said["charts"] == [
        {
            "id": "gaps",
            "title": "Gaps",
            "description": "Points.",
            "note": "",
            "timed": True,
            "light": {"mark": "point"},
            "dark": {"mark": "bar"},
        }
    ]
    assert set(board.rows["gaps"]["points"]) == {2, 3}


def test_new_charts_begin_without_rows(board):
    board.show([CHART], {})
    board.push(Changes({"gaps": {"points": [row(1)]}}), STATUS)
    board.show([CHART], {"t0": 1.0})
    said = board.sent[-1]
    assert (said["kind"], said["epoch"], said["seq"], said["rows"]) == ("reset", 2, 0, {})
    board.push(Changes({"gaps": {"points": [row(1)]}}), STATUS)
    assert (board.sent[-1]["epoch"], board.sent[-1]["seq"], board.sent[-1]["rows_sent"]) == (2, 1, 1)


def test_numbers_that_json_lacks_are_missing(board):
    board.show([CHART], {"top": float("inf")})
    assert board.sent[-1]["signals"] == {"top": None}
    board.push(Changes({"gaps": {"points": [row(1, float("nan")), {"id": 2, "more": True}]}}), STATUS)
    assert board.sent[-1]["add"]["gaps"]["points"] == {
        "id": [1, 2],
        "t": [0.1, None],
        "v": [None, None],
        "more": [None, True],
    }


def test_a_heartbeat_leaves_everything_as_it_is(board):
    board.show([CHART], {"t0": 1.0, "top": 5.0})
    board.push(Changes({"gaps": {"points": [row(1)]}}, {}, {"t0": 2.0}), STATUS)
    board.push(Changes(), STATUS)
    assert board.sent[-1]["signals"] == {"t0": 2.0, "top": 5.0}
    assert (board.sent[-1]["add"], board.sent[-1]["drop"], board.sent[-1]["seq"]) == ({}, {}, 2)
    assert set(hello(board)["rows"]["gaps"]["points"]["id"]) == {1}


def test_a_page_that_says_something_else_is_not_answered(board):
    for said in ({"kind": "other"}, "hello", None, []):
        board._handle_custom_msg(said, [])
    assert board.sent == []


def test_text_to_copy(board):
    board.copy("vllm serve x")
    assert board.sent == [{"kind": "copy", "text": "vllm serve x"}]


def test_snapshots_and_pushes_of_several_threads_stay_in_order(board):
    board.show([CHART], {})
    numbers = iter(range(10**6))
    taken = threading.Lock()

    def push():
        for _ in range(50):
            with taken:
                number = next(numbers)
            board.push(Changes({"gaps": {"points": [row(number)]}}), STATUS)
            hello(board)

    threads = [threading.Thread(target=push) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pushes = [said for said in board.sent if said["kind"] == "push"]
    assert [said["seq"] for said in pushes] == list(range(1, 201))
    at = 0
    for said in board.sent[1:]:  # a snapshot holds exactly what was pushed before it
        at = said["seq"] if said["kind"] == "push" else at
        if said["kind"] == "reset":
            assert said["seq"] == at
            assert len(said["rows"].get("gaps", {}).get("points", {"id": []})["id"]) == at


def test_the_window_has_a_length():
    with pytest.raises(TraitError):
        Board(window_s=0.0)


def test_stalls_are_told_when_they_change_and_to_a_late_page(board):
    board.show([CHART], {})
    stalls = {"text": "Stalls: prefill 1", "rows": [[1.0, "chat-0", 300.0, "prefill", "of doc-0"]]}
    board.push(Changes(), STATUS, stalls)
    assert board.sent[-1]["stalls"] == stalls
    board.push(Changes(), STATUS, dict(stalls))
    board.push(Changes(), STATUS)
    assert all("stalls" not in said for said in board.sent[-2:])
    assert hello(board)["stalls"] == stalls
    board.push(Changes(), STATUS, {})
    assert board.sent[-1]["stalls"] == {}
    board.show([CHART], {})
    assert board.sent[-1]["stalls"] == {}


def test_a_question_of_the_page_reaches_who_answers_it(board):
    asked = []
    board.on_ask(asked.append)
    board._handle_custom_msg({"kind": "explain", "t": 1.5, "stream": "chat-0"}, [])
    board._handle_custom_msg({"kind": "else"}, [])
    assert [(one["t"], one["stream"]) for one in asked] == [(1.5, "chat-0")]
    board.tell({"title": "Gap", "facts": [("gap", "300 ms")], "t0": 1.2, "t1": 1.5, "step": 3})
    assert board.sent[-1] == {
        "kind": "explained",
        "detail": {"title": "Gap", "facts": [["gap", "300 ms"]], "t0": 1.2, "t1": 1.5, "step": 3},
    }


def test_a_page_that_loads_gets_what_is_shown_with_the_model(board):
    assert board.get_state()["first"] == {}
    board.show([CHART], {"t0": 0.0})
    board.push(Changes({"gaps": {"points": [row(1), row(2)]}}), STATUS)
    first, said = board.get_state()["first"], hello(board)
    assert {key: value for key, value in first.items() if key != "sent_ms"} == {
        key: value for key, value in said.items() if key != "sent_ms"
    }
    assert first["rows"]["gaps"]["points"]["id"] == [1, 2]
