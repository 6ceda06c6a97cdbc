"""The planner's form: what is asked, and what was found, as parts; nothing here is a widget."""

from __future__ import annotations

import time
from dataclasses import replace
from html import escape
from typing import Any

from workbench.config import POLICIES, SLO
from workbench.i18n import marked, translate
from workbench.models.architecture import known_models
from workbench.planning import Asked, Plan, Planner, Progress, traffic_names
from workbench.planning.asked import BUDGETS, CHUNKS
from workbench.planning.mixes import traffic
from workbench.simulate.presets import devices
from workbench.simulated_config import SimulatedConfig
from workbench.ui.charts.localise import headed
from workbench.ui.charts.plan import capacity_chart, plan_chart, plan_table
from workbench.ui.panel.controls import Control, Entry
from workbench.ui.panel.fields import choice, suggesting
from workbench.ui.panel.parts import Button, Pane, Part, Text, row, section
from workbench.ui.static import PAGE_LOOK, show

START, STOP = marked("Plan"), marked("Stop")
_WIDTH = 760  # px of the charts
_COUNTS = (1, 2, 4, 8, 16)
_NONE = marked("not given")


class PlanForm:
    """Fields, a button, progress, and charts, table and command of what was found.

    Attributes:
        parts: to be put into a form.
        button: begins, and ends what it began.
        fields: the controls, by what they ask for.
    """

    def __init__(self) -> None:
        names = traffic_names()
        self.fields: dict[str, Control] = {
            "gpu": choice("gpu", "GPU", "Kind of GPU.", devices(), devices()[0]),
            "count": choice("count", "GPUs", "How many; each has a share of every layer.", _COUNTS, 8),
            "model": suggesting(SimulatedConfig, "model", known_models()),
            "traffic": choice("traffic", "traffic", "A made-up mix, or a scenario with a rate.", names, names[0]),
            "ttft_ms": _slo("ttft_ms", marked("TTFT SLO (ms)")),
            "gap_ms": _slo("gap_ms", marked("gap SLO (ms)")),
            "budgets": _numbers("budgets", "budgets (tokens)", "Token budgets to look at.", BUDGETS),
            "chunks": _numbers("chunks", "chunk caps (tokens)", "Chunk caps to look at; 0 is off.", CHUNKS),
            "price": _amount("price", "price (per GPU and hour)", "Adds the cost of a million tokens."),
            "need": _amount("need", "needed (requests/s)", "Adds how many such engines are needed."),
        }
        self.policies = {
            name: Control(
                "check",
                f"plan_{name}",
                name,
                translate("Compare {name} at the best setting.", name=name),
                default=False,
            )
            for name in POLICIES
        }
        self.button = Button("plan", START, "plan(...): play the traffic at many rates on the simulator", "primary")
        self._progress, self._wrong = Text("plan_now"), Text("plan_bad", "alert")
        self._result, self._command = Pane("plan_result"), Pane("plan_command")
        self._copy = Part(
            "copier", "plan_copy", text="Copy vllm serve", copies="", hint=marked("The best setting's command")
        )
        self._copy.hidden = True
        self._planner: Planner | None = None
        self.plan: Plan | None = None
        fields = list(self.fields.values())
        self.parts: tuple[Part, ...] = (
            section("plan_what", "Planner", "hardware that you lack, simulated", fields),
            row("plan_policies", list(self.policies.values())),
            row("plan_row", [self.button]),
            self._progress,
            self._wrong,
            self._result,
            self._command,
            row("plan_hand", [self._copy]),
        )
        self.fields["traffic"].observe(self._show_slo)
        self._show_slo()

    @property
    def asked(self) -> Asked:
        """The question as it stands.

        Raises:
            InputError: something is wrong or does not fit together.
        """
        value: dict[str, Any] = {name: field.value for name, field in self.fields.items()}
        policies = [name for name, one in self.policies.items() if one.value]
        return Asked.of(value.pop("traffic"), policies=policies, **value)

    def fit(self, *, going: bool) -> None:
        """Enable what can be pressed now."""
        self.button.text = STOP if going else START
        for one in (*self.fields.values(), *self.policies.values()):
            one.disabled = going

    def run(self) -> None:
        """Plan, telling how far it is; takes a minute, so in a thread. What there is is shown in any case.

        Raises:
            InputError: the question cannot be answered.
            EngineError: the simulator failed.
        """
        self._wrong.text = ""
        begun = time.monotonic()
        planner = Planner(self.asked, lambda now: self._tell(now, time.monotonic() - begun))
        self._planner, self.plan = planner, planner.plan
        try:
            planner.run()
        finally:
            self._planner = None
            if planner.plan.cells:
                self._progress.text = translate("Drawing …")
                self._show(planner.plan)
            seconds = time.monotonic() - begun
            took = translate("{plays} plays in {seconds:,.0f} s", plays=planner.plan.plays, seconds=seconds)
            if planner.plan.stopped:
                took = translate("Stopped after {took}: what there was is shown.", took=took)
            self._progress.text = took

    def stop(self) -> None:
        """End what goes on, soon."""
        planner = self._planner
        if planner is not None:
            planner.stop()

    def tell(self, words: str) -> None:
        """Show what went wrong."""
        self._progress.text, self._wrong.text = "", words

    def _tell(self, now: Progress, seconds: float) -> None:
        left = ""
        if now.plays > 1:
            more = max(now.expected - now.plays, 0) * seconds / now.plays
            left = translate(", about {seconds:,.0f} s left", seconds=more)
        self._progress.text = translate(
            "{plays} of about {expected} plays, {seconds:,.0f} s{left}: {what}",
            plays=now.plays,
            expected=now.expected,
            seconds=seconds,
            left=left,
            what=translate(now.what),
        )

    def _show(self, plan: Plan) -> None:
        self._result.markup = pictured(plan)
        command = plan.best.command if plan.best is not None else ""
        self._command.markup = f"<pre>{escape(command)}</pre>" if command else ""
        self._copy.change(copies=command, hidden=not command)

    def _show_slo(self) -> None:
        slo = traffic(self.fields["traffic"].value).slo
        self.fields["ttft_ms"].show(slo.ttft_ms)
        self.fields["gap_ms"].show(slo.gap_ms)


