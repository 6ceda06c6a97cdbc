"""A question from its first trial to its answer, on a player whose figures are known; and what cannot be asked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from made_results import result

from workbench.attached_config import AttachedConfig
from workbench.errors import InputError
from workbench.tune.answer.confirm import Confirmation
from workbench.tune.kept import Kept
from workbench.tune.question import Question
from workbench.tune.search.study import Study
from workbench.tune.search.tuning import Allowance
from workbench.tune.space import Space
from workbench.tune.tune import Tune

KNOBS = {"policy": ["chunked"], "budget": [128, 256, 512, 1024], "chunk": [0], "max_running": [32]}


class Player:
    """On the search's seed 512 is best within 200 ms; on fresh seeds it stutters and 256 wins. MADE UP."""

    killed_at = None  # a play, counted over all sessions

    def __init__(self, scenario, goal, space, **_):
        self.bench = SimpleNamespace(engine=SimpleNamespace(model=None))
        self.search, self.closed, self.plays = scenario.seed, [], 0
        Player.last = self

    def play(self, asked, watch=None):
        self.plays += 1
        if self.plays == Player.killed_at:
            raise KeyboardInterrupt
        budget = asked.point.hot["budget"]
        gap = budget / 2.7 if asked.seed == self.search else budget / 2.4
        return result(asked.number, dict(asked.point.hot), budget / 256, gap=gap, seed=asked.seed)

    def close(self):
        self.closed.append(True)


@pytest.fixture(autouse=True)
def _made_up(monkeypatch):
    monkeypatch.setattr("workbench.tune.tune.EnginePlayer", Player)
    monkeypatch.setattr(Player, "killed_at", None)
    monkeypatch.setattr("workbench.tune.foretelling.simulated_config", lambda config: None)


def ask(**more):
    return Question.of("chats_and_documents", limits={"gap_p99_ms": 200}, knobs=KNOBS, **more)


def test_what_wins_on_fresh_seeds_is_the_answer_and_both_are_kept_with_the_study(tmp_path):
    stages = []
    tune = Tune(ask(rounds=2), runs=tmp_path, name="one", tell=lambda now: stages.append(now.stage))
    answer = tune.run()
    assert answer.ranking[0].point.hot["budget"] == 512
    assert (answer.best.point.hot["budget"], answer.runner_up.point.hot["budget"]) == (256, 128)
    assert "--max-num-batched-tokens 256" in tune.emitted.command
    assert list(dict.fromkeys(stages)) == ["search", "confirmation", "over"]
    assert len(Player.last.closed) == 1
    study = Study.resume("one", lambda facts: Space.of_dict(facts["space"]), root=tmp_path)
    assert len(study.results) == 4
    assert Confirmation.of_dict(study.noted("confirmation"), study.goal) == tune.confirmation
    study.close()


def resumed(root, **more):
    study = Study.resume("one", lambda facts: Space.of_dict(facts["space"]), root=root)
    tune = Tune(Question.of_facts(study.facts, Kept(study).means, **more), runs=root, study=study)
    tune.run()
    return tune, Player.last.plays


def test_a_study_that_has_its_answer_shows_it_again_and_plays_nothing(tmp_path):
    first = Tune(ask(rounds=2, allowance=Allowance(trials=3)), runs=tmp_path, name="one")
    answer, played = first.run(), Player.last.plays
    assert played > 3
    again, plays = resumed(tmp_path)
    assert plays == 0
    assert (again.answer.words, again.why, again.question.rounds) == (answer.words, first.why, 2)
    further, plays = resumed(tmp_path, allowed={"trials": 4})
    assert plays >= 1
    assert len(further.results) == 4


def test_one_whose_minutes_were_over_has_its_answer_too(tmp_path, monkeypatch):
    clock = property(lambda tuning: len(tuning.study.results) >= 2)
    monkeypatch.setattr("workbench.tune.search.tuning.Tuning.out_of_time", clock)
    first = Tune(ask(rounds=2, allowance=Allowance(minutes=3)), runs=tmp_path, name="one")
    answer = first.run()
    assert (first.why, len(first.results)) == ("3 minutes are over", 2)
    again, plays = resumed(tmp_path)
    assert plays == 0
    assert (again.answer.words, again.why) == (answer.words, first.why)


@pytest.mark.parametrize("killed_at", range(2, 13))
def test_one_that_was_killed_anywhere_goes_on_to_the_same_answer(tmp_path, killed_at):
    """The search has 4 plays; 512 falls at its first fresh play, 256 and 128 play three rounds: 11 in all at least."""
    whole = Tune(ask(), runs=tmp_path / "whole", name="one")
    whole.run()
    most = Player.last.plays
    Player.killed_at = killed_at
    killed = Tune(ask(), runs=tmp_path, name="one")
    if killed_at <= most:
        with pytest.raises(KeyboardInterrupt):
            killed.run()
    else:
        killed.run()
    Player.killed_at = None
    again, plays = resumed(tmp_path)
    assert again.answer.words == whole.answer.words
    assert again.answer.best.point.hot["budget"] == 256
    assert plays <= max(most - killed_at + 2, 0), "that play, and the other one of its round"


def test_one_that_is_stopped_confirms_nothing(tmp_path):
    tune = Tune(ask(), runs=tmp_path, tell=lambda now: now.done == 2 and tune.stop())
    answer = tune.run()
    assert len(answer.results) < 4
    assert answer.confirmation is None
    assert answer.best is not None


def test_rounds_may_be_none(tmp_path):
    assert Tune(ask(rounds=0, allowance=Allowance(trials=2)), runs=tmp_path).run().confirmation is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rounds": -1}, "^rounds: got '-1', expected a whole number, 0 or more"),
        ({"rounds": 1.5}, "^rounds: got '1.5'"),
        ({"objectives": ("speed",)}, "^objective: got 'speed'"),
        ({"config": AttachedConfig(url="http://127.0.0.1:8000")}, "^engine of a study: got 'attached'"),
    ],
)
def test_what_cannot_be_asked_is_refused(fields, words):
    with pytest.raises(InputError, match=words):
        ask(**fields)
