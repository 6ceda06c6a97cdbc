"""The panel: controls on the left, live charts on the right; every button is one method of the workbench."""

from __future__ import annotations

import os
import sys
import threading
import time

import ipywidgets as widgets

from workbench.i18n import marked, speaking, translate
from workbench.session import Workbench
from workbench.ui.live.board import Board
from workbench.ui.live.feed import Feed
from workbench.ui.panel.actions import Actions, Listening
from workbench.ui.panel.driving import Driving
from workbench.ui.panel.fields import choice
from workbench.ui.panel.fitting import Fitting
from workbench.ui.panel.form import Form
from workbench.ui.panel.forms import Forms
from workbench.ui.panel.handing import HandOver
from workbench.ui.panel.log import LogDrawer
from workbench.ui.panel.parts import row, section

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
        self._left = False
        self._looking = threading.RLock()
        self._was = bench.engine.state
        self._switch_s = sys.getswitchinterval()
        self.board = Board()
        forms = Forms()
        self.start_form, self.knob_form, self.load_form = forms.start, forms.knobs, forms.load
        self.policy_form, self.buttons = forms.policies, forms.buttons
        self._driving = Driving(bench, forms, self._log, self._actions)
        self._fitting = Fitting(bench, forms, self._log, self._actions, self._driving)
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
        on, buttons, driving = self._actions.guarded, self.buttons, self._driving
        does = {
            buttons.start: lambda: self._actions.run("start", driving.start),
            buttons.stop: lambda: self._actions.run("stop", driving.stop),
            buttons.run: driving.run_or_stop,
            buttons.drop: lambda: self._actions.run("drop", driving.drop),
            buttons.save: lambda: self._actions.run("save", self._hand.save),
            buttons.report: lambda: self._actions.run("save", self._hand.report),
            buttons.compare: lambda: self._actions.run("compare", self._hand.side_by_side),
            buttons.code: lambda: driving.as_shown(self._hand.code),
            buttons.serve: lambda: driving.as_shown(self._hand.command),
            buttons.sglang: lambda: driving.as_shown(lambda: self._hand.command("sglang")),
            self.knob_form.empty: lambda: self._actions.run("empty", self._bench.reset_prefix_cache),
            self.policy_form.button: driving.compare_policies,
        }
        for button, do in does.items():
            button.on_press(on(do))
        buttons.pause.observe(on(lambda: setattr(self.board, "paused", buttons.pause.value)))
        self.window.observe(on(lambda: setattr(self.board, "window_s", self.window.value)))
        self.start_form.observe(on(self._refresh))
        self.load_form.observe(on(self._refresh))
        self.policy_form.observe(on(self._refresh))
        self.knob_form.on_change(on(driving.turn))

    def _state(self) -> str:
        """The engine's state in words."""
        if self._fitting.unbound:  # nobody shall read "ready" and turn a knob that is not yet bound to the engine
            self._refresh()
        return self._fitting.state

    def _refresh(self) -> None:
        """Make what can be pressed fit what is going on; from any thread, twice a second and at every change."""
        with self._looking:
            self._fitting.fit()
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
            self._driving.stop()
        finally:
            self.close()
