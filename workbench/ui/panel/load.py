"""The load form: what is played, how fast, the long prompt to drop, and the promise that all is held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.config import SLO, EngineConfig
from workbench.errors import InputError
from workbench.i18n import marked, translate
from workbench.ui.panel.controls import Control
from workbench.ui.panel.fields import choice, control, powers_of_two
from workbench.ui.panel.parts import Part, Text
from workbench.workload.arrivals import Trace
from workbench.workload.scenario import Scenario, load_scenario, scenario_names
from workbench.workload.stream import plan

DEFAULT_SCENARIO = "interactive"
OUTPUT_TOKENS = 16  # of a dropped prompt; Workbench.drop_long takes as many
_FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
_SHORTEST, _FIRST = 64, 2048  # tokens of a dropped prompt: the least that shows, and what is offered at first
_RATE_HINT = marked(
    "rate: Requests a second of all streams with a rate together; those with fixed concurrency go at the engine's pace."
)
_LONG_HINT = marked(
    "tokens: Length of the long prompt that is dropped into the running load; its output is {output} tokens. "
    "It is offline work (class 2), which qos and priority let wait behind others."
)
_LONG_CLASS = marked("Dropped as offline work, class 2: qos lets it wait behind the others, stock chunked does not.")
_NO_SCENARIOS = marked(
    "This installation has no named scenarios: install it from its checkout, or play a file with run()."
)


class LoadForm:
    """Controls of what the engine is given to do.

    Attributes:
        parts: what to display in a :class:`~workbench.ui.panel.form.Form`.
        scenario: the workload mix.
        rate: requests a second of all open-loop streams together; none is the scenario's own.
        long_tokens: length of the prompt to drop.
        slo: ``gap_ms`` and ``ttft_ms``.
    """

    def __init__(self, max_model_len: int | None = None) -> None:
        self._max_model_len = max_model_len or EngineConfig().max_model_len
        self._scenario: Scenario | None = None
        self._wrong: str | None = None
        self._problem: str | None = None
        names = scenario_names()
        first = DEFAULT_SCENARIO if DEFAULT_SCENARIO in names else names[0] if names else None
        self.scenario = choice("scenario", "workload mix", "", names or [None], first, text=lambda name: name or "none")
        self.rate = choice("rate", "arrivals (requests/s)", _RATE_HINT, [None], None, slider=True, text=self._rate_text)
        hint = translate(_LONG_HINT, output=OUTPUT_TOKENS)
        self.long_tokens = choice("long_tokens", "long prompt (tokens)", hint, [_FIRST], _FIRST, slider=True)
        self.slo: dict[str, Control] = {name: control(SLO, name) for name in ("gap_ms", "ttft_ms")}
        self._class_of_long = Text("long_class")
        self._class_of_long.text = _LONG_CLASS
        self._question, self._said = Text("question"), Text("load_problem", "alert")
        self._callbacks: list[Callable[[], None]] = []
        self._disabled = False
        self.parts: tuple[Part, ...] = (
            self.scenario,
            self._question,
            self.rate,
            self.long_tokens,
            self._class_of_long,
            *self.slo.values(),
            self._said,
        )
        self.scenario.observe(self._mixed)
        for one in (self.rate, self.long_tokens, *self.slo.values()):
            one.observe(self._tell)
        self._take()
        self.bind(self._max_model_len)

    @property
    def values(self) -> dict[str, Any]:
        """What is chosen.

        Returns:
            ``scenario`` (name), ``rate`` (1/s, none is the scenario's own), ``slo`` (:class:`workbench.config.SLO`), as
            :meth:`workbench.Workbench.run` takes them, and ``long_tokens`` for its ``drop_long``.
        """
        base = self._scenario.slo if self._scenario else SLO()
        return {
            "scenario": self.scenario.value,
            "rate": self.rate.value,
            "slo": base.replace(**{name: one.value for name, one in self.slo.items()}),
            "long_tokens": self.long_tokens.value,
        }

    @property
    def problem(self) -> str | None:
        """Why the mix cannot be played on this engine; none if it can."""
        return self._problem

    def bind(self, max_model_len: int) -> None:
        """Offer what fits into an engine's context. Nobody is told."""
        self._max_model_len = max_model_len
        most = max(1, max_model_len - OUTPUT_TOKENS)
        lengths = powers_of_two(min(_SHORTEST, most), most)
        chosen = self.long_tokens.value
        self.long_tokens.offer(lengths, chosen if chosen in lengths else min(_FIRST, most))
        self._check()

    def observe(self, callback: Callable[[], None]) -> None:
        """Call back after each change that a person makes."""
        self._callbacks.append(callback)

    @property
    def disabled(self) -> bool:
        """Whether nothing can be changed."""
        return self._disabled

    @disabled.setter
    def disabled(self, off: bool) -> None:
        self._disabled = off
        for one in (self.scenario, self.long_tokens, *self.slo.values()):
            one.disabled = off
        self.rate.disabled = off or self._own_rate is None

    @property
    def _own_rate(self) -> float | None:
        return self._scenario.rate if self._scenario else None

    def _mixed(self) -> None:
        self._take()
        self._tell()

    def _take(self) -> None:
        """Show what comes with the chosen mix: its question, its rate, its promise."""
        name, self._wrong = self.scenario.value, None
        try:
            self._scenario = load_scenario(name) if name is not None else None
        except InputError as wrong:  # a scenario's file was damaged
            self._scenario, self._wrong = None, str(wrong)
        question = self._scenario.question if self._scenario else ""
        self.scenario.hint = question
        self._question.text = question
        own = self._own_rate
        rates = [None if factor == 1 else float(f"{own * factor:.3g}") for factor in _FACTORS] if own else [None]
        self.rate.offer(rates, None)
        for field, one in self.slo.items():
            one.show(getattr(self._scenario.slo if self._scenario else SLO(), field))
        self.disabled = self._disabled
        self._check()

    def _check(self) -> None:
        self._problem = self._wrong
        if self._scenario is None and self._problem is None:
            self._problem = _NO_SCENARIOS
        for place, stream in enumerate(self._scenario.streams if self._scenario else ()):
            if isinstance(stream.arrivals, Trace):  # is clipped to what fits, and takes a while to read
                continue
            try:
                plan(stream, place, 0, self._max_model_len)
            except InputError as wrong:
                self._problem = str(wrong)
                break
        self._said.text = self._problem

    def _rate_text(self, rate: float | None) -> str:
        if rate is not None:
            return f"{rate:g}"
        if self._own_rate:
            return translate("{rate:g} (own)", rate=self._own_rate)
        return translate("not open-loop")

    def _tell(self) -> None:
        for callback in self._callbacks:
            callback()
