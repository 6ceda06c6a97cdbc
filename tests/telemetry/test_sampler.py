"""The sampler: its clock work with a made-up clock, its thread with a real one."""

import itertools
import os
import threading
import time

import pytest

from workbench.errors import InputError, WorkbenchError
from workbench.telemetry import Every, Reading, Sampler, host_sources
from workbench.trace import table_of


class Rows(list):
    """A sink that keeps all rows."""

    batches = 0

    def rows(self, table, rows):
        assert table == "memory"
        self.batches += 1
        self.extend(rows)

    def of(self, name):
        return [row for row in list(self) if row["source"] == name]


class Fixed:
    """A source that answers what it is told, and can take its time."""

    def __init__(self, name="x", answer=None, act=None):
        self.name, self.answer, self.act = name, answer or Reading(7), act

    def read(self):
        if self.act is not None:
            self.act()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Clock:
    """Time that passes only when someone waits or works; also the event the thread waits on."""

    def __init__(self, until, late=0.0):
        self.now, self.until, self.late = 100.0, 100.0 + until, late

    def __call__(self):
        return self.now

    def work(self, seconds):
        self.now += seconds

    def wait(self, seconds):
        self.now += seconds + self.late
        return self.is_set()

    def is_set(self):
        return self.now > self.until


def played(clock, *sources, **options):
    """Run the sampler's loop in this thread, on a made-up clock."""
    rows = Rows()
    sampler = Sampler(sources, rows, zero=100.0, clock=clock, **options)
    sampler._run(clock)
    return sampler, rows


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.002)


def test_no_drift():
    clock = Clock(until=10.005, late=0.0007)
    sampler, rows = played(clock, Fixed(act=lambda: clock.work(0.002)))
    assert (sampler.stats.ticks, sampler.stats.missed) == (1001, 0)
    assert max(abs(row["t_s"] - k / 100 - 0.0007) for k, row in enumerate(rows) if k) < 1e-9
    assert sampler.stats.busy_s == pytest.approx(1001 * 0.002)


def test_late_ticks_are_skipped_and_counted_and_never_caught_up():
    clock = Clock(until=1.005)
    calls = []

    def act():
        calls.append(clock.now)
        if len(calls) == 11:
            clock.work(0.255)  # this one began at 0.10 and blocks the ticks 11 to 35

    sampler, rows = played(clock, Fixed(act=act))
    gaps = [b["t_s"] - a["t_s"] for a, b in itertools.pairwise(rows)]
    assert sampler.stats.missed == 25
    assert min(gaps) > 0.0099
    assert [row["t_s"] for row in rows][11] == pytest.approx(0.36)
    assert sampler.stats.ticks + sampler.stats.missed == 101


def test_a_tick_longer_than_its_period_halves_the_rate():
    clock = Clock(until=1.005)
    sampler, rows = played(clock, Fixed(act=lambda: clock.work(0.015)))
    assert [row["t_s"] for row in rows][:4] == pytest.approx([0.0, 0.02, 0.04, 0.06])
    assert sampler.stats.missed == sampler.stats.ticks


def test_rows_come_in_batches():
    clock = Clock(until=1.005)
    sampler, rows = played(clock, Fixed())
    assert rows.batches <= 11
    assert len(rows) == sampler.stats.rows == 101


def test_a_slow_source_is_read_less_often_and_never_repeated():
    clock = Clock(until=3.5)
    _, rows = played(clock, Every(Fixed("slow"), 1.0), Fixed("quick"))
    assert [row["t_s"] for row in rows.of("slow")] == pytest.approx([0.0, 1.0, 2.0, 3.0])
    assert len(rows.of("quick")) > 300


def test_a_slow_source_keeps_its_pace_when_its_tick_is_missed():
    clock = Clock(until=3.5)
    times = []

    def act():
        times.append(clock.now)
        if len(times) == 96:
            clock.work(0.1)  # over the tick at 1.0

    _, rows = played(clock, Fixed("quick", act=act), Every(Fixed("slow"), 1.0))
    assert [round(row["t_s"], 2) for row in rows.of("slow")] == [0.0, 1.05, 2.0, 3.0]


def test_na_is_written_when_it_begins_when_it_changes_and_once_a_second():
    clock = Clock(until=4.005)
    source = Fixed()

    def act():
        at = clock.now - 100.0
        if 0.495 <= at < 2.995:
            source.answer = Reading.missing("lost" if at < 2.795 else "gone")
        else:
            source.answer = Reading(7)

    source.act = act
    _, rows = played(clock, source)
    missing = [(round(r["t_s"], 2), r["note"]) for r in rows if r["bytes"] is None]
    assert missing == [(0.5, "n/a (lost)"), (1.5, "n/a (lost)"), (2.5, "n/a (lost)"), (2.8, "n/a (gone)")]
    assert len(rows) == 401 - 250 + 4
    assert all(r["note"] is None for r in rows if r["bytes"] is not None)


