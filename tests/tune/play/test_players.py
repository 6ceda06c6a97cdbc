"""What a player makes of a run that somebody else stopped; the bench is a stand-in, nothing is computed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from workbench.tune.play.players import EnginePlayer
from workbench.tune.trial import Asked, Point


@pytest.mark.parametrize(("status", "state"), [("cancelled", "interrupted"), ("complete", "complete")])
def test_a_load_that_was_stopped_beside_the_study_says_nothing_about_its_setting(status, state, tmp_path):
    meta = {"status": status, "label": "live CPU"}
    run = SimpleNamespace(
        label="live CPU", meta=meta, trace=SimpleNamespace(meta=meta), folder=tmp_path, wait=lambda _seconds: True
    )
    config = SimpleNamespace(enable_prefix_caching=False)
    bench = SimpleNamespace(
        engine=SimpleNamespace(state="ready", label="live CPU", config=config), run=lambda *_, **__: run
    )
    goal = SimpleNamespace(judge=lambda _trace: ({}, (1.0,), {"failed requests": 0.5}), slo=None)
    found = EnginePlayer(None, goal, None, bench=bench).play(Asked(0, Point({"budget": 64}), 1))
    assert found.state == state
    assert found.error == ("its load was stopped" if state == "interrupted" else None)
