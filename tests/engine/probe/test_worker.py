"""The worker's half of the probe, on a worker that is none: what rides back on a step's output, and when nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from workbench.engine.probe import wire, worker

MIB = 1 << 20


class Meter:
    def begin(self):
        return 10 * MIB

    def end(self):
        return 14 * MIB, 11 * MIB, 0


class Base:
    rank, device = 1, "cpu"
    model_runner = SimpleNamespace(kv_caches=[])

    def execute_model(self, scheduler_output):
        return SimpleNamespace()


class Worker(worker.ProbedWorker, Base):
    def _meter(self):
        return Meter()


@pytest.fixture
def step():
    return SimpleNamespace(**{wire.STEP_ATTRIBUTE: 3})


@pytest.fixture(autouse=True)
def forgets():
    worker.is_near.cache_clear()
    yield
    worker.is_near.cache_clear()


def test_a_worker_beside_its_scheduler_says_what_the_step_took(tmp_path, monkeypatch, step):
    monkeypatch.setenv(wire.ENV_FOLDER, str(tmp_path))
    output = Worker().execute_model(step)
    work = getattr(output, wire.WORK_ATTRIBUTE)
    assert (work.before_bytes, work.peak_bytes, work.after_bytes) == (10 * MIB, 14 * MIB, 11 * MIB)
    assert work.start_s <= work.end_s
    assert getattr(output, wire.HELLO_ATTRIBUTE).rank == 1


def test_a_worker_on_another_machine_says_nothing_since_its_clock_is_another(tmp_path, monkeypatch, step):
    monkeypatch.setenv(wire.ENV_FOLDER, str(tmp_path / "on the other machine"))
    assert vars(Worker().execute_model(step)) == {}


def test_without_the_workbench_the_worker_is_as_it_was(monkeypatch):
    monkeypatch.delenv(wire.ENV_FOLDER, raising=False)
    assert vars(Worker().execute_model(SimpleNamespace())) == {}
