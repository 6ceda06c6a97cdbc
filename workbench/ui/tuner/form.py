"""The tuner's form: what is asked, how far it is, and what was found, as parts; nothing here is a widget."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.config import EngineConfig
from workbench.errors import EngineError
from workbench.i18n import counted, marked, translate
from workbench.run import Run
from workbench.session import Workbench
from workbench.store.folder import default_root
from workbench.tune.question import Question
from workbench.tune.search.tuning import Allowance
from workbench.tune.trial import Asked
from workbench.tune.tune import Now, Tune
from workbench.ui.panel.parts import Button, Drawer, Pane, Part, Text, row, section
from workbench.ui.tuner import drawn
from workbench.ui.tuner.fields import tuner_fields
from workbench.workload.scenario import load_scenario

START, STOP = marked("Start tuning"), marked("Stop and keep")
_SAY_S = 0.5  # between two words of an engine that starts
_STAGES = {
    "engine": marked("starting the engine"),
    "simulation": marked("simulating, to know where to begin"),
    "search": marked("trials"),
    "beyond": marked("looking at what lies beyond a limit"),
    "confirmation": marked("confirming on fresh seeds"),
    "over": "",
}


class TuneForm:
    """Fields, a button, progress, and charts, answer and commands.

    Attributes:
        parts: to be put into a form.
        button: begins, and ends what it began; what was played is kept.
        fields: the controls, by what they ask for.
        tune: the study that goes on or went on last.

    Args:
        bench: whose engine plays, as it is configured; it is started where it does not run, and never ended. Without
            one each study has the engine that its scenario asks for.
        start_up: start-up fields of such an engine, before the scenario's.
        runs: folder of the runs.
    """

    def __init__(
        self, bench: Workbench | None = None, start_up: Mapping[str, Any] | None = None, runs: Path | None = None
    ) -> None:
        self._bench, self._start_up, self._runs = bench, dict(start_up or {}), runs
        self.fields = tuner_fields()
        self.button = Button("tune", START, "tune(question): search, then confirm the pick on fresh seeds", "primary")
        self._progress, self._wrong = Text("tune_now"), Text("tune_bad", "alert")
        self._map, self._trial, self._answer = Pane("tune_map"), Pane("tune_trial"), Pane("tune_answer")
        self._last = Drawer("tune_last", "Last trial", [self._trial], "Gaps and steps of the trial that ended last")
        self._copy = Part("copier", "tune_copy", text="Copy vllm serve", copies="", hint=marked("The answer's command"))
        self.report = Button("tune_report", "Save report", "write_study_report(path, answer): the pick, the runner-up "
                             "and what lies beyond a limit, as one HTML file")  # fmt: skip
        self._saved = Text("tune_saved")
        self._copy.hidden = self._last.hidden = self.report.hidden = True
        self.tune: Tune | None = None
        self._begun = 0.0
        self._said = 0.0
        self._runs_of: dict[int, Run] = {}
        self._shown = -1  # plays that the charts show
        self.fields["scenario"].observe(self._show_limit)
        self._show_limit()
        self.parts: tuple[Part, ...] = (
            section("tune_what", "Tuner", "a setting, its evidence, and a command", list(self.fields.values())),
            row("tune_row", [self.button]),
            self._progress,
            self._wrong,
            self._map,
            self._last,
            self._answer,
            row("tune_hand", [self._copy, self.report]),
            self._saved,
        )

    @property
    def question(self) -> Question:
        """The question as it stands.

        Raises:
            InputError: something is wrong or does not fit together.
        """
        value = {name: field.value for name, field in self.fields.items()}
        config: EngineConfig | None = self._bench.config if self._bench is not None else None
        knobs = {name: value[name] for name in ("budget", "chunk", "policy", "max_running") if value[name]}
        return Question.of(
            value["scenario"],
            config=config,
            start_up=self._start_up if config is None else None,
            objectives=(value["objective"],),
            limits=value["limits"],
            knobs=knobs,
            allowance=Allowance(trials=int(value["trials"]), minutes=value["minutes"]),
            rounds=int(value["rounds"]),
            simulate=value["simulate"],
        )

    def fit(self, *, going: bool, why_not: str = "") -> None:
        """Enable what can be pressed now; ``why_not`` says why a study cannot begin."""
        self.button.text = STOP if going else START
        self.button.disabled = bool(why_not) and not going
        self.button.hint = why_not if why_not and not going else marked("search, then confirm the pick on fresh seeds")
        for one in self.fields.values():
            one.disabled = going

    def run(self) -> None:
        """Tune, telling how far it is; takes minutes, so in a thread. What there is is shown in any case.

        Raises:
            InputError: the question cannot be answered.
            EngineError: the engine failed, or plays something else.
            StoreError: the study or a run could not be kept.
        """
        self._wrong.text = ""
        question = self.question
        bench = self._bench
        if bench is not None and bench.playing:
            raise EngineError("tuner: got a study while a run goes on, expected an engine at rest; stop the load first")
        self._map.markup = self._answer.markup = self._trial.markup = ""
        self._copy.hidden = self._last.hidden = self.report.hidden = True
        self._saved.text = ""
        self._begun, self._shown, self._runs_of = time.monotonic(), -1, {}
        if bench is not None and bench.engine.state != "ready":
            bench.start(lambda _seconds, what: self._tell(Now("engine", 0, 0, what)))
        tune = self.tune = Tune(
            question, bench=bench, runs=self._runs, tell=self._tell, began=lambda asked, run: self._keep(asked, run)
        )
        try:
            tune.run()
        finally:
            self._finish(tune)

    def save(self) -> None:
        """Write the report of the last study into the folder of the runs; takes some seconds, so in a thread.

        Raises:
            InputError: the runs that it would show are gone.
            StoreError: it cannot be written.
        """
        tune = self.tune
        if tune is None:
            return
        from workbench.report.study import write_study_report  # here, since few ask for it

        self._saved.text = translate("Writing the report …")
        try:
            file = (self._runs or default_root()) / f"{tune.name}.html"
            path = write_study_report(file, tune.answer, space=tune.question.space, again=tune.again)
        except BaseException:
            self._saved.text = ""
            raise
        self._saved.text = translate("Saved: {path}", path=path)

    def stop(self) -> None:
        """End what goes on, soon; what was played is kept."""
        if self.tune is not None:
            self.tune.stop()

    def tell(self, words: str) -> None:
        """Show what went wrong."""
        self._wrong.text = words

    def _show_limit(self) -> None:
        """Begin with the gap that the scenario promises."""
        name = self.fields["scenario"].value
        if name is not None:
            self.fields["limits"].show(f"gap_p99_ms={load_scenario(name).slo.gap_ms:g}")

    def _keep(self, asked: Asked, run: Run) -> None:
        self._runs_of = {asked.number: run}  # the newest alone: each holds its tables

    def _tell(self, now: Now) -> None:
        """In the thread that plays, between two plays: nothing is drawn while one is measured."""
        if now.stage == "engine" and time.monotonic() - self._said < _SAY_S:
            return
        self._said = time.monotonic()
        gone = self._said - self._begun
        stage = count = translate(_STAGES[now.stage])
        if now.most:
            count = translate("{done} of at most {most} {stage}", done=now.done, most=now.most, stage=stage)
        self._progress.text = f"{gone:,.0f} s{translate(': ')}{count}{translate(': ')}{translate(now.what)}"
        tune = self.tune
        if tune is not None and now.stage in ("search", "beyond", "confirmation"):
            self._draw(tune)

    def _draw(self, tune: Tune) -> None:
        plays = len(tune.answer.results) + (len(tune.confirmation.results) if tune.confirmation is not None else 0)
        if plays == self._shown or not plays:
            return
        self._shown = plays
        self._map.markup = drawn.going_on(tune.answer, tune.question.space)
        for run in self._runs_of.values():
            if run.done and run.error is None:
                name = str(run.meta.get("setting") or translate("the setting"))
                self._trial.markup = drawn.of_trial(run, name, tune.question.goal.slo)
                self._last.hidden = False

    def _finish(self, tune: Tune) -> None:
        took = translate(
            "{trials} in {seconds:,.0f} s, study {name}",
            trials=counted("{n} trial", "{n} trials", len(tune.results)),
            seconds=time.monotonic() - self._begun,
            name=tune.name,
        )
        if tune.results:
            self._progress.text = translate("Drawing …")
            self._shown = -1
            self._draw(tune)
            emitted = tune.emitted
            self._answer.markup = drawn.answered(tune.answer, emitted)
            command = (emitted.own_policy or emitted.command) if emitted is not None else ""
            self._copy.change(copies=command, hidden=not command)
            self.report.hidden = not tune.answer.candidates
        ended = (
            translate("Stopped, and kept: {took}", took=took) if tune.stopped else translate("Ended: {took}", took=took)
        )
        why = translate(" ({reason})", reason=translate(tune.why)) if tune.why and not tune.stopped else ""
        self._progress.text = ended + why