def test_a_source_that_raises_is_na_and_the_others_go_on():
    sampler, rows = played(Clock(until=0.505), Fixed("bad", OSError(5, "disk\non fire")), Fixed("good"))
    (row,) = rows.of("bad")
    assert row["bytes"] is None
    assert row["note"] == "n/a (OSError: [Errno 5] disk on fire)"
    assert len(rows.of("good")) == 51
    (error,) = sampler.errors
    assert (error.where, error.count, error.first_s) == ("bad", 51, 0.0)


def test_different_errors_without_end_are_bounded():
    source = Fixed()
    number = iter(range(10**6))

    def act():
        raise ValueError(next(number))

    source.act = act
    sampler, _ = played(Clock(until=5.0), source)
    assert len(sampler.errors) == 50


def test_a_sink_that_fails_loses_rows_and_says_so():
    class Full:
        def rows(self, table, rows):
            raise OSError(28, "No space left on device")

    clock = Clock(until=1.005)
    sampler = Sampler([Fixed()], Full(), zero=100.0, clock=clock)
    sampler._run(clock)
    assert sampler.stats.rows == 0
    assert sampler.stats.lost_rows == sampler.stats.ticks == 101
    assert sampler.errors[0].where == "sink"


def test_the_thread_never_dies_in_silence():
    class Ended(BaseException):
        pass

    def act():
        raise Ended("really")

    rows = Rows()
    with Sampler([Fixed("good"), Fixed("fatal", act=act)], rows, zero=time.monotonic()) as sampler:
        until(lambda: not sampler.running)
    assert [(e.where, e.text) for e in sampler.errors] == [("thread", "Ended: really")]
    assert len(rows) == 1  # what it had was handed over


def test_rows_fit_the_table():
    rows = Rows()
    sources = [*host_sources([os.getpid()]), Fixed("none", Reading.missing("no GPU"))]
    zero = time.monotonic()
    with Sampler(sources, rows, zero=zero) as sampler:
        until(lambda: len(rows) > 50)
    table = table_of("memory", rows).to_pydict()
    assert set(table["source"]) == {s.name for s in sources}
    assert all(0 <= t <= time.monotonic() - zero for t in table["t_s"])
    assert all((b is None) == (n is not None) for b, n in zip(table["bytes"], table["note"], strict=True))
    assert sampler.errors == ()


def test_start_and_stop_as_often_as_one_likes():
    rows = Rows()
    sampler = Sampler([Fixed(), Every(Fixed("slow"), 3600.0)], rows, zero=time.monotonic())
    assert sampler.stop()
    before = set(threading.enumerate())
    for _ in range(3):
        sampler.start()
        sampler.start()
        assert sampler.running
        assert len(set(threading.enumerate()) - before) == 1
        n = len(rows)
        until(lambda n=n: len(rows) > n)
        assert sampler.stop()
        assert sampler.stop()
        assert not sampler.running
    assert not set(threading.enumerate()) - before
    assert sampler.stats.rows == len(rows)
    assert len(rows.of("slow")) == 3


def test_start_and_stop_from_many_threads():
    before = set(threading.enumerate())  # other tests of this process may have left samplers of their own
    sampler = Sampler([Fixed()], Rows(), zero=time.monotonic())
    failed = []

    def flip():
        for _ in range(50):
            try:
                sampler.start()
                sampler.stop()
            except WorkbenchError:
                pass  # a thread that was stopped by another has not ended yet
            except BaseException as error:  # noqa: BLE001
                failed.append(error)

    threads = [threading.Thread(target=flip) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sampler.stop()
    assert not failed
    until(lambda: not set(threading.enumerate()) - before)  # one that another thread stopped ends in its own time


def test_a_source_that_hangs_is_named():
    free = threading.Event()
    sampler = Sampler([Fixed("stuck", act=free.wait)], Rows(), zero=time.monotonic())
    sampler.start()
    until(lambda: sampler._in == "stuck")
    assert not sampler.stop(timeout=0.05)
    assert "'stuck' hangs" in sampler.errors[0].text
    with pytest.raises(WorkbenchError, match="still reads 'stuck'"):
        sampler.start()
    free.set()
    until(lambda: not sampler.running)
    sampler.start()
    assert sampler.stop()


def test_the_sink_may_stop_the_sampler():
    class Stops:
        def rows(self, table, rows):
            sampler.stop()

    sampler = Sampler([Fixed()], Stops(), zero=time.monotonic(), flush_s=0.01)
    sampler.start()
    until(lambda: not sampler.running)
    assert sampler.errors == ()


@pytest.mark.parametrize("hz", [0, -1, 100.1, float("nan")])
def test_rates_out_of_range(hz):
    with pytest.raises(InputError, match="hz: got"):
        Sampler([], Rows(), zero=0.0, hz=hz)


def test_names_must_differ():
    with pytest.raises(InputError, match="different names"):
        Sampler([Fixed("a"), Fixed("a")], Rows(), zero=0.0)
