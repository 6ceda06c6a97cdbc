"""What is on screen as Python to paste; as ``vllm serve`` it is :func:`workbench.engine.command.serve_command`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workbench.attached_config import AttachedConfig
from workbench.config import SLO, EngineConfig, Frozen, Knobs
from workbench.redact import arguments, text
from workbench.simulated_config import SimulatedConfig

_LINE = 88  # Black's


def as_code(
    config: EngineConfig,
    knobs: Knobs | None = None,
    scenario: str | Path | None = None,
    rate: float | None = None,
    slo: SLO | None = None,
) -> str:
    """Python that starts this engine, sets these knobs and plays this load; what is as by default is left out.

    Args:
        config: start-up fields; keys in ``extra_args`` are hidden.
        knobs: hot knobs in force.
        scenario: name or file of what is played.
        rate: requests a second of all open-loop streams together, if it is not the scenario's own.
        slo: latency promise, if it is not the scenario's own.
    """
    config = hide_keys(config)
    start_up = config.model_dump(exclude_defaults=True)
    if isinstance(config, AttachedConfig):
        start_up = {name: value for name, value in config.own.items() if name == "engine" or name in start_up}
    if isinstance(config, SimulatedConfig):
        start_up = {"engine": config.engine, "model": config.model, "gpu": config.gpu} | start_up
        if config.count is not None:  # which says it already
            start_up.pop("tensor_parallel_size", None)
    arguments = [f"{name}={_literal(value)}" for name, value in start_up.items()]
    if slo is not None:
        arguments.append(f"slo=SLO({', '.join(_changes(slo, SLO()))})")
    imports = ["from workbench import Workbench", *(["from workbench.config import SLO"] if slo is not None else [])]
    lines = [_call("wb = Workbench", arguments), "wb.start()"]
    if knobs is not None and (changes := _knob_changes(config, knobs)):
        lines.append(_call("wb.knobs", changes))
    if scenario is not None:
        play = [_literal(str(scenario)), *([f"rate={_literal(rate)}"] if rate is not None else [])]
        lines += [_call("run = wb.run", [*play, *(["slo=wb.slo"] if slo is not None else [])]), "run.wait()"]
        lines.append("print(run.kpis)")
    return text("\n".join([*imports, "", *lines, "wb.stop()", ""]))


def hide_keys(config: EngineConfig) -> EngineConfig:
    """The configuration with the values of flags such as ``--api-key`` and ``--hf-token`` replaced: they get pasted."""
    return config.replace(extra_args=tuple(arguments(config.extra_args)))


def _knob_changes(config: EngineConfig, knobs: Knobs) -> list[str]:
    """All knobs of an attached server: what it was started with is not known."""
    if isinstance(config, AttachedConfig):
        return [f"{name}={_literal(value)}" for name, value in knobs.model_dump().items()]
    return _changes(knobs, config.envelope.defaults)


def _changes(values: Frozen, defaults: Frozen) -> list[str]:
    before = defaults.model_dump()
    return [f"{name}={_literal(value)}" for name, value in values.model_dump().items() if value != before[name]]


def _call(what: str, arguments: Iterable[str]) -> str:
    """One line, or one argument a line where that is too long."""
    given = list(arguments)
    line = f"{what}({', '.join(given)})"
    return line if len(line) <= _LINE else "\n".join([f"{what}(", *(f"    {one}," for one in given), ")"])


def _literal(value: Any) -> str:
    """``repr`` with double quotes, as formatters have it."""
    if isinstance(value, tuple):
        inner = ", ".join(_literal(one) for one in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    text = repr(value)
    return f'"{text[1:-1]}"' if text.startswith("'") and '"' not in text else text
