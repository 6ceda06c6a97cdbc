"""How each claim is judged from whatever runs there are: the ones that fit are looked for, none is made up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from workbench import claims, metrics
from workbench.claims.cached_prefix import cached_prefix
from workbench.claims.evidence import Evidence, load_of
from workbench.claims.long_prompt import LongPrompt
from workbench.claims.resolved import STAND_IN
from workbench.claims.verdict import Measured, Verdict
from workbench.errors import InputError
from workbench.i18n import phrase
from workbench.presets import preset

_CHUNK = 1_024  # the article's, of C4
_EQUAL = 4  # chunks of one size that C5 wants at least
T = TypeVar("T")


@dataclass(frozen=True)
class Judged:
    """A verdict, and what a picture of it may show.

    Attributes:
        verdict: on the claim.
        runs: that it was judged from, by the name that a picture gives them.
    """

    verdict: Verdict
    runs: Mapping[str, Measured] = field(default_factory=dict)


def c1(evidence: Evidence) -> Judged:
    """The longest prompt that came in one step beside streams."""
    whole = [(run, long) for run, long in evidence.prompts if len(long.chunks) == 1]
    whole.sort(key=lambda one: (one[1].tokens, len(one[1].streams)), reverse=True)
    return _first(whole, lambda one: Judged(claims.freeze(one[0]), {"one step": one[0]}))


def c2(evidence: Evidence) -> Judged:
    """All prompts that came in chunks."""
    many = [(run, long) for run, long in evidence.prompts if len(long.chunks) > 1]
    found = claims.chunk_steps(*(run for run, _ in many))
    return Judged(found, {many[0][1].setting: many[0][0]})


def c3(evidence: Evidence) -> Judged:
    """A prompt in one step, and the same load in chunks."""

    def judge(whole: Measured) -> Judged:
        runs = {"one step": whole}
        runs |= {long.setting: run for run, long in _chunked(evidence, whole) if long.streams}
        return Judged(claims.flat_gaps(*runs.values()), runs)

    return _first(_whole(evidence), judge)


def c4(evidence: Evidence) -> Judged:
    """A prompt in one step, and in the chunks that are nearest to the article's."""

    def judge(whole: Measured) -> Judged:
        found = sorted(_chunked(evidence, whole), key=lambda one: abs(max(one[1].chunks) - _CHUNK))
        return _first(
            found, lambda one: Judged(claims.peak_drop(whole, one[0]), {"one step": whole, one[1].setting: one[0]})
        )

    return _first(_whole(evidence), judge)


def c5(evidence: Evidence) -> Judged:
    """A prompt in equal chunks, and every other size of step on the same engine."""

    def judge(chunked: Measured) -> Judged:
        runs = {long.setting: run for run, long in evidence.beside(chunked)}
        others = [run for run in runs.values() if run is not chunked]
        return Judged(claims.memory_exponent(chunked, *others), runs)

    many = [(run, long) for run, long in evidence.prompts if len(long.chunks) > _EQUAL]
    many.sort(key=lambda one: abs(max(one[1].chunks) - _CHUNK))
    return _first([run for run, _ in many], judge)


def c6(evidence: Evidence) -> Judged:
    """What vLLM resolves without a flag, and what the engine runs with."""
    asked = _asked(evidence)
    return Judged(claims.flag_needed(asked.without_flags, asked.engine or {"vllm": asked.vllm, "label": "no engine"}))


def c7(evidence: Evidence) -> Judged:
    """A sweep of the budget, and of the chunk, of one load."""

    def judge(first: Measured) -> Judged:
        sweep = {
            long.setting: run
            for run, long in evidence.beside(first)
            if long.policy == "chunked" and long.streams and len(long.chunks) > 1
        }
        return Judged(claims.golden_range(*sweep.values()), sweep)

    firsts = {load_of(run): run for run, long in evidence.prompts if len(long.chunks) > 1}
    return _first(firsts.values(), judge)


def c8(evidence: Evidence) -> Judged:
    """What vLLM makes of the article's command."""
    asked = _asked(evidence)
    origin = phrase("resolved by {vllm} for {model}", vllm=asked.vllm, model=STAND_IN)
    return Judged(claims.reference_command(preset("article").config, asked.article, origin))


def c9(evidence: Evidence) -> Judged:
    """The run of stock scheduling with the most steps that mix prefill and decodes in large chunks."""
    stock = [run for run, long in evidence.prompts if long.policy == "chunked" and len(long.chunks) > 1]
    sizes = {id(run): max(long.chunks) for run, long in evidence.prompts}
    stock.sort(key=lambda run: abs(sizes[id(run)] - _CHUNK))
    rest = [run for run in evidence.runs if not any(run is one for one in stock)]
    return _first([*stock, *rest], lambda run: Judged(claims.utilisation(run), {"mixed": run}))


