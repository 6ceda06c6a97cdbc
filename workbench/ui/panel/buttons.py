"""The buttons of the panel, and which of them can be pressed when."""

from __future__ import annotations

import ipywidgets as widgets

RUN, STOP = "Run load", "Stop load"


class Buttons:
    """All buttons. What each does is in :mod:`workbench.ui.panel.app`; its tooltip names the method behind it."""

    def __init__(self) -> None:
        self.start = _button("Start engine", "start(): start vLLM with the fields above", "success")
        self.stop = _button("Stop engine", "stop(): end the run and the engine, at any moment")
        self.run = _button(RUN, "run(scenario): play the mix and record it; stop_load() ends it", "primary")
        self.drop = _button("Drop a long prompt now", "drop_long(tokens): one long prompt, at once", "warning")
        self.pause = widgets.ToggleButton(
            description="Pause charts", tooltip="Keep the charts as they are; recording goes on", layout=_layout()
        )
        self.save = _button("Save run", "save_run(): a copy of what is recorded so far, with a report")
        self.compare = _button("Compare with last", "compare(): this run beside the one recorded before it")
        self.code = _button("Copy as code", "code(): the Python lines that do the same")
        self.serve = _button("Copy vllm serve", "serve_command(): the plain vllm command with these knobs")
        self.engine = _row(self.start, self.stop)
        self.load = _row(self.run, self.drop)
        self.hand_over = (self.pause, self.save, self.compare, self.code, self.serve)

    def fit(
        self,
        *,
        can_start: bool,
        can_stop: bool,
        can_load: bool,
        can_drop: bool,
        playing: bool,
        has_run: bool,
        saving: bool,
    ) -> None:
        """Enable what can be pressed now."""
        self.start.disabled = not can_start
        self.stop.disabled = not can_stop
        self.run.description = STOP if playing else RUN
        self.run.disabled = not (can_load or playing)
        self.drop.disabled = not can_drop
        self.save.disabled = not has_run or saving
        self.compare.disabled = not has_run


def _button(text: str, tooltip: str, kind: str = "") -> widgets.Button:
    return widgets.Button(description=text, tooltip=tooltip, button_style=kind, layout=_layout())


def _layout() -> widgets.Layout:
    return widgets.Layout(width="auto")


def _row(*buttons: widgets.Button) -> widgets.HBox:
    row = widgets.HBox(buttons)
    row.add_class("wb-bar")
    return row
