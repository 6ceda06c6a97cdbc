"""``Workbench``: one engine, its knobs, and the runs that are made on it. Every button of the panel is a method."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from workbench import code, handover
from workbench.config import SLO, EngineConfig, Knobs, parse
from workbench.engine.command import installed_device
from workbench.engine.live import LiveEngine
from workbench.engine.probe.compat import installed_vllm
from workbench.engine.protocol import Progress
from workbench.errors import EngineError, EngineStartError, EnvelopeError, InputError, WorkbenchError
from workbench.machine import machine_facts, package_versions
from workbench.run import Change, RecordedRun, Run
from workbench.store import new_run_folder, prepare_root
from workbench.telemetry import EngineMemory
from workbench.workload.drops import Drops
from workbench.workload.request import Request, Workload
from workbench.workload.scenario import Scenario, Setting, build_workload, load_scenario

if TYPE_CHECKING:
    from workbench.ui.panel.app import Panel


class Workbench:
    """One engine to turn the knobs of.

    Args:
        model: preset, folder or hub id.
        runs: folder that runs are recorded in; by default ``WORKBENCH_RUNS`` or ``runs``.
        slo: latency promise; a scenario brings its own.
        **start_up: any other field of :class:`workbench.config.EngineConfig`.

    Raises:
        ConfigError: a field is wrong, or two clash.
    """

    def __init__(
        self, model: str = "smollm2", *, runs: Path | str | None = None, slo: SLO | None = None, **start_up: Any
    ) -> None:
        self.slo = slo or SLO()
        self.engine = LiveEngine(parse(EngineConfig, {"model": model, **start_up}))
        self._root = Path(runs) if runs is not None else None
        self._run: Run | None = None
        self._plays = itertools.count()
        self._built: tuple[tuple[Scenario, int | None, int, Path], Workload] | None = None
        self._drops: Drops | None = None  # while an engine is up
        self._memory = EngineMemory()
        self._stops = 0

    @property
    def config(self) -> EngineConfig:
        """Start-up fields; :meth:`configure` changes them."""
        return self.engine.config

    @property
    def current_run(self) -> Run | None:
        """The run that is going on, or the last one; none if nothing was played yet."""
        return self._run

    @property
    def playing(self) -> bool:
        """Whether a run is going on."""
        return self._run is not None and not self._run.done

    @classmethod
    def of(cls, scenario: Scenario, *, runs: Path | str | None = None, **start_up: Any) -> Self:
        """A workbench with the engine that a scenario asks for; ``start_up`` goes before the scenario's fields."""
        fields = {**scenario.engine, **start_up}
        return cls(**fields, runs=runs, slo=scenario.slo)

    @staticmethod
    def open(folder: Path | str) -> RecordedRun:
        """Open a run that is on disk; neither vLLM nor torch is needed.

        Raises:
            RunNotFoundError: it is not a run.
            StoreError: it cannot be read.
        """
        run = RecordedRun(folder)
        _ = run.trace
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def configure(self, **start_up: Any) -> EngineConfig:
        """Change start-up fields while no engine runs; the next start uses them.

        Args:
            **start_up: fields of :class:`workbench.config.EngineConfig`; what is left out stays as it is.

        Raises:
            ConfigError: a field is wrong, or two clash.
            EngineError: an engine runs.
        """
        config = parse(EngineConfig, self.config.model_dump() | start_up)
        if config != self.config:
            if self.engine.state in ("starting", "ready", "stopping"):
                raise EngineError(
                    f"configure: got new start-up fields while {self.engine.state}; stop the engine first"
                )
            self.engine.stop()  # one that died is still held
            self.engine = LiveEngine(config)
        return config

    def start(self, progress: Progress | None = None) -> Self:
        """Start the engine and wait until it is ready; one that is ready already stays as it is.

        Args:
            progress: told the elapsed seconds and what is going on, ten times a second.

        Raises:
            InputError: the model or a start-up field is wrong.
            EngineStartError: it did not come up.
            StoreError: runs could not be written.
        """
        if self.engine.state == "ready":
            return self
        stops = self._stops
        prepare_root(self._root)  # a full disk should not cost an engine start
        before = self._memory.look_before() if installed_device(installed_vllm()) == "cuda" else None
        if self._stops != stops:
            raise EngineStartError("the start was stopped")
        self.engine.start(progress)
        self._memory.engine_is_up(before)
        if self.engine.model is not None and self.engine.model.tokenizer_path is not None:
            self._drops = Drops(self.engine.model.tokenizer_path, self.config.max_model_len)
        return self

    def stop(self) -> None:
        """End the run that is going on, then the engine; nothing is left behind."""
        self._stops += 1  # also ends a start that has not come to the engine yet
        run = self._run
        with contextlib.suppress(WorkbenchError):  # it stays in run.error
            self.stop_load(5.0)
        self.engine.stop()
        if run is not None:
            with contextlib.suppress(WorkbenchError):
                run.wait(10.0)
        self._drops = None
        self._memory.close()

    def knobs(self, **changes: Any) -> int:
        """Change hot knobs; the engine's next step uses them.

        Args:
            **changes: fields of :class:`workbench.config.Knobs`; what is left out stays as it is.

        Returns:
            The revision, which stands in the trace and on every chart.

        Raises:
            EnvelopeError: the change does not fit what the engine was started with.
            EngineError: the engine does not run.
        """
        return self.engine.set_knobs(parse(Knobs, self.engine.knobs.model_dump() | changes, error=EnvelopeError))

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
        self._expect_rest()
        scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        if rate is not None:
            scenario = scenario.at_rate(rate)
        if salt is None:
            salt = next(self._plays) if self.config.enable_prefix_caching else 0
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
            EngineError: the engine does not run.
        """
        self._expect_ready("drop_long: got a prompt")
        if self._drops is None:
            self._drops = Drops(self._tokenizer(), self.config.max_model_len)
        request = self._drops.make(tokens, output_tokens)
        if not self._added(request):
            facts = {"scenario": "dropped", "question": "What does one long prompt meet on an idle engine?"}
            folder = new_run_folder(self._root, "dropped")
            self._play(Workload((request,)), folder, facts | {"slo": self.slo.model_dump()})
        return request.request

    def save_run(self, name: str | None = None) -> RecordedRun:
        """Copy the run that is going on, or the last one, into a folder of its own with a report in it.

        Raises:
            EngineError: nothing was played yet.
            StoreError: it cannot be written.
        """
        return handover.save(self._some_run("save_run"), self._root, name)

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

    def serve_command(self) -> str:
        """The plain ``vllm serve`` command for the configuration, with the hot knobs in force made permanent."""
        return code.serve(self.config, self.engine.model, self.engine.knobs)

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
        return code.as_code(self.config, self.engine.knobs, scenario, rate, None if slo == own else slo)

    def panel(self) -> Panel:
        """Controls and live charts, as a widget; each button is a method of this class.

        A kernel has one panel: showing another closes it, and ends its engine if that is not this one.
        """
        from workbench.ui.panel.app import Panel  # here, since only notebooks have widgets

        return Panel(self).follow()

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

    def _some_run(self, what: str) -> Run:
        if self._run is None:
            raise EngineError(f"{what}: got no run, expected one that was played; run a load first")
        return self._run

    def _expect_ready(self, what: str) -> None:
        """Asked before there is a folder for a run."""
        if self.engine.state != "ready":
            raise EngineError(f"{what} while the engine is {self.engine.state}, expected ready; start it first")

    def _expect_rest(self) -> None:
        """One run at a time."""
        self._expect_ready("run: got a workload")
        if self.playing:
            raise EngineError("run: got a second run, expected one at a time; wait for the first or cancel it")

    def _play(self, workload: Workload, folder: Path, facts: Mapping[str, Any], changes: Sequence[Change] = ()) -> Run:
        meta = {
            "label": self.engine.label,
            "seed": workload.seed,
            "workload": workload.source,
            "machine": machine_facts(),
            "versions": package_versions(),
            "engine": self.engine.describe(),
            **facts,
        }
        self._run = Run(
            self.engine, workload, folder, meta, sources=self._memory.sources(self.engine.pid or 0), changes=changes
        )
        return self._run

    def _workload(self, scenario: Scenario, seed: int | None, salt: int) -> Workload:
        """Build the requests, or take those of the last run if they are the same: a sweep plays them many times."""
        asked = (scenario, seed, salt, self._tokenizer())
        if self._built is None or self._built[0] != asked or scenario.reads_files:
            self._built = (asked, build_workload(scenario, asked[-1], self.config.max_model_len, seed, salt))
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
            raise EngineError(
                f"run: got a workload while the engine is {self.engine.state}, expected ready; start it first"
            )
        if model.tokenizer_path is None:
            raise InputError("model", model.name, "a model with a tokenizer.json", "choose another model")
        return model.tokenizer_path