def c10(evidence: Evidence) -> Judged:
    """Runs in which somebody was preempted; those of stock scheduling before those of policy qos."""
    hit = [run for run in evidence.runs if len(metrics.preemptions(run.trace))]
    stock = [run for run in hit if "qos" not in _policies(run)]
    return _first([*stock, *hit], lambda run: Judged(claims.preemption_cost(run), {"preempted": run}))


def c11(evidence: Evidence) -> Judged:
    """The prompt in the most chunks: what its prefill cost is measured best."""
    many = sorted(evidence.prompts, key=lambda one: len(one[1].chunks), reverse=True)
    return _first([run for run, _ in many], lambda run: Judged(claims.recompute_or_swap(run), {"prefill": run}))


def c12(evidence: Evidence) -> Judged:
    """A run under policy qos, beside the same load without it; the one with a full KV pool first."""

    def judge(run: Measured) -> Judged:
        plain = (one for one in evidence.runs if load_of(one) == load_of(run) and "qos" not in _policies(one))
        return Judged(claims.qos_classes(run, against=next(plain, None)), {"qos": run})

    qos = [run for run in evidence.runs if "qos" in _policies(run)]
    return _first(sorted(qos, key=_kv_use, reverse=True), judge)


def c13(evidence: Evidence) -> Judged:
    """Every step of every run that mixes prefill and decodes."""
    runs = [run for run in evidence.runs if _judges(lambda one: claims.step_order(one), run)]
    busiest = sorted(runs, key=lambda run: len(metrics.preemptions(run.trace)), reverse=True)
    return Judged(claims.step_order(*runs), dict(zip(["steps"], busiest, strict=False)))


def c14(evidence: Evidence) -> Judged:
    """The article's table, simulated."""
    return Judged(claims.eight_h100s(evidence.article))


def c15(evidence: Evidence) -> Judged:
    """One load of shared prefixes, without the cache and with it."""

    def judge(off: Measured) -> Judged:
        on = [run for run in evidence.runs if load_of(run) == load_of(off) and _cached(run)]
        whole = min(on, key=_prefill_steps, default=off)
        chunked = next((run for run in on if _prefill_steps(run) > _prefill_steps(whole)), None)
        found = cached_prefix(off, whole, reset=chunked, chunked=chunked)
        return Judged(found, {"cache off": off, "cache on": whole})

    return _first([run for run in evidence.runs if _shares(run) and not _cached(run)], judge)


def c16(evidence: Evidence) -> Judged:
    """Engines with and without chunks, simulated; beside them the measured peaks, where there are some."""
    live: Mapping[str, Measured] = {}
    with suppress(InputError):
        live = c4(evidence).runs if evidence.source == "live" else {}
    return Judged(claims.oom_rate(evidence.engines, live=tuple(live.values())))


def _first(candidates: Iterable[T], judge: Callable[[T], Judged]) -> Judged:
    """The first that can be judged.

    Raises:
        InputError: there is no candidate, or why the first of them could not be judged.
    """
    why: InputError | None = None
    for one in candidates:
        try:
            return judge(one)
        except InputError as error:
            why = why or error
    raise why or InputError("runs", phrase("none that fits"), phrase("what the claim is about"), phrase("play it"))


def _whole(evidence: Evidence) -> list[Measured]:
    one = [(run, long) for run, long in evidence.prompts if len(long.chunks) == 1 and long.streams]
    return [run for run, _ in sorted(one, key=lambda pair: pair[1].tokens, reverse=True)]


def _chunked(evidence: Evidence, whole: Measured) -> list[tuple[Measured, LongPrompt]]:
    return [(run, long) for run, long in evidence.beside(whole) if len(long.chunks) > 1]


def _asked(evidence: Evidence) -> Any:
    if evidence.asked is None:
        expected = phrase("what it resolves two command lines to")
        raise InputError("vLLM", phrase("not asked"), expected, phrase("live and simulated ask it"))
    return evidence.asked


def _judges(judge: Callable[[Measured], Verdict], run: Measured) -> bool:
    try:
        judge(run)
    except InputError:
        return False
    return True


def _policies(run: Measured) -> set[str]:
    used = set(run.trace.tables["steps"]["revision"].to_pylist())
    knobs = run.trace.tables["knobs"].select(["revision", "policy"]).to_pylist()
    return {str(one["policy"]) for one in knobs if one["revision"] in used}


def _kv_use(run: Measured) -> float:
    known = run.trace.steps["kv_use"].dropna()
    return float(known.max()) if len(known) else 0.0


def _shares(run: Measured) -> bool:
    """Whether a stream of its scenario has a shared prefix."""
    scenario = (run.trace.meta.get("workload") or {}).get("scenario") or {}
    return any(stream.get("shared_prefix") for stream in scenario.get("streams", ()))


def _cached(run: Measured) -> bool:
    try:
        return bool(claims.cache_lookups(run)["cached_tokens"].any())
    except InputError:  # no request of it was computed
        return False


def _prefill_steps(run: Measured) -> int:
    return int(claims.cache_lookups(run)["prefill_steps"].sum())
