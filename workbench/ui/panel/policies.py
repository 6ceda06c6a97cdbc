"""Compare policies: one mix under each of those chosen, then their charts and figures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape

from workbench.config import POLICIES, SLO
from workbench.errors import EnvelopeError, InputError
from workbench.i18n import counted, marked, translate
from workbench.policy_runs import choose
from workbench.run import Run
from workbench.session import Workbench
from workbench.trace import Trace
from workbench.ui.charts import policy_chart, policy_table
from workbench.ui.panel.controls import Control
from workbench.ui.panel.fields import choice
from workbench.ui.panel.parts import Button, Drawer, Pane, Part, Text, row
from workbench.ui.static import PAGE_LOOK, show
from workbench.workload.arrivals import Trace as TraceFile
from workbench.workload.scenario import Scenario, Setting, load_scenario, scenario_names
from workbench.workload.stream import plan

COMPARE, STOP = marked("Compare policies"), marked("Stop comparing")
_FIRST = "policies"  # the mix that is made for it
_PREFILL_PER_S, _OUTPUT_PER_S = 400.0, 90.0  # SmolLM2 on one CPU core, measured; only to tell people what they wait for
_POINTS = 1500  # most rows of all its charts
_WIDTH = 860  # px of the chart
_LOOK_S = 0.5
_NOTE = marked("One seeded run each: a difference holds the machine's noise as well.")
_VIRTUAL = marked("One seeded run each, in virtual time: the same seed makes the same run.")


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
            name: Control(
                "check", f"policy_{name}", name, translate("Play the mix under {name}.", name=name), default=True
            )
            for name in POLICIES
        }
        self.button = Button("compare_policies", COMPARE, "compare_policies(scenario): the mix under each, one by one")
        self._expect, self._progress, self._wrong = Text("policy_time"), Text("policy_now"), Text("policy_bad", "alert")
        self._result = Pane("policy_result")
        self._known = threading.Lock()
        self._lengths: dict[str, float] = {}  # of plays on this engine, s
        self._simulated = False
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
        return None if len(self.chosen) > 1 else marked("Choose at least two policies to compare.")

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
        runs = counted("{n} run", "{n} runs", len(chosen))
        if self._simulated:
            self._expect.text = translate(
                "{runs}, simulated, in virtual time. The knobs are set back afterwards.", runs=runs
            )
            return
        with self._known:
            measured = self._lengths.get(name)
        each = measured if measured is not None else expected_s(load_scenario(name))
        source = marked("estimate for a small model on one CPU core")
        if measured is not None:
            source = marked("as the last one took here")
        if each is None:
            self._expect.text = translate("{runs}, one after the other; the load stops what plays before.", runs=runs)
        else:
            self._expect.text = translate(
                "{runs} of about {each:,.0f} s, {all} in all ({source}). The knobs are set back afterwards.",
                runs=runs,
                each=each,
                all=_minutes(each * len(chosen)),
                source=translate(source),
            )

    def fit(self, *, can: bool, going: bool, simulated: bool = False) -> None:
        """Enable what can be pressed now, and say what it would take on a simulated engine or a live one."""
        if simulated != self._simulated:
            self._simulated = simulated
            self.look()
        self.button.text = STOP if going else COMPARE
        self.button.disabled = not going and (not can or self.problem is not None)
        for one in (self.scenario, *self.policies.values()):
            one.disabled = going

    def run(self, bench: Workbench, stopped: Callable[[], bool]) -> None:
        """Compare, telling how far it is; takes minutes, so in a thread.

        Args:
            bench: its engine is ready.
            stopped: whether a person ended it.
        """
        scenario = load_scenario(self.scenario.value)
        settings, refused = _settings(scenario, self.chosen, bench)
        took: list[float] = []

        def follow(setting: Setting, run: Run) -> None:
            while not run.done:
                left = _left(took, run.elapsed_s, len(settings))
                self._progress.text = translate(
                    "{setting} ({number} of {all}), {seconds:,.0f} s{left}",
                    setting=setting.name,
                    number=len(took) + 1,
                    all=len(settings),
                    seconds=run.elapsed_s,
                    left=left,
                )
                time.sleep(_LOOK_S)
            took.append(run.elapsed_s)

        try:
            runs = bench.compare_policies(scenario, settings=settings, follow=follow)
            with self._known:
                if not stopped():
                    self._lengths[scenario.name] = sum(took) / max(len(took), 1)
            if len(runs):
                self._progress.text = translate("Drawing …")
                self._result.markup = pictured(runs.traces, runs.slo, refused | runs.refused)
        finally:
            self._progress.text = translate("Stopped: what had ended is shown.") if stopped() else ""
            self.look()


def _settings(scenario: Scenario, names: Sequence[str], bench: Workbench) -> tuple[list[Setting], dict[str, str]]:
    """What to play, and why a policy cannot be played on this engine."""
    settings: list[Setting] = []
    refused: dict[str, str] = {}
    for name in names:
        try:
            settings += choose(scenario, [name], bench.engine.envelope)
        except EnvelopeError as why:
            refused[name] = str(why)
    if not settings:
        raise EnvelopeError("policies", ", ".join(names), "one that fits this engine", "; ".join(refused.values()))
    return settings, refused


def _left(took: Sequence[float], gone_s: float, runs: int) -> str:
    """About how long it goes on; unknown during the first run."""
    if not took:
        return ""
    each = sum(took) / len(took)
    left = max(each - gone_s, 0.0) + each * (runs - len(took) - 1)
    return translate(", about {time} left", time=_minutes(left))


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


def pictured(runs: Mapping[str, Trace], slo: SLO, refused: Mapping[str, str]) -> str:
    """Chart, table and what was not played, as markup."""
    chart = policy_chart(runs, slo, replace(PAGE_LOOK, width=_WIDTH, height=110, limit=_POINTS))
    table = policy_table(runs, slo).dropna(axis=1, how="all")
    shown = table.to_html(float_format=lambda value: f"{value:,.2f}", na_rep="n/a", border=0)
    label = next(iter(runs.values())).meta.get("label") if runs else None
    notes = [
        translate(_VIRTUAL if label == "simulated" else _NOTE),
        *(translate("{name} was not played: {why}", name=name, why=why) for name, why in refused.items()),
    ]
    told = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f'{show(chart)._repr_html_()}<div class="wb-table">{shown}</div>{told}'


def _minutes(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 90 else translate("{minutes:,.1f} min", minutes=seconds / 60)
