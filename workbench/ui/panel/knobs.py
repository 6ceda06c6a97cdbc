"""The hot knobs: sliders and lists that end where the running engine's envelope does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from workbench.config import EngineConfig, Envelope, Knobs, parse
from workbench.errors import EnvelopeError, InputError
from workbench.i18n import marked, translate
from workbench.ui.panel.controls import Choice, Control
from workbench.ui.panel.fields import control, powers_of_two
from workbench.ui.panel.parts import Button, Drawer, Part, Text, row

_SMALLEST = 16  # below it a step is all overhead
_EVERY = (0, 2, 4, 8, 16, 32, 64)  # 1 would let prefill in on every step, which is chunked
_TARGETS_MS = (25.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0, 750.0, 1000.0, 2000.0)
_AGING_S = (0.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_WATERMARKS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
_ONLY_OF: Mapping[str, str] = {"prefill_every": "decode_first", "target_gap_ms": "target_gap", "aging_s": "qos"}
_MEMORY = ("watermark", "reserve_full", "prefix_cache")
_UNCACHED = marked("The engine was started without prefix caching: there is no cache to look up or to empty.")


class KnobForm:
    """Controls of :class:`workbench.config.Knobs`.

    A drag is sent once, when it is let go, and a key press at once: each change is a revision on every chart, so the
    values passed on the way are none.

    Attributes:
        parts: what to display in a :class:`~workbench.ui.panel.form.Form`.
        controls: by the field's name.
        empty: the button that empties the prefix cache.
    """

    def __init__(self) -> None:
        bounds = EngineConfig().envelope  # only for a form without an engine to have something to show
        self.controls: dict[str, Control] = {
            "budget": control(Knobs, "budget", options=_budgets(bounds), slider=True, default=bounds.max_budget),
            "chunk": control(Knobs, "chunk", options=_chunks(bounds), slider=True, text=_or_word(marked("off"))),
            "max_running": control(
                Knobs, "max_running", options=_running(bounds), slider=True, default=bounds.max_running
            ),
            "policy": control(Knobs, "policy"),
            "prefill_every": control(
                Knobs, "prefill_every", options=_EVERY, slider=True, text=_or_word(marked("never"))
            ),
            "target_gap_ms": control(Knobs, "target_gap_ms", options=_TARGETS_MS, slider=True, text=_or_word("")),
            "aging_s": control(Knobs, "aging_s", options=_AGING_S, slider=True, text=_or_word(marked("never"))),
            "watermark": control(Knobs, "watermark", options=_WATERMARKS, slider=True, text=_share),
            "reserve_full": control(Knobs, "reserve_full"),
            "prefix_cache": control(Knobs, "prefix_cache"),
        }
        self.empty = Button(
            "empty", "Empty prefix cache", "reset_prefix_cache(): forget all cached prompts, without a restart"
        )
        self._said, self._uncached, self._beside = Text("knob_problem", "alert"), Text("uncached"), Text("step_memory")
        self._note: Callable[[int], str] = lambda _budget: ""
        self._callbacks: list[Callable[[dict[str, Any]], None]] = []
        self._envelope: Envelope | None = None
        self._in_force: Knobs | None = None
        self._problem: str | None = None
        self._caches, self._locked = False, ""
        memory = [*(self.controls[name] for name in _MEMORY), row("cache", [self.empty]), self._uncached]
        self.parts: tuple[Part, ...] = (
            self.controls["budget"],
            self._beside,
            *(one for name, one in self.controls.items() if name not in ("budget", *_MEMORY)),
            Drawer("memory", "KV memory", memory, "How the KV blocks are given out, and the prefix cache"),
            self._said,
        )
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

    def bind(
        self, envelope: Envelope, knobs: Knobs, *, caches: bool = True, note: Callable[[int], str] | None = None
    ) -> None:
        """Offer what a running engine allows, and show what it has. Nobody is told.

        Args:
            envelope: of the engine.
            knobs: that are in force.
            caches: whether it was started with a prefix cache.
            note: gives the line beside the budget: what a step of that size needs.
        """
        ranges: dict[str, Iterable[Any]] = {
            "budget": _budgets(envelope),
            "chunk": _chunks(envelope),
            "max_running": _running(envelope),
            "policy": envelope.policies,
            "prefill_every": _EVERY,
            "target_gap_ms": _TARGETS_MS,
            "aging_s": _AGING_S,
            "watermark": _WATERMARKS,
        }
        with self._said.together():
            self._envelope, self._caches = envelope, caches
            self._note = note or (lambda _budget: "")
            for name, options in ranges.items():
                one = self.controls[name]
                if isinstance(one, Choice):
                    one.offer(options, getattr(knobs, name))
            self._enable()
            self.show(knobs)

    def unbind(self) -> None:
        """Show that there is no engine."""
        with self._said.together():
            self._envelope = None
            self._blank("")
            self._enable()
            self._say(None)
            self.remind()
            self._hide_what_does_nothing()

    def explain(self, why: str) -> None:
        """Show that the engine has no hot knobs, and why."""
        with self._said.together():
            self.unbind()
            self._blank(translate("n/a"))  # not ours to know
            self._say(why)

    def lock(self, why: str) -> None:
        """Let nothing be turned, and show why; an empty text unlocks."""
        if why != self._locked:
            with self._said.together():
                self._locked = why
                self._enable()
                self._say(self._problem)

    def show(self, knobs: Knobs) -> None:
        """Show what is in force, such as a change from a cell. Nobody is told."""
        with self._said.together():
            self._in_force = knobs
            for name, one in self.controls.items():
                one.show(getattr(knobs, name))
            self._say(None)
            self.remind()
            self._hide_what_does_nothing()

    def on_change(self, callback: Callable[[dict[str, Any]], None]) -> None:
        """Call back with the fields that a person changed, for :meth:`workbench.Workbench.knobs`.

        Only what fits the envelope is handed on. What was held back since it clashed goes with the change that mends
        it. A receiver that fails to set them calls :meth:`show` with what is in force.
        """
        self._callbacks.append(callback)

    def remind(self) -> None:
        """Say anew what a step of the budget that is shown needs."""
        self._beside.text = "" if self.disabled else self._note(self.controls["budget"].value)

    def _changed(self) -> None:
        self._hide_what_does_nothing()
        self.remind()
        if self._envelope is None or self._in_force is None:
            return
        try:
            wanted = parse(Knobs, {name: one.value for name, one in self.controls.items()}, error=EnvelopeError)
            self._envelope.check(wanted)
        except InputError as clash:
            self._say(translate("Not sent. {clash}", clash=clash))
            return
        self._say(None)
        before = self._in_force.model_dump()
        changes = {name: value for name, value in wanted.model_dump().items() if value != before[name]}
        self._in_force = wanted
        if changes:
            for callback in self._callbacks:
                callback(changes)

    def _enable(self) -> None:
        stuck = self.disabled or bool(self._locked)
        for one in self.controls.values():
            one.disabled = stuck
        without = stuck or not self._caches
        self.controls["prefix_cache"].disabled = self.empty.disabled = without
        self._uncached.text = _UNCACHED if not self.disabled and not self._caches else ""

    def _say(self, problem: str | None) -> None:
        self._problem = problem
        self._said.text = problem or self._locked or None

    def _blank(self, text: str) -> None:
        for one in self.controls.values():
            if isinstance(one, Choice):
                one.blank(text)

    def _hide_what_does_nothing(self) -> None:
        policy = self.controls["policy"].value
        with self._said.together():
            for name, only in _ONLY_OF.items():
                self.controls[name].hidden = policy != only


def _budgets(envelope: Envelope) -> list[int]:
    return powers_of_two(min(_SMALLEST, envelope.max_budget), envelope.max_budget)


def _chunks(envelope: Envelope) -> list[int]:
    return [0, *powers_of_two(min(_SMALLEST, envelope.max_chunk), envelope.max_chunk)]


def _running(envelope: Envelope) -> list[int]:
    return powers_of_two(1, envelope.max_running)


def _or_word(word: str) -> Callable[[Any], str]:
    """How a number reads of which 0 means something else."""
    return lambda value: (
        f"{value:,.6g}" if isinstance(value, float) and value else f"{value:,}" if value else translate(word)
    )


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"
