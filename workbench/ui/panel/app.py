"""The panel: controls on the left, live charts on the right; every button is one method of the workbench."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from workbench.engine.attached import AttachedEngine
from workbench.i18n import marked, speaking, translate
from workbench.session import Workbench
from workbench.simulated_config import SimulatedConfig
from workbench.ui.live.board import Board
from workbench.ui.live.feed import Feed
from workbench.ui.panel.actions import Actions, Listening
from workbench.ui.panel.buttons import STOP, Buttons
from workbench.ui.panel.fields import choice
from workbench.ui.panel.form import Form
from workbench.ui.panel.handing import HandOver
from workbench.ui.panel.knobs import KnobForm
from workbench.ui.panel.load import LoadForm
from workbench.ui.panel.log import LogDrawer
from workbench.ui.panel.parts import row, section
from workbench.ui.panel.policies import PolicyForm
from workbench.ui.panel.startup import StartUpForm
from workbench.ui.panel.step_memory import StepMemory

_WINDOWS = {10.0: "10 s", 30.0: "30 s", 60.0: marked("1 min"), 120.0: marked("2 min"), 300.0: marked("5 min")}
LEAVE_AFTER = "WORKBENCH_LEAVE_AFTER_S"  # set for dashboards: seconds without a word of a page
_SWITCH_S = 0.0005
_shown: Panel | None = None  # there is one panel in a kernel: a cell that runs twice replaces it


class Panel(widgets.Box):
    """Controls and live charts of one workbench.

    Everything that takes time runs in a thread, so that the notebook stays free and Stop works at any moment.

    Args:
        bench: what is driven and shown; also what cells do to it.
        lang: language, see :mod:`workbench.i18n`; none takes the one that is spoken.

    Attributes:
        lang: its short name.

    Raises:
        InputError: there are no messages in that language.
    """

    def __init__(self, bench: Workbench, lang: str | None = None) -> None:
        with speaking(lang) as self.lang:
            self._make(bench)

    def _make(self, bench: Workbench) -> None:
        self._bench = bench
        self._log = LogDrawer()
        self._actions = Actions(self._log.tell, self._refresh)
        self._listening = Listening(self._log.tell)
        self._progress: tuple[float, str] | None = None  # of the start that goes on
        self._revision = -1  # of the knobs that are shown
        self._stopping = self._stop_comparing = self._left = False
        self._looking = threading.RLock()
        self._was = bench.engine.state
        self._shown_config = bench.config
        self._length = 0  # context that the load form is bound to
        self._switch_s = sys.getswitchinterval()
        self.board = Board()
        self.start_form, self.knob_form, self.load_form = StartUpForm(), KnobForm(), LoadForm()
        self.policy_form, self.buttons = PolicyForm(), Buttons()
        self._memory = StepMemory(bench)
        self.window = choice("window", "window", "How much of the past the charts show.", _WINDOWS, self.board.window_s,
                             text=lambda seconds: translate(_WINDOWS.get(seconds, f"{seconds:g} s")))  # fmt: skip
        self._hand = HandOver(bench, lambda: self.load_form.values, lambda text: self.board.copy(text))
        self._feed = Feed(bench, self.board, self._log.tell, self._state, self._refresh)
        self.start_form.set(bench.config.model_dump())
        self._wire()
        layout = widgets.Layout()  # of all: each of its own would be one more for a page to load
        self._all = self._forms(layout)
        super().__init__(self._columns(layout), layout=layout)
        self.add_class("wb-panel")
        self.add_class("wb-both")
        self._refresh()

    def follow(self) -> Panel:
        """Begin to follow the workbench; the panel before is closed, and the engine of another workbench ended."""
        global _shown
        before, _shown = _shown, self
        if before is not None:
            before.close()
            if before._bench is not self._bench:
                before._bench.stop()
        self._listening.open()
        # A cell that computes hands the interpreter over only so often; what the panel's threads do in small steps,
        # such as a push, would wait for it 5 ms at each.
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(min(self._switch_s, _SWITCH_S))
        self._feed.start()
        return self

    def close(self) -> None:
        """Stop following; the engine and the run go on."""
        self._feed.stop()
        self._listening.close()
        sys.setswitchinterval(self._switch_s)
        for widget in (*self._all, *self.children, self.layout):
            widget.close()
        super().close()

    def _forms(self, layout: widgets.Layout) -> tuple[Form, ...]:
        """Six forms and a board are all that a page has to load."""
        knobs, buttons = self.knob_form, self.buttons
        start = section("start", "Start-up", "a change needs a restart", [*self.start_form.parts, buttons.engine])
        hot = section("knobs", "Knobs", "act on the next scheduler step", knobs.parts)
        load = section("load", "Load", "", [*self.load_form.parts, buttons.load])
        below = row("below", [self.window, *buttons.hand_over])
        forms = ([start], [hot], [load], [self._log.alert], [below, self._hand.pane, self.policy_form.drawer])
        return tuple(Form(parts, layout) for parts in (*forms, [self._log.drawer]))

    def _columns(self, layout: widgets.Layout) -> tuple[widgets.Box, widgets.Box]:
        start, hot, load, trouble, below, log = self._all
        self.board.layout.close()
        self.board.layout = layout
        left = widgets.Box([start, hot, load], layout=layout)
        left.add_class("wb-left")
        right = widgets.Box([trouble, self.board, below, log], layout=layout)
        right.add_class("wb-right")
        return left, right

    def _wire(self) -> None:
        on, buttons = self._actions.guarded, self.buttons
        does = {
            buttons.start: lambda: self._actions.run("start", self._start),
            buttons.stop: lambda: self._actions.run("stop", self._stop),
            buttons.run: self._run_or_stop,
            buttons.drop: lambda: self._actions.run("drop", self._drop),
            buttons.save: lambda: self._actions.run("save", self._hand.save),
            buttons.report: lambda: self._actions.run("save", self._hand.report),
            buttons.compare: lambda: self._actions.run("compare", self._hand.side_by_side),
            buttons.code: lambda: self._as_shown(self._hand.code),
            buttons.serve: lambda: self._as_shown(self._hand.command),
            buttons.sglang: lambda: self._as_shown(lambda: self._hand.command("sglang")),
            self.knob_form.empty: lambda: self._actions.run("empty", self._bench.reset_prefix_cache),
            self.policy_form.button: self._compare_policies,
        }
        for button, do in does.items():
            button.on_press(on(do))
        buttons.pause.observe(on(lambda: setattr(self.board, "paused", buttons.pause.value)))
        self.window.observe(on(lambda: setattr(self.board, "window_s", self.window.value)))
        self.start_form.observe(on(self._refresh))
        self.load_form.observe(on(self._refresh))
        self.policy_form.observe(on(self._refresh))
        self.knob_form.on_change(on(self._turn))

    # What the buttons do.

    def _start(self) -> None:
        self._log.clear()
        self._stopping = False
        if self.start_form.config is None:
            return
        self._progress = (0.0, "starting")
        try:
            changes = self.start_form.changes
            self._shown_config = self._bench.configure(**self.start_form.fields)
            self._bench.start(self._tell_progress)
            if changes:
                self._bench.knobs(**changes)
        except Exception:
            if not self._stopping:
                raise
        finally:
            self._progress = None

    def _tell_progress(self, seconds: float, what: str) -> None:
        self._progress = (seconds, what)

    def _stop(self) -> None:
        self._stopping = True
        self._bench.stop()

    def _run_or_stop(self) -> None:
        """What the button says, also when that has just ceased to be true."""
        stop = self.buttons.run.text == STOP
        self._actions.run("load", self._bench.stop_load if stop else self._play)

    def _play(self) -> None:
        self._log.clear()
        load = self.load_form.values
        self._bench.slo = load["slo"]
        self._bench.run(load["scenario"], rate=load["rate"], slo=load["slo"])

    def _drop(self) -> None:
        load = self.load_form.values
        self._bench.slo = load["slo"]
        self._bench.drop_long(load["long_tokens"])

    def _turn(self, changes: dict[str, Any]) -> None:
        try:
            self._revision = self._bench.knobs(**changes)
        except Exception:
            self.knob_form.show(self._bench.engine.knobs)
            raise

    def _compare_policies(self) -> None:
        """Begin, or end what goes on."""
        if self._actions.going("policies"):
            self._stop_comparing = True
            self._actions.run("load", self._bench.stop_load)
            return
        self._stop_comparing = False
        self._log.clear()
        self._actions.run("policies", self._play_policies)

    def _play_policies(self) -> None:
        try:
            self.policy_form.run(self._bench, lambda: self._stop_comparing)
        except Exception:
            if not self._stop_comparing:
                raise

    def _as_shown(self, do: Callable[[], None]) -> None:
        """What is shown is what is meant, also before an engine was started with it."""
        if self.start_form.config is not None and not self.start_form.disabled:
            self._shown_config = self._bench.configure(**self.start_form.fields)
        do()

    def _look_at_peaks(self) -> None:
        self._memory.look()
        self.knob_form.remind()

    # What is shown.

    def _state(self) -> str:
        """The engine's state in words, with the time that it has been so."""
        state = self._bench.engine.state
        if state == "ready" and self.knob_form.disabled and self.knob_form.problem is None:
            self._refresh()  # nobody shall read "ready" and turn a knob that is not yet bound to the engine
        if self._progress is not None:
            seconds, what = self._progress
            return translate("starting {clock}: {what}", clock=_clock(seconds), what=translate(what))
        if state == "ready":
            if trouble := getattr(self._bench.engine, "trouble", ""):
                return str(trouble)
            since = self._bench.engine.ready_since
            up = f" {_clock(time.monotonic() - since)}" if since else ""
            return translate("ready{up} · revision {revision}", up=up, revision=self._bench.engine.revision)
        return translate({"new": marked("not started")}.get(state, state))

    def _refresh(self) -> None:
        """Make what can be pressed fit what is going on; from any thread, twice a second and at every change."""
        with self._looking:
            self._fit()
            self._leave_if_alone()
            before, state = self._was, self._bench.engine.state
            self._was = state
            died = state == "failed" and before == "ready" and not self._bench.playing
        if died and (self._bench.current_run is None or self._bench.current_run.error is None):
            death = self._bench.engine.death()
            if death is not None:
                self._log.tell(death)

    def _leave_if_alone(self) -> None:
        """A dashboard whose page is gone, as with a laptop that is lost, ends its engine and falls silent.

        Jupyter then takes the kernel for idle and culls it.
        """
        after = float(os.environ.get(LEAVE_AFTER) or 0)
        if after and not self._left and time.monotonic() - self.board.heard_s > after:
            self._left = True
            self._actions.run("leave", self._leave)

    def _leave(self) -> None:
        try:
            self._stop()
        finally:
            self.close()

    def _fit(self) -> None:
        engine, going = self._bench.engine, self._actions.going
        starting = going("start") or engine.state == "starting"
        ready, up = engine.state == "ready", engine.state in ("starting", "ready", "stopping")
        self.start_form.disabled = starting or up
        if self._bench.config != self._shown_config:  # set by a cell
            self._shown_config = self._bench.config
            self.start_form.set(self._shown_config.model_dump())
        shown = self.start_form.config
        if not ready and shown is not None and shown.max_model_len != self._length:
            self._length = shown.max_model_len
            self.load_form.bind(self._length)
        why = engine.why_no_knobs if isinstance(engine, AttachedEngine) else None
        if ready and why is not None:
            if self.knob_form.problem != why:
                self.start_form.set(self._bench.config.model_dump())
                self.knob_form.explain(why)
                self._length = self._bench.config.max_model_len
                self.load_form.bind(self._length)
        elif ready and (self.knob_form.disabled or engine.revision != self._revision):
            if self.knob_form.disabled:
                self.start_form.set(self._bench.config.model_dump())
                caches, note = engine.envelope.prefix_caching, self._memory.note
                self.knob_form.bind(engine.envelope, engine.knobs, caches=caches, note=note)
                self._length = self._bench.config.max_model_len
                self.load_form.bind(self._length)
            else:
                self.knob_form.show(engine.knobs)
            self._revision = engine.revision
        elif not ready and (not self.knob_form.disabled or self.knob_form.problem is not None):
            self.knob_form.unbind()
        held = self._bench.held_by
        self.knob_form.lock(f"Locked: {held} goes on; stop it to turn knobs yourself." if held else "")
        self.buttons.fit(
            can_start=not starting and not up and self.start_form.problem is None,
            can_stop=(starting or up or engine.state == "failed") and not going("stop"),
            can_load=ready and not going("load") and not going("policies") and self.load_form.problem is None,
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
        self.policy_form.fit(can=can, going=going("policies"), simulated=simulated)
        self._log.show(engine.log_tail())


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
