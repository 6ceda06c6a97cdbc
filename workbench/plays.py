"""What is played on an engine: runs, prompts dropped into them, and comparisons of policies."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench import policy_runs
from workbench.config import SLO
from workbench.errors import EngineError, InputError
from workbench.i18n import phrase
from workbench.in_use import AnyEngine, InUse
from workbench.machine import machine_facts, package_versions
from workbench.policy_runs import Follow, PolicyRuns
from workbench.run import Change, Run
from workbench.store import new_run_folder
from workbench.telemetry import EngineMemory
from workbench.workload.build import build_workload
from workbench.workload.drops import Drops, check_lengths
from workbench.workload.request import Request, Workload
from workbench.workload.scenario import Scenario, Setting, load_scenario


class Plays(InUse):
    """The part of a workbench that plays workloads; one run at a time.

    Args:
        engine: what they are played on.
        root: folder that runs are recorded in; by default ``WORKBENCH_RUNS`` or ``runs``.
        slo: latency promise; a scenario brings its own.

    Attributes:
        slo: latency promise of what has none of its own.
        compared: what :meth:`compare_policies` has played, also when it was interrupted.
    """

    def __init__(self, engine: AnyEngine, root: Path | None, slo: SLO) -> None:
        super().__init__(engine)
        self.slo, self._root = slo, root
        self.compared: PolicyRuns | None = None
        self._plays = itertools.count()
        self._built: tuple[tuple[Scenario, int | None, int, Path], Workload] | None = None
        self._drops: Drops | None = None  # while an engine is up
        self._memory = EngineMemory()
        self._compute: dict[str, Any] | None = None  # of the model and the machine, while an engine is up

    def run(
        self,
        scenario: Scenario | str | Path,
        *,
        rate: float | None = None,
        setting: Setting | None = None,
        seed: int | None = None,
        salt: int | None = None,
        slo: SLO | None = None,
        folder: Path | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Run:
        """Play a scenario; returns at once and records in the background.

        Args:
            scenario: a name, a file or an object.
            rate: requests a second of all open-loop streams together; by default the scenario's own.
            setting: knobs to play it under; without one the knobs stay as they are.
            seed: replaces the scenario's.
            salt: other words in the prompts, all else equal; by default 0, and with a prefix cache others in each run
                on an engine, since the cache would know them.
            slo: replaces the scenario's latency promise.
            folder: where to record; by default a new folder in the workbench's runs.
            meta: more metadata for the run.

        Raises:
            InputError: the scenario or the setting is wrong.
            EngineError: the engine does not run, or a run is going on.
            StoreError: the run cannot be recorded.
        """
        scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        if rate is not None:
            scenario = scenario.at_rate(rate)
        if setting is not None:
            setting.knobs(self.engine.envelope)
        self._expect_rest("run")  # after the arguments: a slip in them should not cost a start to be seen
        if salt is None:
            salt = next(self._plays) if self.engine.keeps_cache else 0
        workload = self._workload(scenario, seed, salt)
        changes = self._prepare(scenario, setting)
        facts = {
            "scenario": scenario.name,
            "question": scenario.question,
            "setting": setting.name if setting else None,
            "slo": (slo or scenario.slo).model_dump(),
            **(meta or {}),
        }
        name = scenario.name if setting is None else f"{scenario.name} {setting.name}"
        return self._play(workload, folder or new_run_folder(self._root, name), facts, changes)

    def compare_policies(
        self,
        scenario: Scenario | str | Path,
        policies: Sequence[str] | None = None,
        *,
        settings: Sequence[Setting] | None = None,
        seed: int | None = None,
        follow: Follow | None = None,
    ) -> PolicyRuns:
        """Play the same seeded workload under one policy after the other; the knobs in force are put back.

        A setting that the engine refuses is noted in the answer and the next one is played. When somebody stops the
        load, the answer holds the runs before that; after an error they are in :attr:`compared`.

        Args:
            scenario: a name, a file or an object.
            policies: their names; by default those of the scenario's settings, else all. A policy is played as the
                scenario sets it, or else with the knobs in force.
            settings: what to play, in place of policies.
            seed: replaces the scenario's.
            follow: called with each setting and its run; may wait for the run and show its progress.

        Raises:
            InputError: the scenario or a policy is wrong.
            EngineError: the engine does not run, or a run is going on.
            EngineDiedError: the engine ended in mid-run.
            StoreError: a run cannot be recorded.
        """
        scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        if settings is None:
            settings = policy_runs.choose(scenario, policies, self.engine.envelope, self._moved())
        elif policies is not None:
            raise InputError("policies and settings", "both", "one of them", "name the policies in the settings")
        self._expect_rest("compare_policies")
        runs = self.compared = PolicyRuns(scenario.name, scenario.slo)
        policy_runs.play(self, scenario, settings, runs=runs, seed=seed, follow=follow)
        return runs

    def reset_prefix_cache(self) -> None:
        """Empty the prefix cache of the running engine; returns when it is empty.

        The next run has the words of the first one again, since the cache no longer knows them.

        Raises:
            ConfigError: the engine was started without a prefix cache.
            EngineError: the engine does not run, a run is going on, or the cache could not be emptied.
        """
        if self.playing:
            raise EngineError(
                phrase("prefix cache: got a reset in mid-run, expected an engine at rest; wait for the run or stop it")
            )
        self.engine.reset_prefix_cache()
        self._plays = itertools.count()

    def stop_load(self, timeout_s: float | None = None) -> bool:
        """End the run that is going on; what was measured stays. The engine goes on.

        Args:
            timeout_s: longest wait until the run is on disk.

        Returns:
            Whether it has ended; true also when nothing was played.

        Raises:
            EngineDiedError: the engine ended in the meantime.
            StoreError: not everything could be written.
        """
        run = self._run
        if run is None or run.done:
            return True
        run.cancel()
        return run.wait(timeout_s)

    def drop_long(self, tokens: int, output_tokens: int = 16) -> str:
        """Send one long prompt, now: into the run that is going on, or as a run of its own.

        Returns:
            The request's name in the trace.

        Raises:
            InputError: it does not fit into the context.
            EngineError: the engine does not run, or something that is measured on it has it for itself.
        """
        self._expect_free("drop_long")
        check_lengths(tokens, output_tokens, self.engine.config.max_model_len)
        self._expect_ready(phrase("{what}: got a prompt", what="drop_long"))
        if self._drops is None:
            self._drops = Drops(self._tokenizer(), self.engine.config.max_model_len)
        request = self._drops.make(tokens, output_tokens)
        if not self._added(request):
            facts = {"scenario": "dropped", "question": "What does one long prompt meet on an idle engine?"}
            folder = new_run_folder(self._root, "dropped")
            self._play(Workload((request,)), folder, facts | {"slo": self.slo.model_dump()})
        return request.request

    def _moved(self) -> dict[str, Any]:
        """The knobs that are not as the engine started with them."""
        before = self.engine.envelope.defaults.model_dump()
        return {name: value for name, value in self.engine.knobs.model_dump().items() if value != before[name]}

    def _added(self, request: Request) -> bool:
        """Send a request into the run that is going on; false if there is none, or it has just ended."""
        run = self._run
        if run is None or run.done:
            return False
        try:
            run.add(request)
        except EngineError:  # all its requests have ended; it is being written
            run.wait()
            return False
        return True

    def _play(self, workload: Workload, folder: Path, facts: Mapping[str, Any], changes: Sequence[Change] = ()) -> Run:
        meta = {
            "label": self.engine.label,
            "seed": workload.seed,
            "workload": workload.source,
            "machine": machine_facts(),
            "versions": package_versions(),
            "engine": self.engine.describe(),
            **({"compute": self._compute} if self._compute else {}),
            **facts,
        }
        pid = self.engine.pid
        sources = self._memory.sources(pid) if pid is not None else []  # a simulated engine has no memory to look at
        self._run = Run(self.engine, workload, folder, meta, sources=sources, changes=changes)
        return self._run

    def _workload(self, scenario: Scenario, seed: int | None, salt: int) -> Workload:
        """Build the requests, or take those of the last run if they are the same: a sweep plays them many times."""
        asked = (scenario, seed, salt, self._tokenizer())
        if self._built is None or self._built[0] != asked or scenario.reads_files:
            self._built = (asked, build_workload(scenario, asked[-1], self.engine.config.max_model_len, seed, salt))
        return self._built[1]

    def _prepare(self, scenario: Scenario, setting: Setting | None) -> list[Change]:
        """Set the knobs that a run begins with; return the change that comes later, if there is one."""
        if setting is None:
            return []
        knobs = setting.knobs(self.engine.envelope)
        if not scenario.settings_at_s:
            self.engine.set_knobs(knobs)
            return []
        self.engine.set_knobs(self.engine.envelope.defaults)
        return [Change(scenario.settings_at_s, lambda: self.engine.set_knobs(knobs))]

    def _tokenizer(self) -> Path:
        model = self.engine.model
        if model is None:
            raise self._not_ready(phrase("{what}: got a workload", what="run"))
        if model.tokenizer_path is None:
            raise InputError("model", model.name, "a model with a tokenizer.json", "choose another model")
        return model.tokenizer_path
