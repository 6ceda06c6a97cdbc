"""``workbench tune --ray``: what is refused before a cluster or a study is there."""

from __future__ import annotations

import pytest

from workbench.cli.tune import tune_command
from workbench.errors import InputError
from workbench.tune.question import Question
from workbench.tune.tune import Tune


def test_workers_need_a_cluster():
    with pytest.raises(InputError, match="--workers and --cores: got 'no --ray'"):
        tune_command("chat_and_long", workers=2)


def test_an_address_at_which_nobody_answers_leaves_no_study(tmp_path):
    with pytest.raises(InputError, match="--ray: got 'nowhere'"):
        tune_command("chat_and_long", ray="nowhere", runs=tmp_path, start_up=["engine=simulated"])
    assert list(tmp_path.iterdir()) == []


class Side:
    """Plays two trials at a time, by no formula; not Ray."""

    label, workers = "simulated · by hand, uncalibrated", 2

    def __init__(self, results):
        self.results_of, self.flying, self.most, self.closed = results, [], 0, False

    def submit(self, asked, *, beat=None):
        self.flying.append(asked)
        self.most = max(self.most, len(self.flying))

    def results(self, timeout_s=None):
        back, self.flying = [self.results_of(one) for one in self.flying], []
        return back

    def play(self, asked, watch=None):
        return self.results_of(asked)

    def close(self):
        self.closed = True


def test_a_study_keeps_all_workers_busy_and_closes_the_player(tmp_path):
    from search_stand_ins import Landscape, a_space

    space, landscape = a_space(), Landscape()
    question = Question.of(
        "chat_and_long",
        limits={"gap_p99_ms": 200.0},
        knobs={name: values for name, values in space.hot.items() if name in ("budget", "chunk")},
        rounds=2,
        simulate=False,
    )
    player = Side(landscape.play)
    answer = Tune(question, runs=tmp_path, player=player)
    answer.run()
    assert player.most == 2
    assert player.closed
    assert answer.confirmation.winner is not None
