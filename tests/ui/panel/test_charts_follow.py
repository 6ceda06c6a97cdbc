"""The panel's charts follow the runs of an engine that is none (no vLLM, no browser in here)."""

import time

import pytest


def test_the_board_follows_a_run_that_a_cell_started(panel, bench, press, until):
    press(panel, "start")
    bench.run("bursty_chat")
    token = {"request": "chat-0", "n": 1}
    bench.engine.sink.rows("tokens", [token | {"index": i, "client_s": 0.1 + 0.3 * i} for i in range(3)])
    assert until(lambda: len(panel.board.rows.get("gaps", {}).get("gaps", {})) == 2)
    gaps = sorted(row["gap"] for row in panel.board.rows["gaps"]["gaps"].values())
    assert gaps == pytest.approx([300, 300])
    assert until(lambda: panel.board._status["kpis"][0]["value"] == "300 · 300 · 300")
    assert "playing bursty_chat" in panel.board._status["state"]


def test_an_ended_run_stays_on_the_charts_when_the_window_changes(panel, bench, press, until):
    press(panel, "start")
    bench.run("bursty_chat")
    tokens = [{"request": "chat-0", "n": 1, "index": i, "client_s": 0.1 + 0.3 * i} for i in range(3)]
    bench.engine.sink.rows("tokens", tokens)
    assert until(lambda: panel.board.rows.get("gaps", {}).get("gaps"))
    bench.stop_load(10)
    bench.current_run._playing.zero -= 100  # as if it had ended long ago
    panel.board.window_s = 60.0
    assert until(lambda: panel._feed._window_s == 60.0)
    assert until(lambda: len(panel.board.rows.get("gaps", {}).get("gaps", {})) == 2)


def test_the_last_figures_are_of_the_whole_run(panel, bench, press, until):
    press(panel, "start")
    bench.run("bursty_chat")
    sink, token = bench.engine.sink, {"request": "chat-0", "n": 1}
    sink.rows("tokens", [token | {"index": i, "client_s": 0.01 + 0.1 * i} for i in range(2)])
    assert until(lambda: panel.board._status["kpis"][0]["value"] == "100 · 100 · 100")
    sink.rows("tokens", [token | {"index": 2, "client_s": 7.11}])
    bench.stop_load(10)
    assert until(lambda: panel.board._status["kpis"][0]["value"].endswith("7,000"))


def test_paused_charts_stay_what_they_are(panel, bench, press, until):
    press(panel, "start")
    bench.run("bursty_chat")
    first = bench.current_run
    assert until(lambda: panel._feed._run is first)
    panel.buttons.pause.put(True)
    bench.stop_load(10)
    bench.run("bursty_chat")
    panel.board.window_s = 60.0
    time.sleep(0.4)
    assert panel._feed._run is first
    panel.buttons.pause.put(False)
    assert until(lambda: panel._feed._run is bench.current_run)


def test_rows_that_went_before_the_panel_looked_are_no_loss(panel, bench, press, until):
    press(panel, "start")
    bench.run("bursty_chat")
    bench.current_run.tail._most = 3
    for n in range(10):
        bench.engine.sink.rows("tokens", [{"request": "chat-0", "n": 1, "index": n, "client_s": 0.1 * n}])
    time.sleep(0.3)
    panel.board.window_s = 60.0
    assert until(lambda: panel._feed._window_s == 60.0)
    time.sleep(0.3)
    assert panel.board._status["dropped"] == 0


def test_the_charts_can_be_paused_and_their_window_set(panel):
    panel.buttons.pause.put(True)
    assert panel.board.paused
    panel.window.choose(60.0)
    assert panel.board.window_s == 60.0


def test_a_page_that_asks_gets_a_step_explained(panel, bench, monkeypatch, press, until):
    told = []
    monkeypatch.setattr(panel.board, "tell", told.append)
    press(panel, "start")
    bench.run("bursty_chat")
    step = {"step": 4, "scheduled_s": 0.1, "start_s": 0.1, "end_s": 0.4, "decode_tokens": 1, "prefill_tokens": 0,
            "running": 1, "waiting": 0, "kv_use": 0.1, "revision": 1, "preempted": []}  # fmt: skip
    bench.engine.sink.rows("steps", [step])
    assert until(lambda: panel.board.rows.get("steps", {}).get("bars"))
    panel.board._handle_custom_msg({"kind": "explain", "t": 0.2}, [])
    panel.board._handle_custom_msg({"kind": "explain", "t": "nonsense"}, [])
    assert until(lambda: told)
    assert told[0]["title"] == "Step 4 at 0.10 s"
    assert told[0]["facts"][0] == ("step 4", "300.0 ms; 1 decode tokens, 0 prefill tokens")
