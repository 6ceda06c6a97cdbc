"""``Workbench``: one engine, its knobs, and the runs that are made on it. Every button of the panel is a method."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from workbench.config import SLO, EngineConfig, Knobs, parse
from workbench.engine.command import installed_device
from workbench.engine.live import LiveEngine
from workbench.engine.probe.compat import installed_vllm
from workbench.engine.protocol import Progress
from workbench.errors import EngineError, EnvelopeError, InputError, WorkbenchError
from workbench.machine import machine_facts, package_versions
from workbench.run import Change, RecordedRun, Run
from workbench.store import new_run_folder, prepare_root
from workbench.telemetry import Nvml, Source, baseline, cuda_devices, device_sources, host_sources
from workbench.telemetry.host import Session
from workbench.workload.prompts import Prompts, load_tokenizer
from workbench.workload.request import Request, Workload
from workbench.workload.scenario import MAX_SEED, Scenario, Setting, build_workload, load_scenario


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
        self.config: EngineConfig = parse(EngineConfig, {"model": model, **start_up})
        self.slo = slo or SLO()
        self.engine = LiveEngine(self.config)
        self._root = Path(runs) if runs is not None else None
        self._run: Run | None = None
        self._extra, self._plays = itertools.count(), itertools.count()
        self._built: tuple[tuple[Scenario, int | None, int, Path], Workload] | None = None
        self._prompts: Prompts | None = None  # for dropped prompts, each unlike all before
        self._nvml: Nvml | None = None
        self._memory_before: dict[str, Any] | None = None

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

    def start(self, progress: Progress | None = None) -> Self:
        """Start the engine and wait until it is ready.

        Args:
            progress: told the elapsed seconds and what is going on, ten times a second.

        Raises:
            InputError: the model or a start-up field is wrong.
            EngineStartError: it did not come up.
            StoreError: runs could not be written.
        """
        before = None
        prepare_root(self._root)  # a full disk should not cost an engine start
        if installed_device(installed_vllm()) == "cuda":
            self._nvml = self._nvml or Nvml()
            before = baseline(self._nvml, cuda_devices(self._nvml)[0])
        self.engine.start(progress)
        self._memory_before = before  # not of a start that was refused since the engine runs
        if self.engine.model is not None and self.engine.model.tokenizer_path is not None:
            # Now, so that a drop is sent at once; with a seed that no scenario has.
            self._prompts = Prompts(load_tokenizer(self.engine.model.tokenizer_path), seed=MAX_SEED + 1)
        return self

    def stop(self) -> None:
        """End the run that is going on, then the engine; nothing is left behind."""
        run = self._run
        if run is not None and not run.done:
            with contextlib.suppress(WorkbenchError):  # it stays in run.error
                run.cancel()
                run.wait(5.0)
        self.engine.stop()
        if run is not None:
            with contextlib.suppress(WorkbenchError):
                run.wait(10.0)
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

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
        setting: Setting | None = None,
        seed: int | None = None,
        salt: int | None = None,
        folder: Path | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Run:
        """Play a scenario; returns at once and records in the background.

        Args:
            scenario: a name, a file or an object.
            setting: knobs to play it under; without one the knobs stay as they are.
            seed: replaces the scenario's.
            salt: other words in the prompts, all else equal; by default 0, and with a prefix cache others in each run
                on an engine, since the cache would know them.
            folder: where to record; by default a new folder in the workbench's runs.
            meta: more metadata for the run.

        Raises:
            InputError: the scenario or the setting is wrong.
            EngineError: the engine does not run, or a run is going on.
            StoreError: the run cannot be recorded.
        """
        if self._run is not None and not self._run.done:  # before there is a folder for it
            raise EngineError("run: got a second run, expected one at a time; wait for the first or cancel it")
        scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        if salt is None:
            salt = next(self._plays) if self.config.enable_prefix_caching else 0
        workload = self._workload(scenario, seed, salt)
        changes = self._prepare(scenario, setting)
        name = scenario.name if setting is None else f"{scenario.name} {setting.name}"
        facts = {
            "label": self.engine.label,
            "scenario": scenario.name,
            "question": scenario.question,
            "setting": setting.name if setting else None,
            "slo": scenario.slo.model_dump(),
            "seed": workload.seed,
            "workload": workload.source,
            "machine": machine_facts(),
            "versions": package_versions(),
            "engine": self.engine.describe(),
            **(meta or {}),
        }
        folder = folder or new_run_folder(self._root, name)
        self._run = Run(self.engine, workload, folder, facts, sources=self._sources(), changes=changes)
        return self._run

    def drop_long(self, tokens: int, output_tokens: int = 16) -> str:
        """Send one long prompt into the run that is going on, now.

        Returns:
            The request's name in the trace.

        Raises:
            InputError: it does not fit into the context.
            EngineError: no run is going on.
        """
        limit = self.config.max_model_len - output_tokens
        if not 1 <= tokens <= limit:
            raise InputError(
                "tokens",
                tokens,
                f"1 to {limit} (max_model_len less {output_tokens} output tokens)",
                "choose a length in it",
            )
        if self._run is None or self._run.done:
            raise EngineError("drop_long: got a prompt while nothing is played, expected a run; start one first")
        if self._prompts is None:
            raise AssertionError("a run needs a tokenizer, and the start made prompts of it")
        request = Request(
            request=f"dropped-{next(self._extra)}",
            class_name="long",
            priority=0,
            arrival_s=0.0,
            prompt=self._prompts.piece(tokens),
            output_tokens=output_tokens,
        )
        self._run.add(request)
        return request.request

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

    def _sources(self) -> list[Source]:
        found = host_sources(Session(self.engine.pid or 0))
        if self._nvml is not None:
            found += device_sources(self._nvml, before=self._memory_before)
        return found
