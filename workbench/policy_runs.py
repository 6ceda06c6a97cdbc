"""The same seeded workload under one policy after the other, on one engine that is not restarted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import pandas as pd

from workbench.config import POLICIES, SLO, Envelope, parse
from workbench.errors import EnvelopeError, InputError
from workbench.left_as_found import knobs_put_back, no_run_left
from workbench.origin import origin_words
from workbench.run import RecordedRun, Run
from workbench.trace import Trace
from workbench.workload.scenario import Scenario, Setting

if TYPE_CHECKING:
    from workbench.plays import Plays

Follow = Callable[[Setting, Run], None]  # returns when the run has ended


class PolicyRuns(Sequence[RecordedRun]):
    """The runs of a comparison, in the order they were played; it grows while they are.

    Attributes:
        scenario: what was played.
        slo: the promise that gaps and TTFT are held against.
        settings: one for each run.
        refused: why a setting was not played, by its name.
    """

    def __init__(self, scenario: str, slo: SLO) -> None:
        self.scenario, self.slo = scenario, slo
        self.settings: list[Setting] = []
        self.refused: dict[str, str] = {}
        self._runs: list[RecordedRun] = []

    @overload
    def __getitem__(self, place: int) -> RecordedRun: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[RecordedRun]: ...

    def __getitem__(self, place: int | slice) -> RecordedRun | Sequence[RecordedRun]:
        return self._runs[place]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        names = ", ".join(setting.name for setting in self.settings) or "nothing yet"
        refused = f"; refused: {', '.join(self.refused)}" if self.refused else ""
        return f"<policies of {self.scenario}, {self.label}: {names}{refused}>"

    def add(self, setting: Setting, run: RecordedRun) -> None:
        """Keep a run that has ended."""
        self.settings.append(setting)
        self._runs.append(run)

    @property
    def label(self) -> str | None:
        """Where the numbers come from, such as live CPU; none before there is a run."""
        return str(self._runs[0].meta.get("label")) if self._runs else None

    @property
    def origin(self) -> str | None:
        """The same with what is known of simulated ones: the step-time model and its error, or "uncalibrated"."""
        return origin_words(self._runs[0].meta) if self._runs else None

    @property
    def traces(self) -> dict[str, Trace]:
        """The trace of each run, by the name of its setting."""
        return {setting.name: run.trace for setting, run in zip(self.settings, self._runs, strict=True)}

    @property
    def table(self) -> pd.DataFrame:
        """One row for each class under each policy; see :func:`workbench.ui.charts.policy_table`."""
        from workbench.ui.charts import policy_table  # here, since Altair takes two seconds to import

        return policy_table(self.traces, self.slo)


def choose(
    scenario: Scenario, policies: Sequence[str] | None, envelope: Envelope, else_with: Mapping[str, Any] | None = None
) -> list[Setting]:
    """What a comparison plays.

    Args:
        scenario: its own settings are played where it names policies in them and nothing was asked for; a policy that
            was asked for is played as its settings have it.
        policies: names of policies; none takes those of the scenario, else all.
        envelope: of the engine that is to play them.
        else_with: knobs for policies that the scenario does not set; by default as the engine starts.

    Raises:
        EnvelopeError: there is no policy of that name, or one that was named does not fit the engine.
        InputError: a policy is named twice, or none is.
    """
    its_own = scenario.settings if any(setting.policy for setting in scenario.settings) else ()
    if policies is None and its_own:
        chosen = list(its_own)
    else:
        names = POLICIES if policies is None else policies
        if len(set(names)) < len(names) or not names:
            known = ", ".join(POLICIES)
            raise InputError("policies", ", ".join(names) or "none", "names that differ", f"choose from {known}")
        # The first of the scenario's settings with that policy; one that names none is played as the engine starts.
        known_as = {str(setting.policy or envelope.defaults.policy): setting for setting in reversed(its_own)}
        knobs = else_with or {}
        plain = [parse(Setting, {**knobs, "name": name, "policy": name}, error=EnvelopeError) for name in names]
        chosen = [known_as.get(str(one.policy), one) for one in plain]
    if policies is not None:
        for setting in chosen:
            setting.knobs(envelope)
    return chosen


def play(
    bench: Plays,
    scenario: Scenario,
    settings: Sequence[Setting],
    *,
    runs: PolicyRuns,
    seed: int | None = None,
    follow: Follow | None = None,
) -> None:
    """Play the settings one after the other, and put the knobs back that were in force.

    A setting that the engine refuses is noted and the next one is played. With a prefix cache each run begins with an
    empty one, so that all get the same words and none gets the blocks of the run before.

    Args:
        bench: its engine must be ready.
        scenario: what to play.
        settings: in this order.
        runs: takes each run as it ends, so that those before an error are kept.
        seed: replaces the scenario's.
        follow: waits for each run and shows its progress.

    Raises:
        EngineError: the engine does not run, or a run is going on.
        EngineDiedError: the engine ended in mid-run.
        StoreError: a run cannot be recorded.
    """
    with knobs_put_back(bench):
        for setting in settings:
            try:
                setting.knobs(bench.engine.envelope)
                if bench.engine.config.enable_prefix_caching:
                    bench.reset_prefix_cache()
                run = bench.run(scenario, setting=setting, seed=seed, salt=0)
                with no_run_left(bench):
                    if follow is not None:
                        follow(setting, run)
                    run.wait()
            except EnvelopeError as why:
                runs.refused[setting.name] = str(why)
                continue
            if run.meta["status"] == "cancelled":  # somebody stopped the load, and means all of it
                break
            runs.add(setting, run)
