"""How long a step held the engine, as policies learn it."""

from types import SimpleNamespace

import pytest

from workbench.engine.probe import wire
from workbench.engine.probe.books import Books, Done, Planned


class Records:
    dropped = 0

    def send(self, record):
        pass

    def fault(self, where, error):
        raise error


@pytest.fixture
def books():
    scheduler = SimpleNamespace(
        requests={}, num_spec_tokens=0, get_request_counts=lambda: (1, 0), kv_cache_manager=SimpleNamespace(usage=0.0)
    )
    learned = []
    books = Books(scheduler, Records(), lambda step, seconds: learned.append(seconds))

    def step(number, planned_s, ended_s, idle=False):
        output = SimpleNamespace(num_scheduled_tokens={})
        setattr(output, wire.STEP_ATTRIBUTE, number)
        books.plan(Planned(output, number, planned_s, 0.0, 0.0, 0, None))
        books.note_planned()
        books.finish(Done(output, SimpleNamespace(), {}, ended_s, idle))
        books.catch_up()

    step.learned = learned
    return step


def test_what_the_engine_does_between_two_steps_belongs_to_the_second(books):
    books(1, 10.0, 10.3)
    books(2, 10.35, 10.6)  # sampling, detokenising and the like took 50 ms
    assert books.learned == pytest.approx([0.3, 0.3])


def test_a_step_after_a_pause_counts_from_when_it_was_planned(books):
    books(1, 10.0, 10.3, idle=True)
    books(2, 17.0, 17.2)
    assert books.learned == pytest.approx([0.3, 0.2])


def test_with_two_steps_in_flight_the_second_begins_where_the_first_ends(books):
    books(1, 10.0, 10.3)
    books(2, 10.1, 10.5)
    assert books.learned == pytest.approx([0.3, 0.2])