def pictured(plan: Plan) -> str:
    """Charts, table and notes of a plan, as markup."""
    charts = [plan_chart(plan, replace(PAGE_LOOK, width=_WIDTH, height=70 * len(plan.asked.chunks)))]
    if plan.policies:
        charts.append(capacity_chart(plan, replace(PAGE_LOOK, width=_WIDTH, height=34 * max(len(plan.policies), 2))))
    table = plan_table(plan)
    if "limited by" in table:  # a column of text does not know what its words were made of
        table["limited by"] = [translate(row.limit) for row in (*plan.cells, *plan.policies)]
    markup = headed(table).to_html(float_format=lambda value: f"{value:,.3g}", na_rep="n/a", border=0, index=False)
    notes = [
        translate("Capacity: {rule}.", rule=plan.asked.rule.words),
        translate(plan.why_nothing),
        translate(plan.load.concerns),
    ]
    notes += [translate("{name} was not played: {why}", name=name, why=why) for name, why in plan.refused.items()]
    notes += sorted(
        {
            translate("budget {budget:,} is not possible: {why}", budget=row.budget, why=translate(row.refused))
            for row in plan.cells
            if row.refused
        }
    )
    told = "".join(f"<p>{escape(note)}</p>" for note in notes if note)
    return "".join(show(chart)._repr_html_() for chart in charts) + f'<div class="wb-table">{markup}</div>{told}'


def _slo(name: str, label: str) -> Control:
    field = SLO.model_fields[name]
    return Control("number", name, label, str(field.description), field.default, min=0.001, max=1e7)


def _numbers(name: str, label: str, hint: str, default: tuple[int, ...]) -> Control:
    return _Listed(name, label, translate(hint) + translate(" With commas between."), default, _read_numbers)


def _amount(name: str, label: str, hint: str) -> Control:
    return Entry(name, label, hint, None, _read_amount, placeholder=_NONE)


class _Listed(Entry):
    """Numbers with commas between."""

    def _written(self, value: Any) -> Any:
        return ", ".join(map(str, value)) if isinstance(value, tuple) else super()._written(value)


def _read_numbers(text: str) -> Any:
    try:
        return tuple(int(word) for word in text.split(",") if word.strip())
    except ValueError:
        return (text,)  # refused by name


def _read_amount(text: str) -> Any:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text
