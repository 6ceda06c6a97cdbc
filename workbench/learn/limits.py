"""Right answers that follow from a fit or from arithmetic: how far a knob may go, and what something would cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from workbench import metrics
from workbench.claims.golden_range import StepCost
from workbench.claims.long_prompt import LongPrompt
from workbench.errors import InputError
from workbench.i18n import translate
from workbench.learn.compare import number
from workbench.learn.rights import Right, computed_tokens, figure
from workbench.models.architecture import named
from workbench.simulate.floors import Floor, floor_of
from workbench.simulate.presets import device
from workbench.units import MIB

_MS = 1e3


def budget_for_gap(*runs: Any, ms: float) -> Right:
    """The largest budget under which a step of a chunk and the streams beside it takes no longer than that."""
    prompts = [LongPrompt.of(run) for run in runs]
    cost = StepCost.of(prompts)
    beside = max(len(long.streams) for long in prompts)

    def gap_ms(budget: float) -> float:
        return _MS * (cost.fixed_s + cost.last_token_s * max(0.0, budget - beside))

    most = _largest(gap_ms, ms, max(long.tokens for long in prompts))
    return Right(
        most,
        translate(
            "A step costs {fixed_s:,.1f} ms and up to {last_token_s:,.0f} µs a token of the chunk here; "
            "{beside} tokens of the budget go to the streams.",
            fixed_s=cost.fixed_s * _MS,
            last_token_s=cost.last_token_s * 1000000.0,
            beside=beside,
        ),
        gap_ms,
        ms,
    )


def tokens_for_memory(*runs: Any, mib: float) -> Right:
    """The most tokens in a step whose activation stays under that, by the fit over all steps of the runs."""
    fit = _memory(*runs)
    most = fit.tokens_in(mib * MIB)
    return Right(
        most,
        translate(
            "The fit: {mib:,.1f} MiB at 1,024 tokens, and the power {exponent:.2f} of them.",
            mib=fit.bytes_at(1024) / MIB,
            exponent=fit.exponent,
        ),
        lambda tokens: fit.bytes_at(tokens) / MIB,
        mib,
    )


def memory_of_step(*runs: Any, tokens: int) -> Right:
    """Activation that the fit expects in a step of so many tokens, MiB."""
    fit = _memory(*runs)
    return Right(
        fit.bytes_at(tokens) / MIB,
        translate(
            "The fit over {steps:,} steps has the exponent {exponent:.2f}: about straight is 1.",
            steps=fit.steps,
            exponent=fit.exponent,
        ),
    )


def blocks_wanted(run: Any) -> Right:
    """KV blocks that all requests of a run hold at their ends, together."""
    engine = run.trace.meta.get("engine") or {}
    size = (engine.get("resolved") or {}).get("block_size") or (engine.get("config") or {}).get("block_size")
    if not size:
        raise InputError("run", "no block size on record", "a run of a live engine", "play it again")
    requests = run.trace.requests
    blocks = [
        math.ceil((p + o - 1) / size) for p, o in zip(requests["prompt_tokens"], requests["max_tokens"], strict=True)
    ]
    return Right(
        sum(blocks),
        translate(
            "In blocks of {size} tokens: {blocks}.",
            size=size,
            blocks=" + ".join(map(str, sorted(blocks, reverse=True))),
        ),
    )


def cached_with_groups(run: Any, groups: int) -> Right:
    """Prompt tokens that come from the cache if the same requests open with ``groups`` prefixes instead."""
    cached = run.trace.requests["cached_tokens"].fillna(0)
    hits = cached[cached > 0]
    if hits.empty:
        raise InputError("run", "no request with cached tokens", "one that hit", "play it with the prefix cache on")
    each, count = float(hits.median()), max(0, len(cached) - groups)
    return Right(
        count * each,
        translate(
            "The first of each group misses, and {count} others hit {each:,.0f} tokens each.", count=count, each=each
        ),
    )


def saved_percent(on: Any, off: Any) -> Right:
    """Share of the computed prompt tokens that the second run had and the first need not, %."""
    with_cache, without = computed_tokens(on).number, computed_tokens(off).number
    return Right(
        100 * (1 - with_cache / without),
        translate(
            "{with_cache:,.0f} prompt tokens were computed in place of {without:,.0f}.",
            with_cache=with_cache,
            without=without,
        ),
    )


def floor_s(tokens: int, gpus: int, gpu: str = "H100", model: str = "llama-3.1-70b") -> Right:
    """The least that a prefill takes on so many GPUs, s."""
    floor = _floor(tokens, gpus, gpu, model)
    return Right(floor.seconds, f"{floor}.")


def gpus_for(tokens: int, seconds: float, gpu: str = "H100", model: str = "llama-3.1-70b") -> Right:
    """How many GPUs at their full peak prefill so many tokens within that."""
    one = _floor(tokens, 1, gpu, model)
    return Right(
        math.ceil(one.compute_s / seconds),
        translate(
            "One {gpu} needs {number} at its full peak; over {given} that is {gpus:.1f}.",
            gpu=gpu,
            number=number(one.compute_s, "s"),
            given=number(seconds, "s"),
            gpus=one.compute_s / seconds,
        ),
    )


def trials_played(answer: Any) -> Right:
    """How many different settings a search played."""
    return Right(len({one.point.key for one in answer.results}))


def picked(answer: Any, knob: str) -> Right:
    """A knob of the recommended setting; 0 is off."""
    if answer.best is None:
        raise InputError("answer", "no setting fits", "one that does", "allow more")
    return Right(float(answer.best.point.hot.get(knob) or 0), translate("The pick is {name}.", name=answer.best.name))


def broken_limit(answer: Any, **hot: Any) -> Right:
    """Which limit a setting breaks most."""
    found = _trial(answer, hot)
    worst = found.worst
    if worst is None or worst[1] <= 0:
        raise InputError("setting", found.point.name, "one that breaks a limit", "ask about another")
    said = ", ".join(
        translate("{name} {over:+.0%} of its limit", name=name, over=over) for name, over in found.excess.items()
    )
    return Right(
        worst[0],
        translate("{name}: {said}.", name=found.point.name, said=said),
        among={name: 100 * over for name, over in found.excess.items()},
        unit="%",
    )


def figure_of_trial(answer: Any, name: str, **hot: Any) -> Right:
    """A figure of one setting that was played."""
    return Right(figure(name, _trial(answer, hot)))


def _trial(answer: Any, hot: Mapping[str, Any]) -> Any:
    for one in answer.results:
        if one.figures and all((one.point.hot.get(name) or 0) == value for name, value in hot.items()):
            return one
    words = ", ".join(f"{name} {value}" for name, value in hot.items())
    raise InputError("setting", words, "one that was played", "play it")


def _memory(*runs: Any) -> metrics.MemoryFit:
    fit = metrics.memory_fit(metrics.pooled(run.trace for run in runs))
    if fit is None:
        raise InputError("runs", "too few step sizes with a peak", "at least three", "play other budgets as well")
    return fit


def _floor(tokens: int, gpus: int, gpu: str, model: str) -> Floor:
    return floor_of(named(model), device(gpu), gpus, prefill_tokens=tokens)


def _largest(cost: Callable[[float], float], allowed: float, most: int) -> int:
    """The largest whole number whose cost is allowed; the cost never falls."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(middle) <= allowed else (low, middle - 1)
    return low


_ALL: tuple[Callable[..., Right], ...] = (
    budget_for_gap,
    tokens_for_memory,
    memory_of_step,
    blocks_wanted,
    cached_with_groups,
    saved_percent,
    floor_s,
    gpus_for,
    trials_played,
    picked,
    broken_limit,
    figure_of_trial,
)
LIMITS: Mapping[str, Callable[..., Right]] = {one.__name__: one for one in _ALL}
