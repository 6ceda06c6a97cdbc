"""When a search ends, what it spends, and that it can be stopped."""

import threading

import pytest
from search_stand_ins import GOAL, Landscape, a_space

from workbench.errors import EngineDiedError, InputError
from workbench.tune.search.best import best_of
from workbench.tune.search.study import Study
from workbench.tune.search.tuning import Allowance, Tuning
from workbench.tune.trial import Point, Result


@pytest.fixture
def study(tmp_path):
    return Study.create("search", GOAL, a_space(), root=tmp_path)


def test_engine_seconds_are_not_exceeded(study):
    tuning = Tuning(study, Landscape(), Allowance(trials=40, engine_s=45, patience=40))
    tuning.run()
    assert study.engine_s == 40  # a trial takes 10
    assert "engine-seconds are spent" in tuning.why


def test_trials_and_patience(study):
    tuning = Tuning(study, Landscape(), Allowance(trials=3))
    tuning.run()
    assert len(study.results) == 3
    assert tuning.why == "3 trials were played"
    more = Tuning(study, Landscape(), Allowance(trials=20, patience=2))
    more.run()
    assert "no progress in 2 trials" in more.why


def test_a_search_ends_when_all_requests_are_in_time(study):
    class Idle(Landscape):
        def figures(self, point):
            return super().figures(point) | {"goodput_per_s": 2.0, "requests_per_s": 2.0, "gap_p99_ms": 10.0}

    tuning = Tuning(study, Idle(), Allowance(trials=20), open_loop=True)
    tuning.run()
    assert len(study.results) == 1
    assert tuning.why == "100% of the requests are served in time, no setting can do more"


def test_a_stop_cuts_the_trial_off_and_it_is_asked_again(study):
    class Slow(Landscape):
        def play(self, asked, watch=None):
            if asked.number < 2:
                return super().play(asked, watch)
            threading.Timer(0.05, tuning.stop).start()
            while (stop := watch.look([])) is None:
                pass
            return Result(asked.number, asked.point, asked.seed, "interrupted", error=stop.why)

    tuning = Tuning(study, Slow(), Allowance(trials=9))
    tuning.run()
    assert [one.state for one in study.results] == ["complete", "complete", "interrupted"]
    cut_off = study.results[-1].point
    assert tuning.why == "stopped"
    assert study.ask().point == cut_off


def test_an_error_of_the_player_leaves_the_trial_interrupted(study):
    class Dies(Landscape):
        def play(self, asked, watch=None):
            raise EngineDiedError("engine: gone")

    with pytest.raises(EngineDiedError):
        Tuning(study, Dies()).run()
    assert [one.state for one in study.results] == ["interrupted"]


def test_several_workers_play_at_a_time(study):
    class Crew(Landscape):
        workers = 3

        def __init__(self):
            super().__init__()
            self.open, self.most = [], 0

        def submit(self, asked, *, beat=None):
            self.open.append(asked)
            self.most = max(self.most, len(self.open))

        def results(self, timeout_s=None):
            return [self.play(self.open.pop())]

    crew = Crew()
    Tuning(study, crew, Allowance(trials=10, patience=100)).run()
    assert crew.most == 3
    assert len(study.results) == 10
    assert len({one.point.key for one in study.results}) == 10


def test_goodputs_within_a_hundredth_are_as_good_and_room_decides():
    def one(number, goodput, slack, over=-0.5):
        return Result(number, Point({"budget": 2**number}), 0, "complete", {"slack": slack}, (goodput,), {"gap": over})

    assert best_of([one(5, 2.0, 0.1), one(6, 1.99, 0.4), one(7, 1.9, 0.9)], GOAL).number == 6
    assert best_of([one(5, 2.0, 0.1), one(6, 2.5, 0.4, over=0.01)], GOAL).number == 5
    assert best_of([one(5, 2.0, 0.1, over=0.01)], GOAL) is None


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"engine_s": -1}, {"minutes": float("inf")}, {"patience": True}])
def test_an_allowance_of_nothing_is_refused(wrong):
    with pytest.raises(InputError, match="above 0"):
        Allowance(**wrong)


def test_that_nothing_is_within_the_limits_takes_three_times_the_patience(study):
    tuning = Tuning(study, Landscape(limit=1.0), Allowance(trials=20, patience=3))
    tuning.run()
    assert (len(study.results), tuning.why) == (9, "no progress in 9 trials")
