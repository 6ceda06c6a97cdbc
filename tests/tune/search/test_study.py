"""A study outlives its process; its errors are one line."""

import itertools
import multiprocessing
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from search_stand_ins import GOAL, Landscape, a_space

from workbench.errors import InputError, StoreError
from workbench.tune.goal import Goal
from workbench.tune.search import storage
from workbench.tune.search.resuming import resume_command
from workbench.tune.search.study import Study
from workbench.tune.search.tuning import Allowance, Tuning
from workbench.tune.trial import Point, Result


def again(_facts):
    return a_space()


def played(study, trials):
    Tuning(study, Landscape(), Allowance(trials=trials, patience=100)).run()
    return study


def test_a_study_is_on_disk_as_it_was_told(tmp_path):
    study = played(Study.create("one", GOAL, a_space(), root=tmp_path, seed=3), 6)
    assert (tmp_path / storage.FILE).is_file()
    study.note("confirmation", {"winner": "budget 256"})
    study.close()
    found = Study.resume("one", again, root=tmp_path)
    assert found.results == study.results
    assert [one.number for one in found.results] == [0, 1, 2, 3, 4, 5]
    assert {one.seed for one in found.results} == {3}
    assert found.goal == GOAL
    assert found.noted("confirmation") == {"winner": "budget 256"}
    assert found.noted("nothing") is None


def test_no_point_is_played_twice_and_the_space_is_exhausted(tmp_path):
    study = Study.create("all", GOAL, a_space(), root=tmp_path)
    tuning = Tuning(study, Landscape(), Allowance(trials=1000, patience=1000))
    tuning.run()
    keys = [one.point.key for one in study.results]
    assert len(keys) == len(set(keys)) == len(list(a_space().points()))
    assert tuning.why == "every setting was played"
    assert study.best.point.hot["budget"] == 256
    assert study.best.point.hot["chunk"] == 0


KILLED = """
import sys, os, signal
sys.path.insert(0, sys.argv[2])
from search_stand_ins import GOAL, Landscape, a_space
from pathlib import Path
from workbench.tune.search.resuming import resume_command
from workbench.tune.search.study import Study
from workbench.tune.search.tuning import Allowance, Tuning
class Dies(Landscape):
    def play(self, asked, watch=None):
        if asked.number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().play(asked, watch)
Tuning(Study.create("killed", GOAL, a_space(), root=Path(sys.argv[1])), Dies(), Allowance(trials=9)).run()
"""


def test_a_killed_study_goes_on_and_plays_again_what_was_cut_off(tmp_path):
    here = str(Path(__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), here], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    study = Study.resume("killed", again, root=tmp_path)
    assert [one.state for one in study.results] == ["complete"] * 3 + ["interrupted"]
    cut_off = study.results[3].point
    player = Landscape()
    Tuning(study, player, Allowance(trials=6, patience=100)).run()
    assert player.asked[0].point == cut_off
    assert player.asked[0].number == 4
    assert sum(one.state == "complete" for one in study.results) == 6


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"goal": Goal(("goodput",), {"gap_p99_ms": 100.0}).as_dict()}, "gap_p99_ms 100.0 in place of 200.0"),
        ({"space": a_space(given={"budget": (64, 128)}).as_dict()}, "budget"),
    ],
)
def test_another_goal_or_space_is_refused(tmp_path, asked, what):
    played(Study.create("mine", GOAL, a_space(), root=tmp_path), 2).close()
    with pytest.raises(InputError) as error:
        Study.resume("mine", again, root=tmp_path, **asked)
    assert what in str(error.value)
    assert "begin a new study" in str(error.value)


def test_unknown_and_taken_names_are_named(tmp_path):
    Study.create("mine", GOAL, a_space(), root=tmp_path).close()
    with pytest.raises(InputError, match=r"'other', expected a study of sqlite.*mine"):
        Study.resume("other", again, root=tmp_path)
    with pytest.raises(InputError, match="--resume mine"):
        Study.create("mine", GOAL, a_space(), root=tmp_path)


def _hold(root, up, stay):
    study = Study.create("held", GOAL, a_space(), root=root)
    up.set()
    stay.wait(60)
    study.close()


def test_a_study_that_another_process_runs_is_left_alone(tmp_path):
    spawn = multiprocessing.get_context("fork")
    up, stay = spawn.Event(), spawn.Event()
    other = spawn.Process(target=_hold, args=(tmp_path, up, stay))
    other.start()
    try:
        assert up.wait(60)
        with pytest.raises(InputError, match=f"nobody runs .pid {other.pid} does"):
            Study.resume("held", again, root=tmp_path)
    finally:
        stay.set()
        other.join(60)
    assert Study.resume("held", again, root=tmp_path).name == "held"


def test_a_locked_storage_is_one_line(tmp_path, monkeypatch):
    Study.create("mine", GOAL, a_space(), root=tmp_path).close()
    monkeypatch.setattr(storage, "_WAIT_S", 0.05)
    lock = sqlite3.connect(tmp_path / storage.FILE)
    lock.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(StoreError, match="locked by another process") as error:
            Study.create("second", GOAL, a_space(), root=tmp_path)
    finally:
        lock.rollback()
        lock.close()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "error", "says"),
    [
        ("studies.sqlite3", InputError, "a storage URL such as"),
        ("nonsense://somewhere/x", InputError, "storage URL"),
        ("sqlite:////nowhere/that/is/there.sqlite3", StoreError, "unable to open database file"),
        ("sqlite://", InputError, "outlives this process"),
        ("sqlite:///:memory:", InputError, "outlives this process"),
    ],
)
def test_a_storage_that_cannot_be_is_one_line(url, error, says):
    with pytest.raises(error, match=says) as caught:
        storage.open_storage(url)
    assert "\n" not in str(caught.value)


