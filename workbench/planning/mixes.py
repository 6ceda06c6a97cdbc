"""Traffic to plan for that needs no file: made from a seed, after what is known of public traces and articles."""

from __future__ import annotations

from workbench.config import parse
from workbench.errors import ScenarioError
from workbench.i18n import phrase
from workbench.workload.arrivals import Rated
from workbench.workload.scenario import Scenario, load_scenario, scenario_names


def _stream(name: str, rate: float, prompt: object, output: object, priority: int = 1) -> dict[str, object]:
    arrivals = {"kind": "poisson", "rate": rate, "count": 1}
    return {"class": name, "priority": priority, "arrivals": arrivals, "prompt_tokens": prompt, "output_tokens": output}


def _lengths(median: int, p99: int, longest: int) -> dict[str, object]:
    return {"kind": "lognormal", "median": median, "p99": p99, "max": longest}


# Medians of Azure's 2023 traces as their article prints them (Splitwise, ISCA 2024): 1,020 and 129 tokens of
# conversation, 1,500 and 13 of code. The tails of code are those of the published file, the others are assumed.
_MIXES = {
    "azure-like": (
        "Conversations with the medians of Azure's 2023 trace; a made-up mix, no recording.",
        16_384,
        [_stream("chat", 5.0, _lengths(1020, 4000, 14_000), _lengths(130, 700, 1500))],
    ),
    "azure-like-code": (
        "Code completion with the medians and tails of Azure's 2023 trace; a made-up mix, no recording.",
        16_384,
        [_stream("code", 5.0, _lengths(1500, 7400, 7500), _lengths(13, 250, 1900))],
    ),
    "chats-and-64k": (
        "Ten chats of 1,024 tokens for each document of 65,536: the article's mix (claim C14) as steady traffic.",
        69_632,
        [_stream("chat", 10.0, 1024, 256), _stream("document", 1.0, 65_536, 64, priority=2)],
    ),
}


def mix_names() -> tuple[str, ...]:
    """Names of the built-in mixes."""
    return tuple(_MIXES)


def traffic_names() -> list[str]:
    """What a plan can be made for by name: mixes, and the scenarios all of whose streams have a rate."""
    return [*_MIXES, *(name for name in scenario_names() if _has_rate(name))]


def traffic(path_or_name: str | Scenario) -> Scenario:
    """The scenario of that name or file, or a built-in mix.

    Raises:
        ScenarioError: there is no such scenario, or something in it is wrong.
    """
    if isinstance(path_or_name, Scenario):
        return path_or_name
    if path_or_name not in _MIXES:
        try:
            return load_scenario(path_or_name)
        except ScenarioError as bad:
            if bad.what != "scenario":  # it is there, and something in it is wrong
                raise
            mixes = phrase("a mix ({names}), {others}", names=", ".join(_MIXES), others=bad.expected)
            raise ScenarioError(bad.what, bad.value, mixes, bad.fix) from None
    about, longest, streams = _MIXES[path_or_name]
    fields = {"description": about, "engine": {"max_model_len": longest, "max_num_seqs": 256}, "streams": streams}
    return parse(Scenario, {"name": path_or_name, "seed": 1, **fields})


def _has_rate(name: str) -> bool:
    return all(isinstance(stream.arrivals, Rated) for stream in load_scenario(name).streams)
