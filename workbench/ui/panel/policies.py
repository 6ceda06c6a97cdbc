"""Compare policies: one mix under each of those chosen, then their charts and figures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from workbench.config import POLICIES, SLO
from workbench.errors import InputError
from workbench.trace import Trace
from workbench.ui.charts import policy_chart, policy_table
from workbench.ui.panel.controls import Control
from workbench.ui.panel.fields import choice
from workbench.ui.panel.parts import Button, Drawer, Pane, Part, Text, row
from workbench.ui.static import PAGE_LOOK, show
from workbench.workload.arrivals import Trace as TraceFile
from workbench.workload.scenario import Scenario, load_scenario, scenario_names
from workbench.workload.stream import plan

COMPARE, STOP = "Compare policies", "Stop comparing"
_FIRST = "policies"  # the mix that is made for it
_PREFILL_PER_S, _OUTPUT_PER_S = 400.0, 90.0  # SmolLM2 on one CPU core, measured; only to tell people what they wait for
_POINTS = 1500  # most rows of all its charts
_NOTE = "One seeded run each: a difference holds the machine's noise as well."


class PolicyForm:
    """What to compare, how long that takes, and what came of it.

    Attributes:
        drawer: to be put into a form.
        scenario: the mix.
        policies: by name, whether to play it.
        button: begins, and ends what it began.
    """

    def __init__(self) -> None:
        names = scenario_names()
        first = _FIRST if _FIRST in names else names[0] if names else None
        self.scenario = choice(
            "policy_mix", "workload mix", "The same seeded requests for every policy.", names or [None], first,
            text=lambda name: name or "none",
        )  # fmt: skip
        self.policies = {
            name: Control("check", f"policy_{name}", name, f"Play the mix under {name}.", default=True)
            for name in POLICIES
        }
        self.button = Button("compare_policies", COMPARE, "compare_policies(scenario): the mix under each, one by one")
        self._expect, self._progress, self._wrong = Text("policy_time"), Text("policy_now"), Text("policy_bad", "alert")
        self._result = Pane("policy_result")
        self._known = threading.Lock()
        self._lengths: dict[str, float] = {}  # of plays on this engine, s
        parts: list[Part] = [self.scenario, row("policy_row", list(self.policies.values())), self._expect]
        parts += [row("policy_go", [self.button]), self._wrong, self._progress, self._result]
        self.drawer = Drawer("policy_drawer", COMPARE, parts, "The same load under several policies, side by side")
        for one in (self.scenario, *self.policies.values()):
            one.observe(self.look)
        self.look()

    @property
    def chosen(self) -> list[str]:
        """The policies to play, in their order."""
        return [name for name, one in self.policies.items() if one.value]

    @property
    def problem(self) -> str | None:
        """Why it cannot begin as chosen; none if it can."""
        return None if len(self.chosen) > 1 else "Choose at least two policies to compare."

    def observe(self, callback: Callable[[], None]) -> None:
        """Call back after each change that a person makes."""
        for one in (self.scenario, *self.policies.values()):
            one.observe(callback)

    def look(self) -> None:
        """Say what it would take."""
        self._wrong.text = self.problem
        chosen, name = self.chosen, self.scenario.value
        if self.problem or name is None:
            self._expect.text = ""
            return
        with self._known:
            measured = self._lengths.get(name)
        each = measured if measured is not None else expected_s(load_scenario(name))
        source = "as the last one took here" if measured is not None else "estimate for a small model on one CPU core"
        if each is None:
            self._expect.text = f"{len(chosen)} runs, one after the other; the load stops what plays before."
        else:
            self._expect.text = (
                f"{len(chosen)} runs of about {each:,.0f} s, {_minutes(each * len(chosen))} in all ({source}). "
                "The knobs are set back afterwards."
            )

    def fit(self, *, can: bool, going: bool) -> None:
        """Enable what can be pressed now."""
        self.button.text = STOP if going else COMPARE
        self.button.disabled = not going and (not can or self.problem is not None)
        for one in (self.scenario, *self.policies.values()):
            one.disabled = going

    def run(self, compare: Callable[..., Any], stopped: Callable[[], bool]) -> None:
        """Compare, telling how far it is; takes minutes, so in a thread.

        Args:
            compare: :meth:`workbench.Workbench.compare_policies`.
            stopped: whether a person ended it.
        """
        name, chosen, began = self.scenario.value, self.chosen, time.monotonic()
        slo = load_scenario(name).slo
        self._progress.text = f"Playing {name} under {len(chosen)} policies …"

        def follow(*what: Any) -> None:
            gone = time.monotonic() - began
            self._progress.text = f"{_minutes(gone)} so far: {_told(what, chosen)}"

        try:
            runs = compare(name, chosen, follow=follow)
            self._progress.text = "Drawing …"
            with self._known:
                self._lengths[name] = (time.monotonic() - began) / max(len(chosen), 1)
            self._result.markup = pictured(_by_policy(runs, chosen), slo)
        finally:
            self._progress.text = "Stopped." if stopped() else ""
            self.look()


def expected_s(scenario: Scenario) -> float | None:
    """About how long a play takes on a CPU, s; none where that is not known before it is played."""
    arrival = prompts = outputs = 0.0
    for place, stream in enumerate(scenario.streams):
        if isinstance(stream.arrivals, TraceFile):
            return None
        try:
            planned, _ = plan(stream, place, scenario.seed, scenario.engine_config.max_model_len)
        except InputError:
            return None
        arrival = max([arrival, *(one.arrival_s for one in planned)])
        prompts += sum(one.prompt_tokens for one in planned)
        outputs += sum(one.output_tokens for one in planned)
    return max(arrival, prompts / _PREFILL_PER_S + outputs / _OUTPUT_PER_S)


def pictured(runs: Mapping[str, Trace], slo: SLO) -> str:
    """Chart and table as markup."""
    chart = policy_chart(runs, slo, replace(PAGE_LOOK, width=900, height=110, limit=_POINTS))
    table = policy_table(runs, slo).dropna(axis=1, how="all")
    shown = table.to_html(float_format=lambda value: f"{value:,.2f}", na_rep="n/a", border=0)
    return f'{show(chart)._repr_html_()}<div class="wb-table">{shown}</div><p>{escape(_NOTE)}</p>'


def _by_policy(runs: Any, chosen: Sequence[str]) -> dict[str, Trace]:
    """Policy → trace, of runs in the order of the policies."""
    names = [run.meta.get("setting") or policy for run, policy in zip(runs, chosen, strict=False)]
    return {str(name): run.trace for name, run in zip(names, runs, strict=False)}


def _told(what: Sequence[Any], chosen: Sequence[str]) -> str:
    """Progress in words, from whatever is told."""
    words = [str(getattr(one, "meta", {}).get("setting") or one) if hasattr(one, "meta") else str(one) for one in what]
    return " · ".join(words) or f"one of {len(chosen)}"


def _minutes(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 90 else f"{seconds / 60:,.1f} min"
