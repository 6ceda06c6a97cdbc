"""A run's life on a fake engine (says so: no vLLM in here): what is recorded, and how each end looks."""

import time

import pytest

from workbench.config import SLO
from workbench.errors import EngineDiedError, EngineError, EnvelopeError
from workbench.run import Change, RecordedRun, Run
from workbench.workload.request import Request, Workload

WORKLOAD = Workload((Request("chat-0", "chat", 0, 0.0, (1, 2, 3), 3), Request("chat-1", "chat", 1, 9.0, (4, 5), 2)))


def record(engine, folder, **more):
    return Run(engine, WORKLOAD, folder, {"label": "live CPU", "scenario": "two", "slo": SLO().model_dump()}, **more)


def test_a_complete_run_holds_what_the_engine_gave_it(engine, tmp_path):
    run = record(engine, tmp_path / "run")
    token = {"request": "chat-0", "index": 0, "n": 3, "client_s": 0.5}
    engine.sink.rows("tokens", [token])
    engine.sink.rows("requests", [{"request": "chat-0", "status": "ok", "output_tokens": 3, "sent_s": 0.1}])
    assert run.progress == (3, 5)
    assert not run.done
    engine.playing.over.set()
    assert run.wait(10)
    assert run.meta["status"] == "complete"
    assert run.meta["engine"] == {"engine_pid": 1}
    rows = run.trace.requests.set_index("request")
    assert rows.loc["chat-0", ["class", "status", "prompt_tokens"]].tolist() == ["chat", "ok", 3]
    assert rows.loc["chat-1", ["planned_s", "max_tokens"]].tolist() == [9.0, 2]
    assert run.trace.tokens["client_s"].tolist() == [0.5]
    assert RecordedRun(tmp_path / "run").summary["tokens"] == 3


def test_a_dead_engine_ends_the_run_and_keeps_its_rows(engine, tmp_path):
    run = record(engine, tmp_path / "run")
    engine.sink.rows("tokens", [{"request": "chat-0", "index": 0, "n": 1, "client_s": 0.5}])
    engine.playing.error = EngineDiedError("the engine died in mid-run: out of memory")
    engine.playing.over.set()
    with pytest.raises(EngineDiedError, match="out of memory"):
        run.wait(10)
    assert run.meta["status"] == "failed"
    assert "out of memory" in run.meta["reason"]
    assert len(run.tokens) == 1


def test_what_is_known_at_the_end_goes_before_what_was_known_at_the_start(engine, tmp_path):
    said = [{"engine_pid": 1, "probe_dropped": 0}, {"engine_pid": None, "probe_dropped": 7}]
    engine.describe = lambda: said[-1]
    run = Run(engine, WORKLOAD, tmp_path / "run", {"label": "live CPU", "engine": said[0], "status": "mine", "id": "x"})
    engine.playing.over.set()
    assert run.wait(10)
    assert run.meta["engine"] == {"engine_pid": 1, "probe_dropped": 7}
    assert (run.meta["id"], run.meta["status"]) == ("run", "complete"), "the store's own facts are nobody else's"


def test_an_end_that_goes_wrong_is_told_and_the_run_is_closed(engine, tmp_path):
    engine.describe = lambda: 1 / 0
    run = record(engine, tmp_path / "run")
    engine.playing.over.set()
    with pytest.raises(EngineError, match="ZeroDivisionError"):
        run.wait(10)
    assert run.meta["status"] == "failed"


def test_a_look_at_a_run_does_not_freeze_it(engine, tmp_path):
    run = record(engine, tmp_path / "run")
    assert run.meta["status"] == "running"
    engine.sink.rows("tokens", [{"request": "chat-0", "index": 0, "n": 1, "client_s": 0.5}])
    engine.playing.over.set()
    assert run.wait(10)
    assert run.meta["status"] == "complete"
    assert len(run.tokens) == 1


def test_a_cancelled_run_says_so(engine, tmp_path):
    run = record(engine, tmp_path / "run")
    run.cancel()
    assert run.wait(10)
    assert run.meta["status"] == "cancelled"


def test_waiting_has_a_limit(engine, tmp_path):
    run = record(engine, tmp_path / "run")
    assert not run.wait(0.05)
    run.cancel()
    run.wait(10)


def test_a_refused_play_leaves_a_failed_run_and_raises(fake_engine, tmp_path):
    with pytest.raises(EngineError, match="not ready"):
        record(fake_engine(refuse=EngineError("not ready")), tmp_path / "run")
    assert RecordedRun(tmp_path / "run").meta["status"] == "failed"


def test_changes_are_made_in_time_and_their_errors_surface(engine, tmp_path):
    made = []

    def refuse():
        raise EnvelopeError("budget", 9, "at most 8", "lower it")

    run = record(engine, tmp_path / "run", changes=[Change(0.0, lambda: made.append(1)), Change(0.05, refuse)])
    time.sleep(0.3)
    engine.playing.over.set()
    with pytest.raises(EnvelopeError, match="at most 8"):
        run.wait(10)
    assert made == [1]
    assert engine.playing.released, "a change that fails must not hold the run for ever"


def test_requests_that_come_after_a_change_are_held_until_it_is_made(engine, tmp_path):
    seen = []
    run = record(engine, tmp_path / "run", changes=[Change(0.05, lambda: seen.append(engine.playing.released))])
    assert engine.hold_s == 0.05
    time.sleep(0.3)
    assert seen == [False]
    assert engine.playing.released
    engine.playing.over.set()
    run.wait(10)


def test_a_change_that_was_not_due_yet_is_not_made(engine, tmp_path):
    made = []
    run = record(engine, tmp_path / "run", changes=[Change(60.0, lambda: made.append(1))])
    engine.playing.over.set()
    run.wait(10)
    assert made == []


def test_a_request_that_is_added_is_in_the_record(engine, tmp_path):
    run = record(engine, tmp_path / "run")
    run.add(Request("dropped-0", "long", 0, 0.0, (1,) * 50, 4))
    assert [request.request for request in engine.playing.added] == ["dropped-0"]
    assert run.progress == (0, 5 + 4)
    engine.playing.over.set()
    run.wait(10)
    assert run.trace.requests.set_index("request").loc["dropped-0", "prompt_tokens"] == 50


def test_a_run_says_what_it_is_and_its_figures_read_as_numbers(engine, tmp_path):
    run = record(engine, tmp_path / "run")
    steps = [{"step": n, "end_s": 0.1 * n, "activation_bytes": n << 20} for n in (1, 48)]
    engine.sink.rows("steps", steps)
    engine.playing.over.set()
    run.wait(10)
    assert repr(run) == "<run run: two, live CPU, complete>"
    assert run.kpis.loc["peak_activation_mib", "value"] == 48
    assert "e+" not in str(run.kpis)
