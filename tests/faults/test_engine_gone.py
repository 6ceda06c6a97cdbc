"""The engine dies or stands still; it is a stand-in, and its guard, probe link, client and store are real."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from workbench.engine import hang
from workbench.errors import EngineDiedError, EngineStartError

ASKED = 4000  # more than any machine makes before a test has done its part


def begin(place, **how):
    """A run that has some output, on a workbench of its own."""
    bench = place.bench()
    bench.start()
    place.mark()
    run = bench.run(place.scenario(output=ASKED), **how)
    place.until(lambda: run.progress[0] > 200, "no tokens came")
    return bench, run


def works_again(place, bench, books):
    """Whether the next start and the next run are as if nothing had been."""
    bench.start()
    place.mark()
    run = bench.run(place.scenario(output=30))
    assert run.wait(place.patience)
    assert run.meta["status"] == "complete"
    assert len(books(run.trace, 30)) == 4 * 30
    assert run.summary["gap_count"] == 4 * 29
    bench.stop()
    assert place.nothing_left()


@pytest.mark.parametrize("how", ["stopped", "waits for ever"])
def test_an_engine_that_hangs_is_ended_and_told(place, stand_in, books, one_line, monkeypatch, how):
    stand_in(stall_at=0 if how == "stopped" else 80)
    # Seconds of patience that a person is to have, and a test is not.
    monkeypatch.setattr(hang, "STOPPED_S", 1.0)
    monkeypatch.setattr(hang, "IDLE_S", 3.0)
    bench, run = begin(place)
    if how == "stopped":
        os.kill(bench.engine.pid, signal.SIGSTOP)
    with pytest.raises(EngineDiedError) as caught:
        run.wait(place.patience)
    said = one_line(caught.value)
    assert said.startswith("the engine hangs: got no step and no token for ")
    assert ("is stopped (SIGSTOP)" if how == "stopped" else "wait and do not compute") in said
    assert said.endswith("what was measured is kept, start the engine again")
    assert place.engine_gone()
    assert bench.engine.state == "failed"
    assert (run.meta["status"], run.meta["reason"]) == ("failed", said)
    assert len(books(run.trace, ASKED, cut=True)) > 150
    assert set(run.trace.requests["status"]) <= {"cancelled", "error"}
    stand_in()
    works_again(place, bench, books)


def test_a_killed_engine_is_told_and_the_next_one_starts(place, stand_in, books, one_line):
    stand_in()
    bench, run = begin(place)
    os.kill(bench.engine.pid, signal.SIGKILL)  # as the kernel does where memory ends
    with pytest.raises(EngineDiedError) as caught:
        run.wait(place.patience)
    assert "was killed (SIGKILL): most likely the machine ran out of memory" in one_line(caught.value)
    assert place.engine_gone()
    assert len(books(run.trace, ASKED, cut=True)) > 150
    assert run.summary["tokens"] == run.trace.tokens["n"].sum()
    works_again(place, bench, books)


def test_memory_that_ends_at_the_start_is_told_and_nothing_is_left(place, stand_in, books, one_line):
    stand_in(memory_mib=256, allocate_mib=512)
    bench = place.bench()
    with pytest.raises(EngineStartError) as caught:
        bench.start()
    assert "out of host memory; lower kv_cache_mib, max_model_len or max_num_batched_tokens" in one_line(caught.value)
    assert any("MemoryError" in line for line in caught.value.log_tail)
    assert place.nothing_left()
    assert not list(place.runs.iterdir())
    stand_in()
    works_again(place, bench, books)


def test_memory_that_ends_in_mid_run_is_told_and_what_was_measured_is_kept(place, stand_in, books, one_line):
    stand_in(memory_mib=256, allocate_mib=512, allocate_at=80)
    bench, run = begin(place)
    with pytest.raises(EngineDiedError) as caught:
        run.wait(place.patience)
    said = one_line(caught.value)
    assert "died in mid-run: out of host memory; lower kv_cache_mib" in said
    assert place.engine_gone()
    # It died in its 80th step, which therefore told nobody anything.
    assert 70 < run.trace.steps["step"].max() < 80
    assert 150 < len(books(run.trace, ASKED, cut=True)) <= 4 * 79
    stand_in()
    works_again(place, bench, books)


@pytest.mark.parametrize("gone_s", [1.0, None], ids=["gone a second later", "there until it is ended"])
def test_an_engine_that_fails_its_requests_before_it_goes_is_told_as_dead(place, stand_in, books, one_line, gone_s):
    stand_in(fail_at=80, as_dead=True, gone_s=gone_s)
    bench, run = begin(place)
    with pytest.raises(EngineDiedError) as caught:
        run.wait(place.patience)
    said = one_line(caught.value)
    assert "the engine died in mid-run: out of host memory (3686400 bytes); lower kv_cache_mib" in said
    assert said.endswith("what was measured is kept, start the engine again")
    assert bench.engine.state == "failed"
    assert (run.meta["status"], run.meta["reason"]) == ("failed", said)
    assert set(run.trace.requests["error"]) == {"EngineCore encountered an issue."}
    assert run.trace.steps["step"].max() == 79
    assert 150 < books(run.trace, ASKED)["n"].sum() == run.trace.batch["emitted"].sum() <= 4 * 79
    assert place.engine_gone()
    stand_in()
    works_again(place, bench, books)


def test_requests_that_fail_on_an_engine_that_is_well_are_data(place, stand_in, books):
    stand_in(fail_at=80)
    bench, run = begin(place)
    assert run.wait(place.patience)
    assert (run.meta["status"], run.meta["reason"]) == ("complete", None)
    assert set(run.trace.requests["status"]) == {"error"}
    assert 150 < books(run.trace, ASKED)["n"].sum() == run.trace.batch["emitted"].sum() <= 4 * 79
    assert bench.engine.state == "ready"
    after = bench.run(place.scenario(output=30))
    assert after.wait(place.patience)
    assert set(after.trace.requests["status"]) == {"ok"}
    bench.stop()
    assert place.nothing_left()


def test_a_probe_socket_that_is_taken_away_costs_nothing(place, stand_in, books):
    """As a cleaner of temporary files does: who is connected stays connected, and the knob page stays mapped."""
    stand_in()
    bench, run = begin(place)
    folders = list(place.temporary.glob("wb-*"))
    assert any((folder / "records.sock").exists() for folder in folders)
    for folder in folders:
        shutil.rmtree(folder)
    revision = bench.knobs(budget=100)
    told = run.progress[0]
    place.until(lambda: run.progress[0] > told + 200, "no tokens came after that")
    bench.stop_load()
    assert run.meta["status"] == "cancelled"
    books(run.trace, ASKED)
    assert run.trace.steps["revision"].iloc[-1] == revision
    after = bench.run(place.scenario(output=30))
    assert after.wait(place.patience)
    assert len(books(after.trace, 30)) == 120
    assert after.trace.steps["revision"].eq(revision).all()
    assert after.meta["engine"]["probe_dropped"] == 0
    bench.stop()
    assert place.nothing_left()
    works_again(place, bench, books)


def test_ten_thousand_log_lines_a_second_hold_nothing_up(place, stand_in, books):
    stand_in(lines_per_s=10_000)
    bench, run = begin(place)
    place.until(lambda: run.elapsed_s > 3 and run.progress[0] > 1000, "the run does not get on")
    lines = bench.engine.log_tail()
    assert len(lines) == 12
    bench.stop_load()
    assert run.meta["status"] == "cancelled"
    books(run.trace, ASKED)
    log = bench.engine.log
    bench.stop()
    assert place.nothing_left()
    assert log.stat().st_size <= 4 << 20
    numbers = [int(line.split("line ")[1].split()[0]) for line in log.read_text().splitlines()[1:-1]]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), "a line is missing"
    assert numbers[-1] > 10_000, "the stand-in did not log as fast as this test wants it to"
    works_again(place, bench, books)
