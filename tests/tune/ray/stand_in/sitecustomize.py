"""Puts a player that plays nothing into the processes that play trials: Ray is what ``test_cluster.py`` is about."""

import sys
import types

if "workbench.tune.ray.trial_child" in sys.orig_argv:

    class EnginePlayer:
        """Records an empty run, and takes two seconds."""

        label = "simulated · by hand, uncalibrated"

        def __init__(self, scenario, goal, space, runs=None):
            self.runs = runs

        def play(self, asked, watch=None):
            import json
            import time

            from workbench.tune.trial import Result

            folder = self.runs / f"run-{asked.number}"
            folder.mkdir()
            meta = {"schema": 1, "status": "complete", "scenario": "by hand", "seed": asked.seed}
            (folder / "run.json").write_text(json.dumps(meta))
            (folder / "tokens.parquet").write_bytes(bytes(range(256)) * 100)
            time.sleep(2.0)
            goodput = asked.point.hot["budget"] / 100
            figures = {"goodput_per_s": goodput}
            common = (asked.number, asked.point, asked.seed)
            return Result(*common, "complete", figures, (goodput,), {}, 2.0, self.label, str(folder))

        def close(self):
            pass

    stand_in = types.ModuleType("workbench.tune.play.players")
    stand_in.EnginePlayer = EnginePlayer
    sys.modules["workbench.tune.play.players"] = stand_in
