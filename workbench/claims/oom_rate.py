"""C16: with chunks nothing runs out of memory. The largest step that fits, and how many requests are over it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from workbench.claims.article_rows import ARTICLE, oom
from workbench.claims.verdict import Measured, Outcome, Verdict, origin_of, origins
from workbench.errors import InputError
from workbench.i18n import phrase, phrases
from workbench.metrics import memory_fit, pooled
from workbench.simulate.hardware_setup import set_up
from workbench.simulate.host import Simulator
from workbench.simulate.memory import Memory
from workbench.simulate.stage import staged
from workbench.trace import Trace
from workbench.units import GIB, MIB
from workbench.workload.scenario import Scenario, Setting

BUDGETS = (512, 2048, 8192, 16_384)
BUDGET = 2048  # the article's
SHARES = (0.92, 0.95)  # of the memory that the engine takes: vLLM's default, and a common wish for more
_HOST = "host available"  # the memory source that says what a CPU engine may still take


@dataclass(frozen=True)
class Chunking:
    """One engine that was started for chunks of :data:`BUDGET`, with them and without.

    Attributes:
        share: of the memory that it takes.
        memory: of one of its GPUs.
        over: requests whose prompt alone is larger than the largest step that fits.
        requests: all of them.
        without: whole prompts in one step, though the engine has reserved memory for the budget only.
        chunked: the same with chunks.
    """

    share: float
    memory: Memory
    over: int
    requests: int
    without: Trace
    chunked: Trace

    @property
    def largest(self) -> int:
        """Tokens of the largest single step that fits."""
        return self.memory.largest_step(BUDGET)


def play_chunking(
    scenario: Scenario, shares: Sequence[float] = SHARES, *, simulator: Simulator | None = None
) -> list[Chunking]:
    """Simulate a load with and without chunks on engines that differ in how much of the memory they take.

    vLLM reserves memory for a step of its whole budget, and without chunks it refuses a budget below the longest
    prompt. So that there is anything to see, the engine without chunks has the KV pool of one that was started with
    :data:`BUDGET`, and is then given whole prompts.

    Args:
        scenario: its engine is a simulated one with a budget for whole prompts.
        shares: ``gpu_memory_utilization`` of each engine.
        simulator: one that runs and plays nothing; by default one is started, and ended afterwards.

    Raises:
        InputError: the engine is not a simulated one, or not on GPUs.
        EngineError: a play failed.
    """
    found = []
    with staged(scenario, simulator) as stage:
        for share in shares:
            setup = set_up(stage.config.replace(gpu_memory_utilization=share))
            memory = setup.memory
            if memory is None:
                raise InputError("scenario", scenario.name, "GPUs, whose memory is counted", "choose one with gpu")
            most = memory.largest_step(BUDGET)
            traces = [
                stage.play(setup, setting, blocks=memory.blocks(BUDGET), most_step_tokens=most)
                for setting in (
                    Setting(name="whole prompts", policy="monolithic"),
                    Setting(name="chunks", budget=BUDGET),
                )
            ]
            over = sum(one.prompt_tokens > most for one in stage.workload.requests)
            found.append(Chunking(share, memory, over, len(stage.workload.requests), *traces))
    return found


def chunking_table(engines: Iterable[Chunking], budgets: Sequence[int] = BUDGETS) -> pd.DataFrame:
    """One row an engine and budget that it is started with, index ``memory share`` and ``budget``.

    Columns: ``activation GiB`` (what vLLM reserves for a step of the budget, so that chunks always fit), ``KV tokens``
    (that the pool holds), and ``largest step`` (tokens of the largest single step that fits: a longer prompt would die
    without chunks).
    """
    rows = [
        {
            "memory share": one.share,
            "budget": row["budget"],
            "activation GiB": row["activation_bytes"] / GIB,
            "KV tokens": row["kv_tokens"],
            "largest step": row["largest_step_tokens"],
        }
        for one in engines
        for row in one.memory.table(budgets)
    ]
    return pd.DataFrame(rows).set_index(["memory share", "budget"])


def oom_rate(engines: Sequence[Chunking], live: Sequence[Measured] = ()) -> Verdict:
    """Judge C16 from simulated engines, and from live runs with measured peaks where there are some.

    Holds when on every engine requests run out of memory without chunks and none does with them; in part when that is
    so on some; does not hold here when no request ran out of memory either way, or some did with chunks.

    Args:
        engines: as :func:`play_chunking` gives them.
        live: runs on one engine; what they measured is told, not judged.

    Raises:
        InputError: there is no engine, or the live runs have too few peaks.
    """
    if not engines:
        raise InputError("engines", phrase("none"), phrase("at least one"), phrase("call play_chunking(scenario)"))
    rates = [(oom(one.without), oom(one.chunked)) for one in engines]
    fell = [before > 0 and not after for before, after in rates]
    outcome: Outcome = "does not hold here"
    if not any(after for _, after in rates):
        outcome = "holds" if all(fell) else "holds in part" if any(fell) else outcome
    said = [
        phrase(
            "taking {share:.0%} of the memory the largest single step is {largest:,} tokens: {over} of "
            "{requests} prompts are longer, and {before:.1%} of the requests run out of memory without "
            "chunks, {after:.1%} with chunks of {budget:,}",
            share=one.share,
            largest=one.largest,
            over=one.over,
            requests=one.requests,
            before=before,
            after=after,
            budget=BUDGET,
        )
        for one, (before, after) in zip(engines, rates, strict=True)
    ]
    rate, every = ARTICLE["monolithic"].oom, engines[0].requests
    return Verdict(
        claim="C16",
        text="With chunking the OOM rate goes from 12.5 % to 0",
        outcome=outcome,
        sentence=phrase(
            "{what}: {engines}.{live}", what=engines[0].memory.what, engines=phrases("; ", said), live=_live(live)
        ),
        origin=phrase(
            "{origins}, memory counted from sizes (estimate)", origins=origins(one.without.meta for one in engines)
        ),
        article=phrase("{rate:.1%} to 0.", rate=rate),
        arithmetic=phrase(
            "vLLM reserves the activation of a step of its budget at the start, so no chunk can run out of "
            "memory; without chunks it refuses a budget below the longest prompt, so a whole prompt cannot "
            "either, at the price of KV pool. A CUDA engine that does run out ends with all its requests, "
            "not with {rate:.1%} of them, which of {every} would be {rate2:,.2f} requests.",
            rate=rate,
            every=every,
            rate2=rate * every,
        ),
        untested=phrase("CUDA's allocator.") if not live else "",
    )


def _live(runs: Sequence[Measured]) -> str:
    """The measured peak against what was free, and where the fit says that a step would not fit any more."""
    if not runs:
        return ""
    trace = pooled(run.trace for run in runs)
    fit, steps = memory_fit(trace), trace.steps
    if fit is None:
        raise InputError("live", "too few step sizes with a peak", "at least three", "play other budgets as well")
    peak = float(steps["activation_bytes"].max())
    free = [run.trace.memory.loc[run.trace.memory["source"] == _HOST, "bytes"].min() for run in runs]
    least = min((float(one) for one in free if pd.notna(one)), default=None)
    told = phrase(
        " Measured ({origin_of}): steps of up to {max_tokens:,} tokens needed {peak:,.1f} MiB",
        origin_of=origin_of(runs),
        max_tokens=fit.max_tokens,
        peak=peak / MIB,
    )
    if least is None:
        return told + phrase("; how much was free is not on record.")
    most = fit.tokens_in(least)
    return phrase(
        "{told} of {least:,.1f} GiB free; by the fit a step of more than {most:,} tokens would not fit.",
        told=told,
        least=least / GIB,
        most=most,
    )
