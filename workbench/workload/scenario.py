"""Scenarios: YAML files that say what to play, on which engine, under which settings, and what question it answers."""

from __future__ import annotations

import difflib
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from workbench.config import SLO, EngineConfig, Frozen, parse
from workbench.errors import EnvelopeError, InputError, ScenarioError
from workbench.simulated_config import engine_config
from workbench.workload import paths
from workbench.workload.arrivals import Concurrency, Rated, Trace
from workbench.workload.prompts import Pool, Prompts, load_tokenizer
from workbench.workload.request import Request, Workload
from workbench.workload.setting import Setting
from workbench.workload.stream import Planned, Stream, plan
from workbench.workload.strict_yaml import load_yaml

__all__ = ["MAX_SEED", "Scenario", "Setting", "build_workload", "load_scenario", "scenario_names"]

MAX_SEED = 2**32 - 1
_MOST_PROMPT_TOKENS = 100_000_000  # 8 bytes each
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
                raise ScenarioError("settings", name, "names that differ", "rename one of them")
        streams = Counter(stream.class_name for stream in self.streams)
        for name in self.concurrency:
            if streams[name] > 1:
                raise ScenarioError(
                    "streams", f"{streams[name]} of class {name}", "one, as its concurrency is fixed", "rename a class"
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
                "rate", rate, f"none, as {self.name} has no stream with a rate", "choose another scenario"
            )
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < float("inf"):
            raise ScenarioError("rate", rate, "requests a second, above 0", "give a number")
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
        shown = "an empty file" if data is None else data
        raise ScenarioError(str(file), shown, "fields such as name and streams", "see data/scenarios for examples")
    try:
        scenario = parse(Scenario, data, error=ScenarioError)
    except InputError as bad:
        raise _again(bad, str(file)) from None
    folder = file.resolve().parent
    return scenario.model_copy(update={"streams": tuple(stream.located(folder) for stream in scenario.streams)})


def build_workload(
    scenario: Scenario, tokenizer_path: Path, max_model_len: int, seed: int | None = None, salt: int = 0
) -> Workload:
    """Make the requests of a scenario.

    Args:
        scenario: what to play.
        tokenizer_path: the model's ``tokenizer.json`` or the folder that holds it.
        max_model_len: the engine's context.
        seed: replaces the scenario's.
        salt: other words in the prompts, all else equal; for a second play on an engine whose prefix cache still
            holds the first.

    Raises:
        ScenarioError: a request that is too long, documents with too little text, too many tokens in all.
        TraceFileError: a trace file cannot be used.
        ModelError: the tokenizer is missing or damaged.
    """
    seed = scenario.seed if seed is None else seed
    if not (0 <= seed <= MAX_SEED and 0 <= salt <= MAX_SEED):
        raise ScenarioError("seed", seed, f"a number from 0 to {MAX_SEED}", "choose another seed")
    planned: list[Planned] = []
    traces: dict[str, dict[str, int]] = {}
    for place, stream in enumerate(scenario.streams):
        requests, counts = plan(stream, place, seed, max_model_len)
        planned += requests
        if counts:
            traces[f"streams.{place} ({stream.class_name})"] = counts
    total = sum(request.prompt_tokens for request in planned)
    if total > _MOST_PROMPT_TOKENS:
        raise ScenarioError(
            f"scenario {scenario.name}",
            f"{total} prompt tokens in all",
            f"at most {_MOST_PROMPT_TOKENS}",
            "lower a count, or set a limit on the trace",
        )
    planned.sort(key=lambda request: request.arrival_s)
    prompts = Prompts(load_tokenizer(tokenizer_path), seed, salt)
    pools = _pools(scenario, prompts, planned)
    numbers: Counter[str] = Counter()
    made = []
    for request in planned:
        stream = scenario.streams[request.stream]
        pool = pools.get(request.stream)
        made.append(
            Request(
                request=f"{stream.class_name}-{numbers[stream.class_name]}",
                class_name=stream.class_name,
                priority=stream.priority,
                arrival_s=request.arrival_s,
                prompt=tuple(chain.from_iterable(prompts.piece(n, key, pool) for key, n in request.parts)),
                output_tokens=request.output_tokens,
            )
        )
        numbers[stream.class_name] += 1
    source = {
        "scenario": scenario.model_dump(mode="json", by_alias=True, exclude_none=True),
        "seed": seed,
        "salt": salt,
        "max_model_len": max_model_len,
        "traces": traces,
    }
    return Workload(requests=tuple(made), concurrency=scenario.concurrency, seed=seed, source=source)


def _pools(scenario: Scenario, prompts: Prompts, planned: list[Planned]) -> dict[int, Pool]:
    """The documents of each stream that has some."""
    read: dict[Path, Pool] = {}
    pools: dict[int, Pool] = {}
    for place, stream in enumerate(scenario.streams):
        if stream.documents is None:
            continue
        if stream.documents not in read:
            read[stream.documents] = prompts.documents(stream.documents)
        pool = pools[place] = read[stream.documents]
        longest = max((n for request in planned if request.stream == place for _, n in request.parts), default=0)
        if longest > len(pool.tokens):
            raise ScenarioError(
                f"streams.{place} (class {stream.class_name}): documents {stream.documents}",
                f"{len(pool.tokens)} tokens of text",
                f"at least {longest}, the longest piece of a prompt",
                "add text or shorten prompt_tokens",
            )
    return pools


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
            "the path of a .yaml file, as this installation has no named scenarios",
            "give a path, or install the workbench from its checkout with pip install -e",
        )
    near = difflib.get_close_matches(name, names, 1)
    fix = f"did you mean {near[0]}?" if near else "choose one of these, or give the path of a .yaml file"
    raise ScenarioError("scenario", name, f"one of {', '.join(names)}", fix)
