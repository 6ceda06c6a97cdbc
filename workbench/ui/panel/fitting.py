"""The panel's forms and buttons made to fit what the engine and its run do, whoever made them do it."""

from __future__ import annotations

import time

from workbench.engine.attached import AttachedEngine
from workbench.i18n import marked, translate
from workbench.session import Workbench
from workbench.simulated_config import SimulatedConfig
from workbench.ui.panel.actions import Actions
from workbench.ui.panel.driving import Driving
from workbench.ui.panel.forms import Forms
from workbench.ui.panel.log import LogDrawer
from workbench.ui.panel.startup import ATTACHED
from workbench.ui.panel.step_memory import StepMemory


class Fitting:
    """Fits the forms to one workbench.

    Args:
        bench: what is looked at.
        forms: are fitted.
        log: shows the engine's last lines.
        actions: tell what goes on, and read the peaks of a run that has ended.
        driving: what the forms have done.
    """

    def __init__(self, bench: Workbench, forms: Forms, log: LogDrawer, actions: Actions, driving: Driving) -> None:
        self._bench, self._forms, self._log, self._actions, self._driving = bench, forms, log, actions, driving
        self._memory = StepMemory(bench)
        self._length = 0  # context that the load form is bound to

    @property
    def unbound(self) -> bool:
        """Whether the engine is ready and its knobs are not yet bound to it."""
        knobs = self._forms.knobs
        return self._bench.engine.state == "ready" and knobs.disabled and knobs.problem is None

    @property
    def state(self) -> str:
        """The engine's state in words, with the time that it has been so."""
        state = self._bench.engine.state
        if self._driving.progress is not None:
            seconds, what = self._driving.progress
            return translate("starting {clock}: {what}", clock=_clock(seconds), what=translate(what))
        if state == "ready":
            if trouble := self._bench.engine.trouble:
                return trouble
            since = self._bench.engine.ready_since
            up = f" {_clock(time.monotonic() - since)}" if since else ""
            return translate("ready{up} · revision {revision}", up=up, revision=self._bench.engine.revision)
        return translate({"new": marked("not started")}.get(state, state))

    def fit(self) -> None:
        """Look at what goes on, and make what can be pressed fit it."""
        engine, going, forms = self._bench.engine, self._actions.going, self._forms
        starting = going("start") or engine.state == "starting"
        ready, up = engine.state == "ready", engine.state in ("starting", "ready", "stopping")
        forms.start.disabled = starting or up
        if self._bench.config != self._driving.shown_config:  # set by a cell
            self._driving.shown_config = self._bench.config
            self._show_start_up()
        why = engine.why_no_knobs if isinstance(engine, AttachedEngine) else None
        shown = forms.start.config
        if not ready and shown is not None and shown.max_model_len != self._length:
            self._bind_load(shown.max_model_len)
        self._fit_knobs(ready, why)
        held = self._bench.held_by
        forms.knobs.lock(f"Locked: {held} goes on; stop it to turn knobs yourself." if held else "")
        forms.buttons.call(attached=forms.start.engine.value == ATTACHED)
        forms.buttons.fit(
            can_start=not starting and not up and forms.start.problem is None,
            can_stop=(starting or up or engine.state == "failed") and not going("stop"),
            can_load=ready and not going("load") and not going("policies") and forms.load.problem is None,
            can_drop=ready and not starting and not held,
            playing=self._bench.playing,
            held=bool(held),
            has_run=self._bench.current_run is not None,
            saving=going("save"),
        )
        if ready and self._memory.stale and not going("peaks"):
            self._actions.run("peaks", self._look_at_peaks)
        simulated = isinstance(self._bench.config, SimulatedConfig)
        can = ready and why is None and not self._bench.playing and not held
        forms.policies.fit(can=can, going=going("policies"), simulated=simulated)
        self._log.show(engine.log_tail())

    def _fit_knobs(self, ready: bool, why: str | None) -> None:
        """Bind the knobs to an engine that has come up, show those in force, or say why there are none."""
        engine, knobs = self._bench.engine, self._forms.knobs
        if ready and why is not None:
            if knobs.problem != why:
                self._show_start_up()
                knobs.explain(why)
                self._bind_load(self._bench.config.max_model_len)
        elif ready and (knobs.disabled or engine.revision != self._driving.revision):
            if knobs.disabled:
                self._show_start_up()
                caches, note = engine.envelope.prefix_caching, self._memory.note
                knobs.bind(engine.envelope, engine.knobs, caches=caches, note=note)
                self._bind_load(self._bench.config.max_model_len)
            else:
                knobs.show(engine.knobs)
            self._driving.revision = engine.revision
        elif not ready and (not knobs.disabled or knobs.problem is not None):
            knobs.unbind()

    def _show_start_up(self) -> None:
        self._forms.start.set(self._bench.config.model_dump())

    def _bind_load(self, length: int) -> None:
        self._length = length
        self._forms.load.bind(length)

    def _look_at_peaks(self) -> None:
        self._memory.look()
        self._forms.knobs.remind()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
