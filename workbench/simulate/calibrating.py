"""Calibrating: a short designed load on a live engine, hot, and the prices that follow from its steps.

The load has what a fit needs to tell prices apart: steps that only decode, with one to many streams; prompts alone, at
several depths of context; and both together, under budgets from few tokens to a whole prompt, with a chunk cap, beside
few and many streams. It is sized by what a first short run shows the engine to reach, so that it takes as long on a
laptop as on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.config import EngineConfig
from workbench.errors import EngineError, InputError
from workbench.left_as_found import no_run_left
from workbench.simulate.calibration import Calibration
from workbench.simulate.fitting import fit
from workbench.simulate.measured import measured_steps
from workbench.trace import Trace
from workbench.workload.scenario import Scenario, Setting

if TYPE_CHECKING:
    from workbench.plays import Plays
    from workbench.run import Run

Follow = Callable[[Setting, "Run"], None]

SCENARIO = "calibration"  # what its runs are called
SECONDS = 80.0  # of prefill, about; decodes come on top, as long again on a slow machine
BUDGETS = (64, 160, 512, 1024, 4096)  # those below the longest prompt; then the whole prompt in one step
_CHATS = (3, 6, 2, 4, 8, 5)  # beside each of them
_PIECES = 9  # runs that share the seconds
_WARM = 192  # prompt tokens of the first run
_ROOM = 96  # tokens of the context that are kept for output
_LEAST, _MOST_PROMPTS, _MOST_STEPS = 192, 12, 160
_DECODES = 24  # steps beside a prompt's, in which chats only decode: some in each run, as machines drift
_SEED = 20_260  # validation loads have other seeds, and so other words and lengths


@dataclass(frozen=True)
class Piece:
    """One run of the load.

    Attributes:
        setting: knobs.
        scenario: requests.
    """

    setting: Setting
    scenario: Scenario


def calibrate(bench: Plays, *, follow: Follow | None = None, seconds: float = SECONDS) -> Calibration:
    """Play the load on a live engine that is ready, and fit; the knobs are put back.

    The runs are recorded like any other, so that the fit can be repeated from them. Nothing is saved: see
    :func:`workbench.simulate.kept_calibrations.save`.

    Args:
        bench: a workbench whose engine is live and ready.
        follow: called with each setting and its run; may wait for the run and show its progress.
        seconds: of playing, about.

    Raises:
        InputError: the engine is simulated, or the load showed too little to fit.
        EngineError: the engine does not run, or a run is going on.
        EngineDiedError: the engine ended in mid-run.
    """
    check_live(bench)
    return fit(play_load(bench, follow=follow, seconds=seconds)[1:])


def check_live(bench: Plays) -> None:
    """Refuse an engine that has nothing to measure.

    Raises:
        InputError: it is simulated.
    """
    if bench.engine.label == "simulated":
        raise InputError("calibrate", "a simulated engine", "a live one", "leave engine=simulated out")


def play_load(bench: Plays, *, follow: Follow | None = None, seconds: float = SECONDS) -> list[Trace]:
    """Play the load alone; the traces of its runs. The first warms the engine up and is not one to fit.

    Raises:
        EngineError: as for :func:`calibrate`; also when a run was stopped.
    """
    before = bench.engine.knobs
    try:
        warm = _played(bench, first_piece(bench.engine.config), follow)
        traces = [warm]
        for piece in pieces(bench.engine.config, prefill_rate(warm), seconds):
            traces.append(_played(bench, piece, follow))  # noqa: PERF401  an error leaves those before on disk
    finally:
        if bench.engine.state == "ready":
            bench.engine.set_knobs(before)
    return traces


def prefill_rate(trace: Trace) -> float:
    """Prompt tokens a second, over the steps that hold any.

    Raises:
        InputError: no step does.
    """
    design, seconds, kinds = measured_steps(trace)
    mine = kinds != "decode"
    if not mine.any():
        raise InputError("first run", "no steps with prefill", "some", "calibrate on an engine with our probe in it")
    return float(design[mine, 1].sum() / seconds[mine].sum())


def first_piece(config: EngineConfig) -> Piece:
    """One short prompt in halves: faults memory in, and shows how fast the engine is."""
    tokens = min(_WARM, config.max_model_len // 2)
    return _piece("warm-up", config, {"budget": max(1, tokens // 2)}, [("long", 0.0, 1, tokens, 8)], 0)


def pieces(config: EngineConfig, rate: float, seconds: float = SECONDS) -> list[Piece]:
    """The load for an engine.

    Args:
        config: its start-up fields.
        rate: prompt tokens a second that it reaches.
        seconds: that all of it may take, about.
    """
    return list(_pieces(config, rate * seconds / _PIECES))


def _pieces(config: EngineConfig, tokens: float) -> Iterator[Piece]:
    """``tokens``: prompt tokens of a run."""
    most = max(1, config.max_model_len - min(_ROOM, config.max_model_len // 2))
    longest = int(min(most, max(_LEAST, tokens)))
    places = max(1, config.max_num_seqs - 1)
    ladder = [budget for budget in BUDGETS if budget < min(longest, config.max_num_batched_tokens)]

    # Streams that end one after the other: decode steps with many streams, then with fewer, down to one.
    chats = min(places, int(np.clip(tokens / 400, 10, 64)))
    streams = [("chat", 0.0, 1, _bounded(config, 16 + 24 * (i % 5)), 10 + 5 * i) for i in range(chats)]
    yield _piece("decodes", config, {}, streams, 1)
    # Prompts alone, in chunks of two sizes: the price of context without decodes.
    for number, budget in enumerate(ladder[1:3] or [max(1, longest // 3)]):
        prompt, count = _within(longest, tokens, budget)
        yield _piece(
            f"prompt alone {budget}", config, {"budget": budget}, [("long", 0.0, count, prompt, 6)], 2 + number
        )
    # Prompts among chats.
    for number, budget in enumerate([*ladder, min(longest, config.max_num_batched_tokens)]):
        beside = min(_CHATS[number % len(_CHATS)], places, max(1, budget // 2))
        prompt, count = _within(longest, tokens, budget)
        yield _mixed(
            f"budget {budget}", config, {"budget": budget + beside}, prompt, count, budget, beside, 10 + number
        )
    # The same budget in which a chunk cap leaves room for two prompts at once.
    cap, beside = min(96, max(1, longest // 4)), min(5, places)
    prompt, count = _within(max(1, longest // 2), tokens, 2 * cap)
    yield _mixed(
        f"chunk {cap}", config, {"budget": 2 * cap + beside, "chunk": cap}, prompt, max(2, count), 2 * cap, beside, 20
    )


def _within(longest: int, tokens: float, a_step: int) -> tuple[int, int]:
    """Length and number of prompts: at most so many tokens, and not too many steps for a budget that is small."""
    total = min(max(tokens, longest), _MOST_STEPS * a_step)
    prompt = int(min(longest, total))
    return prompt, int(np.clip(total // prompt, 1, _MOST_PROMPTS))


def _mixed(
    name: str, config: EngineConfig, knobs: dict[str, Any], prompt: int, count: int, a_step: int, beside: int, seed: int
) -> Piece:
    """Prompts that come while chats decode; the chats last a little longer."""
    steps = -(-prompt * count // a_step)
    output = max(4, min(steps + _DECODES, config.max_model_len // 2))
    chats = [("chat", 0.0, beside, _bounded(config, 40), output)]
    return _piece(name, config, knobs, [*chats, ("long", 0.3, count, prompt, 4)], seed)


def _bounded(config: EngineConfig, tokens: int) -> int:
    return max(1, min(tokens, config.max_model_len // 4))


def _piece(
    name: str,
    config: EngineConfig,
    knobs: dict[str, Any],
    streams: Sequence[tuple[str, float, int, int, int]],
    seed: int,
) -> Piece:
    """A run of streams, all of whose requests arrive at once."""
    made = [
        {
            "class": kind,
            "start_s": start_s,
            "arrivals": {"kind": "at_once", "count": count},
            "prompt_tokens": prompt,
            "output_tokens": min(output, config.max_model_len - prompt),
        }
        for kind, start_s, count, prompt, output in streams
    ]
    facts = {
        "name": SCENARIO,
        "question": "What does a step cost on this machine?",
        "seed": _SEED + seed,
        "engine": {key: getattr(config, key) for key in ("max_model_len", "max_num_batched_tokens", "max_num_seqs")},
        "streams": made,
    }
    budget = min(knobs.get("budget", config.max_num_batched_tokens), config.max_num_batched_tokens)
    knobs = {**knobs, "budget": budget}
    if budget < config.max_num_seqs:  # a budget has a token for each that may run
        knobs["max_running"] = budget
    return Piece(Setting(name=name, **knobs), Scenario.model_validate(facts))


def _played(bench: Plays, piece: Piece, follow: Follow | None) -> Trace:
    run = bench.run(piece.scenario, setting=piece.setting)
    with no_run_left(bench):
        if follow is not None:
            follow(piece.setting, run)
        run.wait()
    if run.meta["status"] != "complete":
        raise EngineError(
            f"calibrate: run {run.meta.get('id')} is {run.meta['status']}, expected complete; start again"
        )
    return run.trace