def test_a_slip_in_the_place_of_a_study_makes_no_file(tmp_path):
    for where in ({"root": tmp_path / "no"}, {"storage": f"sqlite:///{tmp_path / 'no.sqlite3'}"}):
        with pytest.raises(InputError, match="which is not there"):
            Study.resume("mine", again, **where)
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_not_shown():
    assert "secret" not in storage.shown("postgresql://me:secret@host/studies")


def test_what_failed_is_kept_and_not_asked_again(tmp_path):
    study = Study.create("fails", GOAL, a_space(), root=tmp_path)
    bad = next(a_space().points()).name
    Tuning(study, Landscape(fails=[bad]), Allowance(trials=1000, patience=1000)).run()
    failed = [one for one in study.results if one.state == "failed"]
    assert [one.point.name for one in failed] == [bad]
    assert failed[0].error == "engine: died"
    assert len(study.results) == len(list(a_space().points()))


def test_more_than_one_objective_is_a_front(tmp_path):
    goal = Goal(("goodput", "gap_p99"), {"gap_p99_ms": 200.0})

    class Both(Landscape):
        def play(self, asked, watch=None):
            one = super().play(asked, watch)
            both = (*one.objectives, one.figures["gap_p99_ms"])
            return Result(one.number, one.point, one.seed, one.state, one.figures, both, one.excess, 10.0, one.label)

    study = Study.create("front", goal, a_space(goal=goal), root=tmp_path)
    Tuning(study, Both(), Allowance(trials=15, patience=100)).run()
    assert len(study.results) == 15
    assert study.best is not None


def test_start_up_fields_come_last_and_share_engine_starts(tmp_path):
    space = a_space(restart={"max_num_seqs": (8, 16, 32)})
    study = Study.create("restarts", GOAL, space, root=tmp_path)
    Tuning(study, Landscape(), Allowance(trials=16, patience=100)).run()
    fields = [tuple(one.point.start_up.items()) for one in study.results]
    changes = sum(one != other for one, other in itertools.pairwise(fields))
    assert fields[:8] == [()] * 8
    assert changes == 2
    assert fields.count((("max_num_seqs", 8),)) == fields.count((("max_num_seqs", 32),)) == 4
    hot_best = max(study.results[:8], key=lambda one: (one.feasible, one.objectives[0]))
    assert study.results[8].point.hot["budget"] == hot_best.point.hot["budget"]
    assert {one.point.hot["max_running"] for one in study.results[8:]} == {8, 32}


def test_points_are_suggested_first(tmp_path):
    study = Study.create("suggested", GOAL, a_space(), root=tmp_path)
    point = Point({"policy": "chunked", "budget": 512, "chunk": 128, "max_running": 16})
    asked = study.ask({}, point)
    assert asked.point == point
    assert asked.number == 0


def test_a_trial_that_was_asked_for_and_never_begun_does_not_keep_a_study_from_going_on(tmp_path):
    """A kill may come between the two; Optuna tells nothing of a trial that waits."""
    study = played(Study.create("mine", GOAL, a_space(), root=tmp_path), 2)
    study._study.enqueue_trial({"budget": 0})
    study.close()
    found = Study.resume("mine", again, root=tmp_path)
    assert [one.state for one in found.results] == ["complete", "complete"]
    assert len(played(found, 4).results) == 4


GOALS = {"objectives": 5, "limits": {}, "slo": {}}


@pytest.mark.parametrize(
    "odd", [5, "x", [], {}, {"version": "v"}, {"version": True, "goal": 5}, {"goal": GOALS}], ids=str
)
def test_a_study_that_something_else_wrote_into_is_refused_in_one_line(tmp_path, odd):
    import optuna

    study = played(Study.create("one", GOAL, a_space(), root=tmp_path), 1)
    study.close()
    kept = optuna.load_study(study_name="one", storage=storage.open_storage(None, tmp_path))
    facts = kept.user_attrs["workbench"]
    kept.set_user_attr("workbench", facts | odd if isinstance(odd, dict) and odd else odd)
    with pytest.raises(InputError, match="--resume") as refused:
        Study.resume("one", again, root=tmp_path)
    assert "\n" not in str(refused.value)


def test_a_result_of_another_shape_is_refused_in_one_line(tmp_path):
    study = played(Study.create("one", GOAL, a_space(), root=tmp_path), 1)
    study.close()
    with sqlite3.connect(tmp_path / storage.FILE) as base:
        changed = base.execute("UPDATE trial_user_attributes SET value_json = '[1]' WHERE key = 'result'").rowcount
    assert changed == 1
    with pytest.raises(InputError, match="what the workbench keeps with a study"):
        Study.resume("one", again, root=tmp_path)


def test_the_command_that_goes_on_is_one_for_a_shell_and_shows_no_password():
    asked = resume_command("my own", "postgresql://me:secret@host/db", Path("a b"))
    assert asked == "workbench tune --resume 'my own' --storage 'postgresql://me:***@host/db' --runs 'a b'"
    assert resume_command("night") == "workbench tune --resume night"
