"""The buttons of the panel, and which of them can be pressed when."""

from __future__ import annotations

from workbench.i18n import marked
from workbench.ui.panel.controls import Control
from workbench.ui.panel.parts import Button, Part, row

RUN, STOP = marked("Run load"), marked("Stop load")
# Of an engine that we start, and of a server that runs already.
_OURS = (
    (marked("Start engine"), marked("start(): start vLLM with the fields above")),
    (marked("Stop engine"), marked("stop(): end the run and the engine, at any moment")),
)
_THEIRS = (
    (marked("Attach"), marked("start(): ask the server what it is; nothing of it is started or changed")),
    (marked("Leave server"), marked("stop(): end the run, and leave the server running as it is")),
)

_UNKNOWN = marked("Nobody here knows what an attached server was started with: look at how it was started.")


class Buttons:
    """All buttons. What each does is in :mod:`workbench.ui.panel.driving`; its tooltip names the method behind it."""

    def __init__(self) -> None:
        self.start = Button("start", *_OURS[0], "success")
        self.stop = Button("stop", *_OURS[1])
        self.run = Button("run", RUN, "run(scenario): play the mix and record it; stop_load() ends it", "primary")
        self.drop = Button(
            "drop", "Drop a long prompt now", "drop_long(tokens): one long offline prompt (class 2), at once", "warning"
        )
        self.pause = Control(
            "toggle", "pause", "Pause charts", "Keep the charts as they are; recording goes on", default=False
        )
        self.save = Button("save", "Save run", "save_run(): a copy of what is recorded so far, with a report")
        self.report = Button("report", "Report", "report(): one HTML page of this run that needs no network")
        self.compare = Button("compare", "Compare with last", "compare(): this run beside the one recorded before it")
        self.code = Button("code", "Copy as code", "code(): the Python lines that do the same")
        self.serve = Button("serve", "Copy vllm serve", "serve_command(): the plain vllm command with these knobs")
        self.sglang = Button("sglang", "Copy SGLang", "serve_command('sglang'): the same by the flags that SGLang has")
        self._commands = {button: button.hint for button in (self.serve, self.sglang)}
        self.engine = row("engine_row", [self.start, self.stop])
        self.load = row("load_row", [self.run, self.drop])
        self.hand_over: tuple[Part, ...] = (
            self.pause,
            self.save,
            self.report,
            self.compare,
            self.code,
            self.serve,
            self.sglang,
        )

    def call(self, *, attached: bool) -> None:
        """Fit them to an engine of ours, or to a server that runs already.

        The first two are named after what they do: nobody shall fear that *Stop* ends a server that is not ours. The
        commands are of what we start ourselves.
        """
        for button, (text, hint) in zip((self.start, self.stop), _THEIRS if attached else _OURS, strict=True):
            button.change(text=text, hint=hint)
        for button, hint in self._commands.items():
            button.change(off=attached, hint=_UNKNOWN if attached else hint)

    def fit(
        self,
        *,
        can_start: bool,
        can_stop: bool,
        can_load: bool,
        can_drop: bool,
        playing: bool,
        held: bool,
        has_run: bool,
        saving: bool,
    ) -> None:
        """Enable what can be pressed now; what holds the engine, such as a study, is stopped where it was begun."""
        self.start.disabled = not can_start
        self.stop.disabled = not can_stop
        self.run.text = STOP if playing else RUN
        self.run.disabled = held or not (can_load or playing)
        self.drop.disabled = not can_drop
        self.save.disabled = self.report.disabled = not has_run or saving
        self.compare.disabled = not has_run
