"""A scenario under several settings, one after the other: hot on one engine, or with an engine for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from workbench.config import EngineConfig
from workbench.engine.protocol import Progress
from workbench.errors import InputError
from workbench.origin import origin_words
from workbench.policy_runs import Follow
from workbench.report.run import ReportRun
from workbench.run import Run
from workbench.session import Workbench
from workbench.workload.scenario import Scenario, Setting

_MOST_SETTINGS = 1000


@dataclass(frozen=True)
class Played:
    """One setting that has been played.

    Attributes:
        setting: the knobs, as they were asked for.
        run: the recorded run.
        engine_pid: of the engine that it was played on.
        report: the run as a report takes it.
    """

    setting: Setting
    run: Run
    engine_pid: int | None
    report: ReportRun

    @cached_property
    def row(self) -> dict[str, Any]:
        """One row of ``summary.json``: setting, figures, engine and run folder."""
        return {
            "setting": self.setting.name,
            **self.report.row(),
            "engine_pid": self.engine_pid,
            "label": origin_words(self.run.meta),
            "run": str(self.run.folder),
        }


def grid(values: Mapping[str, Sequence[Any]]) -> tuple[Setting, ...]:
    """Settings for all combinations of knob values.

    Args:
        values: knob name (a field of :class:`workbench.workload.scenario.Setting`) to the values it takes; one given
            twice counts once.

    Raises:
        InputError: a value is wrong, or there are more than a thousand combinations.
    """
    names = [name for name, options in values.items() if options]
    combinations = list(itertools.product(*(dict.fromkeys(values[name]) for name in names)))
    if len(combinations) > _MOST_SETTINGS:
        raise InputError("settings", len(combinations), f"at most {_MOST_SETTINGS}", "give fewer values")
    return tuple(Setting.of(dict(zip(names, combination, strict=True))) for combination in combinations if combination)


def hot(bench: Workbench, scenario: Scenario, settings: Sequence[Setting], follow: Follow) -> Iterator[Played]:
    """Play the settings on one running engine, without a restart.

    Args:
        bench: its engine must be ready.
        scenario: what to play.
        settings: in this order.
        follow: waits for each run and shows its progress.

    Raises:
        EnvelopeError: a setting does not fit the running engine; raised before the first run.
        EngineDiedError: the engine ended in mid-run.
    """
    for setting in settings:
        setting.knobs(bench.engine.envelope)
    for setting in settings:
        yield _play(bench, scenario, setting, follow)


def with_restarts(
    scenario: Scenario,
    settings: Sequence[Setting],
    follow: Follow,
    *,
    config: EngineConfig,
    runs: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[Played]:
    """Start an engine for each setting: for budgets above the ceiling, and to compare with what others have to do.

    Args:
        scenario: what to play.
        settings: in this order; budget and running cap become start-up fields.
        follow: waits for each run and shows its progress.
        config: start-up fields that the settings do not name.
        runs: parent of the run folders.
        progress: told how each start goes.

    Raises:
        InputError: a setting does not fit the engine that it would get; raised before the first start.
        EngineDiedError: an engine ended in mid-run.
    """
    configs = []
    for setting in settings:
        changed = {"max_num_batched_tokens": setting.budget, "max_num_seqs": setting.max_running}
        configs.append(config.replace(**{name: value for name, value in changed.items() if value is not None}))
        setting.knobs(configs[-1].envelope)
    for setting, its_own in zip(settings, configs, strict=True):
        with Workbench(**its_own.model_dump(), runs=runs, slo=scenario.slo) as bench:
            bench.start(progress)
            yield _play(bench, scenario, setting, follow)


def _play(bench: Workbench, scenario: Scenario, setting: Setting, follow: Follow) -> Played:
    knobs, pid = setting.knobs(bench.engine.envelope), bench.engine.pid
    run = bench.run(scenario, setting=setting)
    follow(setting, run)
    run.wait()
    return Played(setting, run, pid, ReportRun(setting.name, run.trace, knobs, run.slo))
