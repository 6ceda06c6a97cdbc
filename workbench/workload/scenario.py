"""Scenarios: YAML files that say what to play, on which engine, under which settings, and what question it answers."""

from __future__ import annotations

import difflib
from collections import Counter
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from workbench.config import SLO, EngineConfig, Frozen, parse
from workbench.errors import EnvelopeError, InputError, ScenarioError
from workbench.i18n import phrase
from workbench.simulated_config import engine_config
from workbench.workload import paths
from workbench.workload.arrivals import Concurrency, Rated, Trace
from workbench.workload.setting import Setting
from workbench.workload.stream import Stream
from workbench.workload.strict_yaml import load_yaml

__all__ = ["MAX_SEED", "Scenario", "Setting", "load_scenario", "scenario_names"]

MAX_SEED = 2**32 - 1
_SUFFIXES = (".yaml", ".yml")


class Scenario(Frozen):
    """What to play, on which engine, under which settings."""

    name: str = Field(
        pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60, description="Name of the scenario and of its file."
    )
    question: str = Field("", max_length=500, description="The question that it answers.")
    description: str = Field("", max_length=4000, description="What is played, and at what scale.")
    seed: int = Field(0, ge=0, le=MAX_SEED, description="Same seed, same requests.")
    engine: dict[str, Any] = Field(default_factory=dict, description="Start-up fields that differ from the defaults.")
    slo: SLO = Field(default_factory=SLO, description="What stalls and goodput are held against.")
    streams: tuple[Stream, ...] = Field(min_length=1, max_length=100, description="The traffic.")
    settings: tuple[Setting, ...] = Field(
        (), max_length=1000, description="Hot-knob settings that a sweep plays it under, in this order."
    )

    settings_at_s: float = Field(
        0.0,
        ge=0,
        le=86_400,
        description="When a setting takes hold; until then the knobs are as the engine starts.",
        json_schema_extra={"unit": "s"},
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        envelope = self.engine_config.envelope
        for i, setting in enumerate(self.settings):
            try:
                setting.knobs(envelope)
            except EnvelopeError as bad:
                raise _again(bad, f"settings.{i} ({setting.name})") from None
        for name, n in Counter(setting.name for setting in self.settings).items():
            if n > 1:
                raise ScenarioError("settings", name, phrase("names that differ"), phrase("rename one of them"))
        streams = Counter(stream.class_name for stream in self.streams)
        for name in self.concurrency:
            if streams[name] > 1:
                raise ScenarioError(
                    "streams",
                    phrase("{n} of class {name}", n=streams[name], name=name),
                    phrase("one, as its concurrency is fixed"),
                    phrase("rename a class"),
                )
        return self

    @property
    def engine_config(self) -> EngineConfig:
        """The engine that the scenario asks for."""
        return engine_config(self.engine, where="engine", error=ScenarioError)

    @property
    def rate(self) -> float | None:
        """Requests a second of all its open-loop streams together; none if it has no such stream."""
        rates = [stream.arrivals.rate for stream in self.streams if isinstance(stream.arrivals, Rated)]
        return sum(rates) if rates else None

    def at_rate(self, rate: float) -> Scenario:
        """The same traffic at another rate: every open-loop stream by the same factor, fixed concurrency untouched.

        Raises:
            ScenarioError: it has no open-loop stream, or the rate is beyond what a stream takes.
        """
        if self.rate is None:
            raise ScenarioError(
                "rate",
                rate,
                phrase("none, as {name} has no stream with a rate", name=self.name),
                phrase("choose another scenario"),
            )
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < float("inf"):
            raise ScenarioError("rate", rate, phrase("requests a second, above 0"), phrase("give a number"))
        factor, streams = rate / self.rate, []
        for stream in self.streams:
            arrivals = stream.arrivals
            if isinstance(arrivals, Rated):
                arrivals = parse(
                    type(arrivals), arrivals.model_dump() | {"rate": arrivals.rate * factor}, error=ScenarioError
                )
            streams.append(stream.model_copy(update={"arrivals": arrivals}))
        return self.model_copy(update={"streams": tuple(streams)})

    @property
    def reads_files(self) -> bool:
        """Whether its requests come from files beside it, which may change."""
        return any(stream.documents is not None or isinstance(stream.arrivals, Trace) for stream in self.streams)

    @property
    def concurrency(self) -> dict[str, int]:
        """Requests in flight of each class with fixed concurrency."""
        return {s.class_name: s.arrivals.in_flight for s in self.streams if isinstance(s.arrivals, Concurrency)}


def scenario_names() -> list[str]:
    """Names of the scenarios that come with the workbench."""
    return sorted(file.stem for file in _folder().glob("*.yaml"))


def load_scenario(path_or_name: str | Path) -> Scenario:
    """Read a scenario.

    Args:
        path_or_name: a file (``my.yaml``, ``folder/my.yaml``), or the name of a scenario that comes with the workbench.

    Raises:
        ScenarioError: there is no such scenario, or something in it is wrong; with the place.
    """
    text = str(path_or_name)
    file = paths.located(Path(text), Path())
    if isinstance(path_or_name, str) and "/" not in text and file.suffix not in _SUFFIXES:
        file = _named(text)
    data = load_yaml(file)
    if not isinstance(data, dict):
        shown = phrase("an empty file") if data is None else data
        raise ScenarioError(
            str(file), shown, phrase("fields such as name and streams"), phrase("see data/scenarios for examples")
        )
    try:
        scenario = parse(Scenario, data, error=ScenarioError)
    except InputError as bad:
        raise _again(bad, str(file)) from None
    folder = file.resolve().parent
    return scenario.model_copy(update={"streams": tuple(stream.located(folder) for stream in scenario.streams)})


def _again(bad: InputError, where: str) -> ScenarioError:
    """The same error with the place before it."""
    return ScenarioError(f"{where}: {bad.what}", bad.value, bad.expected, bad.fix)


def _folder() -> Path:
    """``data/scenarios`` of the checkout that this package lies in."""
    return Path(__file__).resolve().parents[2] / "data" / "scenarios"


def _named(name: str) -> Path:
    names = scenario_names()
    if name in names:
        return _folder() / f"{name}.yaml"
    if not names:
        raise ScenarioError(
            "scenario",
            name,
            phrase("the path of a .yaml file, as this installation has no named scenarios"),
            phrase("give a path, or install the workbench from its checkout with pip install -e"),
        )
    near = difflib.get_close_matches(name, names, 1)
    fix = (
        phrase("did you mean {name}?", name=near[0])
        if near
        else phrase("choose one of these, or give the path of a .yaml file")
    )
    raise ScenarioError(phrase("scenario"), name, phrase("one of {names}", names=", ".join(names)), fix)
