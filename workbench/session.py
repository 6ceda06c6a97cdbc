"""``Workbench``: one engine, its knobs, and the runs that are made on it. Every button of the panel is a method."""

from __future__ import annotations

import contextlib
import weakref
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from workbench.attached_config import AttachedConfig
from workbench.config import SLO, EngineConfig, Knobs, parse
from workbench.engine.attached import AttachedEngine
from workbench.engine.live import LiveEngine
from workbench.engine.protocol import Progress
from workbench.errors import EngineError, EngineStartError, EnvelopeError, WorkbenchError
from workbench.hands_over import HandsOver
from workbench.i18n import phrase
from workbench.in_use import AnyEngine
from workbench.run import RecordedRun
from workbench.simulate.engine import SimulatedEngine
from workbench.simulated_config import SimulatedConfig, engine_config
from workbench.store import handed_over, prepare_root
from workbench.workload.drops import Drops
from workbench.workload.scenario import Scenario, Setting

if TYPE_CHECKING:
    from workbench.tune.compare import Comparison
    from workbench.tune.compare.rounds import Tell
    from workbench.ui.panel.app import Panel
    from workbench.ui.tuner import Tuner


class Workbench(HandsOver):
    """One engine to turn the knobs of.

    Args:
        model: preset, folder or hub id; by default smollm2, llama-3.1-70b where the engine is simulated, and what is
            served where it is attached.
        runs: folder that runs are recorded in; by default ``WORKBENCH_RUNS`` or ``runs``.
        slo: latency promise; a scenario brings its own.
        **start_up: any other field of :class:`workbench.config.EngineConfig`; with ``engine="simulated"`` of
            :class:`workbench.simulated_config.SimulatedConfig`, such as ``gpu="H100", count=8``; with
            ``engine="attached"`` of :class:`workbench.attached_config.AttachedConfig`, such as ``url=...``.

    Raises:
        ConfigError: a field is wrong, or two clash.
    """

    _latest: ClassVar[weakref.ref[Workbench] | None] = None

    def __init__(
        self, model: str | None = None, *, runs: Path | str | None = None, slo: SLO | None = None, **start_up: Any
    ) -> None:
        fields = start_up if model is None else {"model": model, **start_up}
        super().__init__(_engine(engine_config(fields)), Path(runs) if runs is not None else None, slo or SLO())
        self._stops = 0

    @classmethod
    def current(cls) -> Workbench | None:
        """The workbench that was started or shown last in this kernel; none if there is none, or it was left."""
        return cls._latest() if cls._latest is not None else None

    @property
    def config(self) -> EngineConfig:
        """Start-up fields; :meth:`configure` changes them."""
        return self.engine.config

    @classmethod
    def of(cls, scenario: Scenario, *, runs: Path | str | None = None, **start_up: Any) -> Self:
        """A workbench with the engine that a scenario asks for; ``start_up`` goes before the scenario's fields."""
        fields = {**scenario.engine, **start_up}
        return cls(**fields, runs=runs, slo=scenario.slo)

    @staticmethod
    def open(folder: Path | str) -> RecordedRun:
        """Open a run that is on disk; neither vLLM nor torch is needed.

        Args:
            folder: of the run; ``data/runs/...`` is found from anywhere, as it comes with the workbench.

        Raises:
            RunNotFoundError: it is not a run.
            StoreError: it cannot be read.
        """
        run = RecordedRun(handed_over(folder))
        _ = run.trace
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self.current() is self:
            Workbench._latest = None

    def configure(self, **start_up: Any) -> EngineConfig:
        """Change start-up fields while no engine runs; the next start uses them.

        Args:
            **start_up: fields as for the constructor; what is left out stays as it is. With ``engine`` changed, the
                fields that both kinds of engine have.

        Raises:
            ConfigError: a field is wrong, or two clash.
            EngineError: an engine runs.
        """
        before = self.config.model_dump()
        if start_up.get("engine", "live") != before.get("engine", "live") and "engine" in start_up:
            before = {name: before[name] for name in EngineConfig.model_fields}
        engine = _engine(engine_config(before | start_up))
        if engine.config != self.config:
            if self.engine.state in ("starting", "ready", "stopping"):
                raise EngineError(
                    phrase(
                        "configure: got new start-up fields while {state}; stop the engine first",
                        state=phrase(self.engine.state),
                    )
                )
            self.engine.stop()  # one that died is still held
            self.engine = engine
        return self.config

    def start(self, progress: Progress | None = None) -> Self:
        """Start the engine and wait until it is ready; one that is ready already stays as it is.

        Args:
            progress: told the elapsed seconds and what is going on, ten times a second.

        Raises:
            InputError: the model or a start-up field is wrong.
            EngineStartError: it did not come up.
            StoreError: runs could not be written.
        """
        Workbench._latest = weakref.ref(self)
        if self.engine.state == "ready":
            return self
        stops = self._stops
        prepare_root(self._root)  # a full disk should not cost an engine start
        before = self._memory.look_before() if self.engine.label == "live GPU" else None
        if self._stops != stops:
            raise EngineStartError("the start was stopped")
        self.engine.start(progress)
        self._memory.engine_is_up(before)
        self._compute = self.engine.compute_facts()
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
        self._drops = self._compute = None
        self._memory.close()

    def knobs(self, **changes: Any) -> int:
        """Change hot knobs; the engine's next step uses them.

        Args:
            **changes: fields of :class:`workbench.config.Knobs`; what is left out stays as it is.

        Returns:
            The revision, which stands in the trace and on every chart.

        Raises:
            EnvelopeError: the change does not fit what the engine was started with.
            EngineError: the engine does not run, or something that is measured on it has it for itself.
        """
        self._expect_free("knobs")
        return self.engine.set_knobs(parse(Knobs, self.engine.knobs.model_dump() | changes, error=EnvelopeError))

    def compare_settings(
        self, a: Setting | str, b: Setting | str, scenario: Scenario | str | Path, tell: Tell | None = None, **how: Any
    ) -> Comparison:
        """Play two settings in turn until it is clear which is better; see :func:`workbench.tune.compare.compare`."""
        from workbench.tune.compare import compare  # here, since it stands on this module's runs

        return compare(self, a, b, scenario, tell, **how)

    def panel(self, *, lang: str | None = None) -> Panel:
        """Controls and live charts, as a widget; each button is a method of this class.

        A kernel has one panel: showing another closes it, and ends its engine if that is not this one.

        Args:
            lang: ``en`` or ``zh``; by default ``WORKBENCH_LANG``, else English.

        Raises:
            InputError: there are no messages in that language.
        """
        from workbench.ui.panel.app import Panel  # here, since only notebooks have widgets

        Workbench._latest = weakref.ref(self)
        return Panel(self, lang).follow()

    def tuner(self, *, lang: str | None = None) -> Tuner:
        """The tuner as a widget: finds a setting for this engine under a latency promise, and what proves it.

        Its trials are runs of this workbench: a panel beside it shows each of them as it is played. Showing another
        tuner closes it and stops its study.

        Args:
            lang: as for :meth:`panel`.
        """
        from workbench.ui.tuner import Tuner  # here, since only notebooks have widgets

        Workbench._latest = weakref.ref(self)
        return Tuner(self, runs=self._root, lang=lang)


def _engine(config: EngineConfig) -> AnyEngine:
    """The engine that a configuration is for."""
    if isinstance(config, AttachedConfig):
        return AttachedEngine(config)
    return SimulatedEngine(config) if isinstance(config, SimulatedConfig) else LiveEngine(config)
