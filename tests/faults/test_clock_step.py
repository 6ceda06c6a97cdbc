"""Somebody sets the wall clock in mid-run: no time of the trace moves, and the run keeps its name, date and length."""

from __future__ import annotations

import datetime as real
import json
import time

import pytest

from workbench.store import RunWriter, list_runs, new_run_folder, open_run, owner
from workbench.store import folder as folder_module
from workbench.store import writer as writer_module


@pytest.fixture
def wall(monkeypatch):
    """A wall clock that can be set: ``wall.step(seconds)``."""

    class Wall(real.datetime):
        off = real.timedelta()

        @classmethod
        def now(cls, tz=None):
            return real.datetime.now(tz) + cls.off

        @classmethod
        def step(cls, seconds):
            cls.off += real.timedelta(seconds=seconds)

    truth, truth_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: truth() + Wall.off.total_seconds())
    monkeypatch.setattr(time, "time_ns", lambda: truth_ns() + round(Wall.off.total_seconds() * 1e9))
    for module in (folder_module, writer_module):
        monkeypatch.setattr(module, "datetime", Wall)
    return Wall


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_run_is_measured_as_if_the_clock_had_not_been_set(place, stand_in, books, wall, seconds):
    stand_in()
    bench = place.bench()
    bench.start()
    place.mark()
    begun = time.monotonic()
    run = bench.run(place.scenario(output=400))
    place.until(lambda: run.progress[0] > 200, "no tokens came")
    wall.step(seconds)
    revision = bench.knobs(budget=100)
    assert run.wait(place.patience)
    lasted = time.monotonic() - begun
    books(run.trace, 400)
    trace, meta = run.trace, run.meta
    for table, column in (("tokens", "client_s"), ("steps", "end_s"), ("memory", "t_s"), ("requests", "done_s")):
        assert trace.tables[table][column].to_numpy().min() > -1.0
        assert trace.tables[table][column].to_numpy().max() < lasted
    assert trace.tables["knobs"].to_pylist()[-1]["revision"] == revision
    assert 0 <= trace.tables["knobs"].to_pylist()[-1]["applied_s"] < lasted
    assert 0 < meta["duration_s"] < lasted
    assert run.summary["duration_s"] < lasted
    # The dates say what the clock said then, also where the end is before the beginning.
    apart = real.datetime.fromisoformat(meta["ended"]) - real.datetime.fromisoformat(meta["created"])
    assert apart.total_seconds() == pytest.approx(seconds + meta["duration_s"], abs=1.0)
    again = bench.run(place.scenario(output=5))
    assert again.wait(place.patience)
    assert again.folder != run.folder
    assert set(list_runs(place.runs)["id"]) == {run.folder.name, again.folder.name}
    bench.stop()
    assert place.nothing_left()


def test_a_clock_that_is_set_back_gives_no_two_runs_one_folder(tmp_path, wall):
    made = set()
    for _ in range(20):
        made.add(new_run_folder(tmp_path, "same"))
        wall.step(-0.001)
    assert len(made) == 20


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_crashed_run_is_as_long_as_its_rows_say(tmp_path, wall, seconds):
    folder = tmp_path / "run"
    writer = RunWriter(folder, {"label": "live CPU"})
    writer.rows("tokens", [{"request": "a", "index": i, "n": 1, "client_s": 0.5 * i} for i in range(9)])
    writer.rows("memory", [{"t_s": 3.0, "source": "host", "bytes": 1}])
    writer.flush()
    writer._stop.set()
    writer._thread.join()
    meta = json.loads((folder / "run.json").read_text())
    created = real.datetime.fromisoformat(meta["created"]) + real.timedelta(seconds=seconds)
    meta |= {"created": created.isoformat(), "writer": {"pid": 1, "start": -1, "boot": "another"}}
    owner.release(folder, writer._lock)
    (folder / "run.json").write_text(json.dumps(meta))
    trace = open_run(folder)
    assert trace.meta["status"] == "interrupted"
    assert trace.meta["duration_s"] == 4.0
    assert trace.meta["created"] == created.isoformat()
    assert len(trace.tokens) == 9
