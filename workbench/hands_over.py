"""What leaves a workbench, on demand: a saved run, its report, figures beside another's, a command, code."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pandas as pd

from workbench import code, handover
from workbench.config import SLO
from workbench.engine.attached import AttachedEngine
from workbench.engine.command import serve_command
from workbench.engine.sglang_command import sglang_command
from workbench.errors import EngineError, InputError
from workbench.i18n import phrase
from workbench.plays import Plays
from workbench.run import RecordedRun, Run
from workbench.workload.scenario import load_scenario


class HandsOver(Plays):
    """The part of a workbench that hands over what was played, and how to have the same elsewhere."""

    def save_run(self, name: str | None = None, *, lang: str | None = None) -> RecordedRun:
        """Copy the run that is going on, or the last one, into a folder of its own with a report in it.

        Args:
            name: of the copy; by default that of its scenario.
            lang: language of the report, as for :meth:`report`.

        Raises:
            EngineError: nothing was played yet.
            StoreError: it cannot be written.
        """
        return handover.save(self._some_run("save_run"), self._root, name, lang)

    def report(self, path: Path | str | None = None, *, lang: str | None = None) -> Path:
        """Write one HTML file about the run that is going on, or the last one; it needs no network.

        Args:
            path: of the file; by default ``report.html`` in the run's folder.
            lang: ``en`` or ``zh``; by default ``WORKBENCH_LANG``, else English.

        Raises:
            EngineError: nothing was played yet.
            StoreError: it cannot be written.
        """
        return handover.report(self._some_run("report"), None if path is None else Path(path), lang)

    def compare(self, *runs: RecordedRun) -> pd.DataFrame:
        """Figures side by side, one column a run; by default the last run and the one recorded before it.

        Raises:
            EngineError: nothing was played yet.
            InputError: there are not two runs to compare.
        """
        if not runs:
            last = self._some_run("compare")
            before = handover.run_before(last)
            runs = (last,) if before is None else (before, last)
        return handover.side_by_side(runs)

    def serve_command(self, server: Literal["vllm", "sglang"] = "vllm") -> str:
        """The plain command for the configuration, with the hot knobs in force made permanent.

        Args:
            server: ``vllm serve``, or SGLang's ``launch_server`` with the flags that it has for the same.

        Raises:
            InputError: of an attached server nobody knows what it was started with.
        """
        if isinstance(self.engine, AttachedEngine):
            raise InputError(
                "serve_command", self.engine.label, "an engine that we start", "look at how that server was started"
            )
        if server not in ("vllm", "sglang"):
            raise InputError("server", server, "vllm or sglang", "choose one of these")
        command = serve_command if server == "vllm" else sglang_command
        return command(self.engine.config, self.engine.model, self.engine.knobs)

    def code(self, scenario: str | Path | None = None, *, rate: float | None = None, slo: SLO | None = None) -> str:
        """Python lines that start this engine, set the knobs in force, and play a load.

        Args:
            scenario: a name or a file.
            rate: as for :meth:`run`.
            slo: as for :meth:`run`; left out where it is the scenario's own.

        Raises:
            ScenarioError: there is no such scenario.
        """
        own = load_scenario(scenario).slo if scenario is not None else None
        knobs = None if isinstance(self.engine, AttachedEngine) and self.engine.why_no_knobs else self.engine.knobs
        return code.as_code(self.engine.config, knobs, scenario, rate, None if slo == own else slo)

    def _some_run(self, what: str) -> Run:
        if self._run is None:
            raise EngineError(phrase("{what}: got no run, expected one that was played; run a load first", what=what))
        return self._run
