"""Live runs to judge a calibration by: each setting has something that the calibration load never had."""

from __future__ import annotations

from typing import Any

from workbench.config import EngineConfig
from workbench.metrics.requests import LONG_PROMPT
from workbench.simulate.calibrating import Piece
from workbench.workload.scenario import Scenario, Setting

_SECONDS = 7.0  # of prefill in each
_CHATS, _OUTPUT = 4, 60


def holdouts(config: EngineConfig, rate: float, seed: int) -> list[Piece]:
    """Two budgets, one policy, one arrival rate, one prompt length, and one with most of these at once.

    Args:
        config: start-up fields of the engine.
        rate: prompt tokens a second that it reaches.
        seed: of lengths, words and arrivals.
    """
    tokens = int(min(max(1.15 * LONG_PROMPT, rate * _SECONDS), config.max_model_len - 64))
    shorter = int(max(LONG_PROMPT, 0.62 * tokens))
    chats, document = _at_once("chat", _CHATS, _OUTPUT, 0.0), _long(tokens, 0.8)
    coming = _poisson("chat", 0.7, 10, 28)
    return [
        _piece("budget 320", {"budget": 320}, [chats, document], config, seed),
        _piece("budget 768", {"budget": 768}, [chats, document], config, seed),
        _piece(
            "policy decode_first",
            {"budget": 512, "policy": "decode_first", "prefill_every": 3},
            [chats, document],
            config,
            seed,
        ),
        _piece("arrival rate", {"budget": 512}, [coming, document], config, seed),
        _piece("prompt length", {"budget": 512}, [chats, _long(shorter, 0.8), _long(shorter, 3.0)], config, seed),
        _piece(
            "all of them",
            {"budget": 320, "policy": "qos"},
            [{**coming, "priority": "vip"}, {**_long(shorter, 1.0), "priority": "offline"}],
            config,
            seed,
        ),
    ]


def _at_once(kind: str, count: int, output: int, start_s: float) -> dict[str, Any]:
    prompt = {"kind": "uniform", "min": 12, "max": 60}
    arrivals = {"kind": "at_once", "count": count}
    return {"class": kind, "start_s": start_s, "arrivals": arrivals, "prompt_tokens": prompt, "output_tokens": output}


def _poisson(kind: str, rate: float, count: int, output: int) -> dict[str, Any]:
    arrivals = {"kind": "poisson", "rate": rate, "count": count}
    return {**_at_once(kind, count, output, 0.0), "arrivals": arrivals}


def _long(tokens: int, start_s: float) -> dict[str, Any]:
    return {**_at_once("long", 1, 4, start_s), "prompt_tokens": tokens}


def _piece(name: str, knobs: dict[str, Any], streams: list[dict[str, Any]], config: EngineConfig, seed: int) -> Piece:
    engine = {key: getattr(config, key) for key in ("max_model_len", "max_num_batched_tokens", "max_num_seqs")}
    facts = {"name": "holdout", "seed": seed, "engine": engine, "streams": streams}
    return Piece(Setting(name=name, **knobs), Scenario.model_validate(facts))
