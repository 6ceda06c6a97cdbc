"""How to make a report's runs again, and how to serve with what was tuned."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.config import Knobs, parse
from workbench.errors import InputError
from workbench.redact import redact
from workbench.report.run import ReportRun
from workbench.simulated_config import SimulatedConfig, engine_config
from workbench.workload.scenario import Scenario, load_scenario, scenario_names


def again(runs: Sequence[ReportRun]) -> str:
    """Shell commands that play the runs again; a comment where a command could not say it all."""
    lines = list(dict.fromkeys(line for run in runs for line in _run(run)))
    return "\n".join(redact(line) for line in lines)


def serve_commands(runs: Sequence[ReportRun]) -> list[tuple[str, str]]:
    """Of each run, its label and the ``vllm serve`` command for its engine with its knobs made permanent.

    Runs of one command share a line; a run that does not know its engine has none.
    """
    found: dict[str, list[str]] = {}
    for run in runs:
        engine = run.trace.meta.get("engine") or {}
        command = engine.get("serve_command")
        if command:
            found.setdefault(str(redact(command)), []).append(run.label)
    return [(", ".join(labels), command) for command, labels in found.items()]


def _run(run: ReportRun) -> list[str]:
    meta = run.trace.meta
    name, scenario = str(meta.get("scenario") or ""), _scenario(run.trace.meta)
    if scenario is None:
        return [f"# “{run.label}”: its scenario ({name or 'none'}) is not known any more"]
    said, file = [], scenario.name
    if not _is_ours(scenario):
        file = f"{scenario.name}.yaml"
        said.append(f"# save the scenario {scenario.name}, which stands under Environment, as {file}: JSON is YAML")
    words = ["workbench", "run", file]
    if meta.get("seed") is not None:
        words += ["--seed", str(meta["seed"])]
    moved = [knob for knob, value in run.setting.items() if value == "several"]
    words += [part for knob, value in _knobs(run).items() for part in ("--knob", f"{knob}={_word(value)}")]
    words += [
        part for field, value in _start_up(meta, scenario).items() for part in ("--set", f"{field}={_word(value)}")
    ]
    if moved:
        said.append(f"# “{run.label}”: {', '.join(moved)} moved while it went on; see its table of knobs")
    return [*said, shlex.join(words)]


def _scenario(meta: Mapping[str, Any]) -> Scenario | None:
    """What was played: as the run has it; one that kept none was played as it comes with the workbench."""
    name, kept = str(meta.get("scenario") or ""), (meta.get("workload") or {}).get("scenario")
    try:
        return parse(Scenario, kept) if kept else load_scenario(name) if name in scenario_names() else None
    except InputError:
        return None


def _is_ours(scenario: Scenario) -> bool:
    """Whether its name plays it: a scenario of one's own, or at another rate, may have the name of one of ours."""
    return scenario.name in scenario_names() and all(
        getattr(scenario, part) == getattr(load_scenario(scenario.name), part) for part in ("streams", "engine", "slo")
    )


def _knobs(run: ReportRun) -> dict[str, Any]:
    """The knobs that are not as an engine starts with them."""
    defaults = _config(run.trace.meta)
    before = defaults.envelope.defaults.model_dump() if defaults is not None else dict.fromkeys(Knobs.model_fields)
    given = {name: value for name, value in run.setting.items() if name in before and value not in (None, "several")}
    return {name: value for name, value in given.items() if value != before[name]}


def _start_up(meta: Mapping[str, Any], scenario: Scenario) -> dict[str, Any]:
    """The start-up fields that neither the scenario nor a default has."""
    config = _config(meta)
    if config is None:
        return {}
    asked = scenario.engine_config
    mine, theirs = config.model_dump(mode="json"), asked.model_dump(mode="json")
    fields = {name: value for name, value in mine.items() if value is not None and theirs.get(name) != value}
    return {"engine": "simulated", **fields} if isinstance(config, SimulatedConfig) else fields


def _config(meta: Mapping[str, Any]) -> Any:
    try:
        return engine_config((meta.get("engine") or {}).get("config") or {})
    except InputError:
        return None


def _word(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
