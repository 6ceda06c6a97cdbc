"""Who plays what: no Ray in here."""

from __future__ import annotations

from workbench.tune.ray.crew import Crew
from workbench.tune.ray.remote import Order
from workbench.tune.trial import Asked, Point


def order(number, **start_up):
    return Order(Asked(number, Point({"budget": 256}, start_up), 1))


def crew_of(workers, orders=(), **more):
    crew = Crew(**more)
    for _ in range(workers):
        crew.free(crew.hire())
    for one in orders:
        crew.ask(one)
    return crew


def given(crew):
    return {worker.name: one.asked.number for worker, one in crew.assign()}


def test_a_worker_that_is_starting_gets_nothing():
    crew = Crew()
    crew.ask(order(0))
    worker = crew.hire()
    assert given(crew) == {}
    assert crew.free(worker) is None
    assert given(crew) == {1: 0}


def test_each_worker_plays_one_trial_at_a_time():
    crew = crew_of(2, [order(n) for n in range(3)])
    assert given(crew) == {1: 0, 2: 1}
    assert given(crew) == {}
    assert crew.free(crew.workers[2]).asked.number == 1
    assert given(crew) == {2: 2}


def test_an_engine_is_kept_for_trials_that_it_can_serve():
    crew = crew_of(1, [order(0), order(1, block_size=32), order(2), order(3, block_size=32)])
    played = []
    while now := given(crew):
        played.append(now[1])
        crew.free(crew.workers[1])
    assert played == [0, 2, 1, 3]  # one restart, where the order of asking would take three


def test_a_lost_trial_goes_before_all_others_and_is_given_up_in_the_end():
    crew = crew_of(1, [order(0), order(1)], tries=2)
    assert given(crew) == {1: 0}
    lost, left = crew.lose(crew.workers[1])
    assert (lost.asked.number, left) == (0, 1)
    crew.free(crew.hire())
    assert given(crew) == {2: 0}
    assert crew.lose(crew.workers[2])[1] == 0
    assert crew.lost(0) == 2
    crew.free(crew.hire())
    assert given(crew) == {3: 1}
    crew.free(crew.workers[3])
    assert given(crew) == {}


def test_a_worker_that_is_lost_at_rest_costs_no_trial_a_try():
    crew = crew_of(2, [order(0)])
    assert given(crew) == {1: 0}
    assert crew.lose(crew.workers[2]) == (None, 0)
    assert crew.workers[1].order.asked.number == 0
    crew.free(crew.hire())
    assert given(crew) == {}
