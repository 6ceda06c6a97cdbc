"""The hot knobs: sliders and lists that end where the running engine's envelope does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from workbench.config import EngineConfig, Envelope, Knobs, parse
from workbench.errors import EnvelopeError, InputError
from workbench.ui.panel.aria import form
from workbench.ui.panel.controls import Choice, Control
from workbench.ui.panel.fields import alert, control, message, powers_of_two

_SMALLEST = 16  # below it a step is all overhead
_EVERY = (0, 2, 4, 8, 16, 32, 64)  # 1 would let prefill in on every step, which is chunked


class KnobForm:
    """Controls of :class:`workbench.config.Knobs`.

    A drag is sent once, when it is let go, and a key press at once: each change is a revision on every chart, so the
    values passed on the way are none.

    Attributes:
        widget: what to display.
        controls: by the field's name.
    """

    def __init__(self) -> None:
        bounds = EngineConfig().envelope  # only for a form without an engine to have something to show
        self.controls: dict[str, Control] = {
            "budget": control(Knobs, "budget", options=_budgets(bounds), slider=True, default=bounds.max_budget),
            "chunk": control(Knobs, "chunk", options=_chunks(bounds), slider=True, text=_or_word("off")),
            "max_running": control(
                Knobs, "max_running", options=_running(bounds), slider=True, default=bounds.max_running
            ),
            "policy": control(Knobs, "policy"),
            "prefill_every": control(Knobs, "prefill_every", options=_EVERY, slider=True, text=_or_word("never")),
        }
        self._said = message()
        self._callbacks: list[Callable[[dict[str, Any]], None]] = []
        self._envelope: Envelope | None = None
        self._in_force: Knobs | None = None
        self._problem: str | None = None
        self.widget = form([*(one.widget for one in self.controls.values()), self._said])
        for one in self.controls.values():
            one.observe(self._changed)
        self.unbind()

    @property
    def problem(self) -> str | None:
        """Why what is shown was not sent; none if it was."""
        return self._problem

    @property
    def disabled(self) -> bool:
        """Whether nothing can be changed, for want of an engine."""
        return self._envelope is None

    def bind(self, envelope: Envelope, knobs: Knobs) -> None:
        """Offer what a running engine allows, and show what it has. Nobody is told."""
        self._envelope = envelope
        ranges: dict[str, Iterable[Any]] = {
            "budget": _budgets(envelope),
            "chunk": _chunks(envelope),
            "max_running": _running(envelope),
            "policy": envelope.policies,
            "prefill_every": _EVERY,
        }
        for name, options in ranges.items():
            one = self.controls[name]
            if isinstance(one, Choice):
                one.offer(options, getattr(knobs, name))
            one.disabled = False
        self.show(knobs)

    def unbind(self) -> None:
        """There is no engine: nothing can be changed."""
        self._envelope = self._in_force = None
        self._say(None)
        for one in self.controls.values():
            one.disabled = True
        self._hide_what_does_nothing()

    def show(self, knobs: Knobs) -> None:
        """Show what is in force, such as a change from a cell. Nobody is told."""
        self._in_force = knobs
        for name, one in self.controls.items():
            one.show(getattr(knobs, name))
        self._say(None)
        self._hide_what_does_nothing()

    def on_change(self, callback: Callable[[dict[str, Any]], None]) -> None:
        """Call back with the fields that a person changed, for :meth:`workbench.Workbench.knobs`.

        Only what fits the envelope is handed on. What was held back since it clashed goes with the change that mends
        it. A receiver that fails to set them calls :meth:`show` with what is in force.
        """
        self._callbacks.append(callback)

    def _changed(self) -> None:
        self._hide_what_does_nothing()
        if self._envelope is None or self._in_force is None:
            return
        try:
            wanted = parse(Knobs, {name: one.value for name, one in self.controls.items()}, error=EnvelopeError)
            self._envelope.check(wanted)
        except InputError as clash:
            self._say(f"Not sent. {clash}")
            return
        self._say(None)
        before = self._in_force.model_dump()
        changes = {name: value for name, value in wanted.model_dump().items() if value != before[name]}
        self._in_force = wanted
        if changes:
            for callback in self._callbacks:
                callback(changes)

    def _say(self, problem: str | None) -> None:
        self._problem = problem
        self._said.value = alert(problem)

    def _hide_what_does_nothing(self) -> None:
        used = self.controls["policy"].value == "decode_first"
        self.controls["prefill_every"].widget.layout.display = None if used else "none"


def _budgets(envelope: Envelope) -> list[int]:
    return powers_of_two(min(_SMALLEST, envelope.max_budget), envelope.max_budget)


def _chunks(envelope: Envelope) -> list[int]:
    return [0, *powers_of_two(min(_SMALLEST, envelope.max_chunk), envelope.max_chunk)]


def _running(envelope: Envelope) -> list[int]:
    return powers_of_two(1, envelope.max_running)


def _or_word(word: str) -> Callable[[Any], str]:
    """How a number reads of which 0 means something else."""
    return lambda value: f"{value:,}" if value else word
