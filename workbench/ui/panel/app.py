"""The panel: controls on the left, live charts on the right; every button is one method of the workbench."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from html import escape
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.session import Workbench
from workbench.ui.live.board import Board
from workbench.ui.live.busy import answer_while_busy
from workbench.ui.live.feed import Feed
from workbench.ui.panel.actions import Actions, Listening
from workbench.ui.panel.buttons import STOP, Buttons
from workbench.ui.panel.knobs import KnobForm
from workbench.ui.panel.load import LoadForm
from workbench.ui.panel.log import LogDrawer
from workbench.ui.panel.startup import StartUpForm
from workbench.ui.panel.style import style

_WINDOWS = {"10 s": 10.0, "30 s": 30.0, "1 min": 60.0, "2 min": 120.0, "5 min": 300.0}
_SWITCH_S = 0.0005
_shown: Panel | None = None  # there is one panel in a kernel: a cell that runs twice replaces it


class Panel(widgets.VBox):
    """Controls and live charts of one workbench.

    Everything that takes time runs in a thread, so that the notebook stays free and Stop works at any moment.

    Args:
        bench: what is driven and shown; also what cells do to it.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._log = LogDrawer()
        self._actions = Actions(self._log.tell, self._refresh)
        self._listening = Listening(self._log.tell)
        self._progress: tuple[float, str] | None = None  # of the start that goes on
        self._revision = -1  # of the knobs that are shown
        self._stopping = False
        self._looking = threading.RLock()
        self._was = bench.engine.state
        self._shown_config = bench.config
        self._length = 0  # context that the load form is bound to
        self._switch_s = sys.getswitchinterval()
        self.board = Board()
        self.start_form, self.knob_form, self.load_form = StartUpForm(), KnobForm(), LoadForm()
        self.buttons = Buttons()
        self._result = widgets.HTML()
        self._result.add_class("wb-result")
        self._feed = Feed(bench, self.board, self._log.tell, self._state, self._refresh)
        self.start_form.set(bench.config.model_dump())
        self._wire()
        super().__init__(self._layout())
        self.add_class("wb-panel")
        for widget in _all(self):
            answer_while_busy(widget)  # Stop works whatever a cell does; callbacks only start threads or turn a knob
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
        for widget in list(_all(self)):
            for part in (getattr(widget, "layout", None), getattr(widget, "style", None)):
                if part is not None:
                    part.close()
            if widget is not self:
                widget.close()
        super().close()

    def _layout(self) -> list[widgets.Widget]:
        buttons = self.buttons
        window = widgets.Dropdown(options=_WINDOWS, value=self.board.window_s, description="window")
        window.layout.width = "150px"
        traitlets.link((window, "value"), (self.board, "window_s"))
        traitlets.link((buttons.pause, "value"), (self.board, "paused"))
        left = widgets.VBox(
            [
                _section("Start-up", "a change needs a restart", self.start_form.widget, buttons.engine),
                _section("Knobs", "act on the next scheduler step", self.knob_form.widget),
                _section("Load", "", self.load_form.widget, buttons.load),
            ]
        )
        left.add_class("wb-left")
        below = widgets.HBox([window, *buttons.hand_over])
        below.add_class("wb-bar")
        right = widgets.VBox([self._log.alert, self.board, below, self._result, self._log.widget])
        right.add_class("wb-right")
        both = widgets.HBox([left, right])
        both.add_class("wb-both")
        return [widgets.HTML(style()), both]

    def _wire(self) -> None:
        on, buttons = self._actions.guarded, self.buttons
        buttons.start.on_click(on(lambda _: self._actions.run("start", self._start)))
        buttons.stop.on_click(on(lambda _: self._actions.run("stop", self._stop)))
        buttons.run.on_click(on(lambda _: self._run_or_stop()))
        buttons.drop.on_click(on(lambda _: self._actions.run("drop", self._drop)))
        buttons.save.on_click(on(lambda _: self._actions.run("save", self._save)))
        buttons.compare.on_click(on(lambda _: self._actions.run("compare", self._side_by_side)))
        buttons.code.on_click(on(lambda _: self._copy_code()))
        buttons.serve.on_click(on(lambda _: self._copy_serve()))
        self.start_form.observe(on(self._refresh))
        self.load_form.observe(on(self._refresh))
        self.knob_form.on_change(on(self._turn))

    # What the buttons do.

    def _start(self) -> None:
        self._log.clear()
        self._stopping, config = False, self.start_form.config
        if config is None:
            return
        self._progress = (0.0, "starting")
        try:
            self._shown_config = self._bench.configure(**config.model_dump())
            self._bench.start(self._tell_progress)
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
        stop = self.buttons.run.description == STOP
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

    def _save(self) -> None:
        self._result.value = "Saving the run and writing its report …"
        try:
            saved = self._bench.save_run()
        except Exception:
            self._result.value = ""
            raise
        self._result.value = f"Saved with its report: <code>{escape(str(saved.folder))}</code>"

    def _side_by_side(self) -> None:
        table = self._bench.compare()
        shown = table.to_html(float_format=lambda value: f"{value:,.2f}", na_rep="n/a", border=0)
        note = "One run each: a difference holds the machine's noise as well."
        self._result.value = f'<div class="wb-table">{shown}</div>{note}'

    def _copy_code(self) -> None:
        load = self.load_form.values
        self._take_form()
        self.board.copy(self._bench.code(load["scenario"], rate=load["rate"], slo=load["slo"]))

    def _copy_serve(self) -> None:
        self._take_form()
        self.board.copy(self._bench.serve_command())

    def _take_form(self) -> None:
        """What is shown is what is meant, also before an engine was started with it."""
        if self.start_form.config is not None and not self.start_form.disabled:
            self._shown_config = self._bench.configure(**self.start_form.config.model_dump())

    # What is shown.

    def _state(self) -> str:
        """The engine's state in words, with the time that it has been so."""
        state = self._bench.engine.state
        if self._progress is not None:
            seconds, what = self._progress
            return f"starting {_clock(seconds)}: {what}"
        if state == "ready":
            since = self._bench.engine.ready_since
            up = f" {_clock(time.monotonic() - since)}" if since else ""
            return f"ready{up} · revision {self._bench.engine.revision}"
        return {"new": "not started"}.get(state, state)

    def _refresh(self) -> None:
        """Make what can be pressed fit what is going on; from any thread, twice a second and at every change."""
        with self._looking:
            self._fit()
            before, state = self._was, self._bench.engine.state
            self._was = state
            died = state == "failed" and before == "ready" and not self._bench.playing
        if died and (self._bench.current_run is None or self._bench.current_run.error is None):
            death = self._bench.engine.death()
            if death is not None:
                self._log.tell(death)

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
        if ready and (self.knob_form.disabled or engine.revision != self._revision):
            if self.knob_form.disabled:
                self.start_form.set(self._bench.config.model_dump())
                self.knob_form.bind(engine.envelope, engine.knobs)
                self._length = self._bench.config.max_model_len
                self.load_form.bind(self._length)
            else:
                self.knob_form.show(engine.knobs)
            self._revision = engine.revision
        elif not ready and not self.knob_form.disabled:
            self.knob_form.unbind()
        self.buttons.fit(
            can_start=not starting and not up and self.start_form.problem is None,
            can_stop=(starting or up or engine.state == "failed") and not going("stop"),
            can_load=ready and not going("load") and self.load_form.problem is None,
            can_drop=ready and not starting,
            playing=self._bench.playing,
            has_run=self._bench.current_run is not None,
            saving=going("save"),
        )
        self._log.show(engine.log_tail())


def _section(title: str, hint: str, *parts: widgets.Widget) -> widgets.VBox:
    small = f" <small>{escape(hint)}</small>" if hint else ""
    box = widgets.VBox([widgets.HTML(f"<h3>{escape(title)}{small}</h3>"), *parts])
    box.add_class("wb-section")
    return box


def _all(widget: widgets.Widget) -> Iterator[widgets.Widget]:
    """The widget and all that it holds."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from _all(child)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
