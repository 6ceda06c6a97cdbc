"""C7: is there a golden range of the budget, and where is the knee on this machine and model?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import nnls

from workbench.claims.limits import H100
from workbench.claims.long_prompt import LongPrompt
from workbench.claims.verdict import Measured, Outcome, Verdict, on_gpu, origin_of
from workbench.errors import InputError
from workbench.i18n import phrase, phrases

# Stretched: less than 90 % of the best prefill rate of the sweep. Single plays differ by some percent.
FULL_SPEED = 0.9
NEAR = 0.03  # so near a threshold, the next play may fall on its other side
LOW, HIGH = 2_048, 4_096  # the article's golden range
SMALL, LARGE, SMALL_CHUNK = 512, 8_192, 128


@dataclass(frozen=True)
class Place:
    """Where one setting of the sweep lies.

    Attributes:
        long: its long prompt.
        fast: whether its prefill is not stretched.
        rate: its prefill rate against the best of the sweep, 0 to 1.
        slo_ms: the gap that its SLO allows.
    """

    long: LongPrompt
    rate: float
    slo_ms: float

    @property
    def fast(self) -> bool:
        """Whether its prefill is not stretched."""
        return self.rate >= FULL_SPEED

    @property
    def smooth(self) -> bool:
        """Whether P99 of the gaps during the prefill keeps the SLO."""
        return self.long.during(99) <= self.slo_ms

    @property
    def golden(self) -> bool:
        """Neither stretched nor with pauses."""
        return self.fast and self.smooth

    @property
    def clause(self) -> str:
        """Setting, rate and gap; the one that lies within 3 % of its threshold is called borderline."""
        rate, gap = _near(self.rate, FULL_SPEED), _near(self.long.during(99), self.slo_ms)
        return phrase(
            "{setting} {rate:.0%}{rate2}, {during_99:,.0f} ms{gap}",
            setting=self.long.setting,
            rate=self.rate,
            rate2=rate,
            during_99=self.long.during(99),
            gap=gap,
        )


@dataclass(frozen=True)
class StepCost:
    """What a step with prefill costs: ``fixed_s + tokens * token_s``.

    Attributes:
        fixed_s: with the decodes beside it but no prefill, s.
        token_s: for each token of prefill, at the mean context of the prompts, s.
        last_token_s: the same at the end of the longest prompt, where a token has the most to attend to.
    """

    fixed_s: float
    token_s: float
    last_token_s: float

    @classmethod
    def of(cls, prompts: Sequence[LongPrompt]) -> Self:
        """Fit seconds = fixed + a * tokens + b * tokens * context to all steps; none of the three is below 0.

        The last term is attention: a chunk late in a prompt costs more than an early one. Least squares of the
        relative error, so that the many short steps count.

        Raises:
            InputError: there are fewer than three step sizes.
        """
        tokens = np.concatenate([long.chunks for long in prompts]).astype(float)
        seconds = np.concatenate([long.step_s for long in prompts])
        context = np.concatenate([np.cumsum(long.chunks) - np.array(long.chunks) / 2 for long in prompts])
        if len(np.unique(tokens)) < 3:
            raise InputError("runs", "fewer than three step sizes", "a sweep of the budget", "play more settings")
        design = np.column_stack((np.ones_like(tokens), tokens, tokens * context))
        scale = design.max(axis=0)  # the columns differ by eight orders
        fixed, each, attention = nnls(design / scale / seconds[:, None], np.ones_like(seconds))[0] / scale
        mean = float((tokens * context).sum() / tokens.sum())
        return cls(float(fixed), float(each + attention * mean), float(each + attention * context.max()))

    def tokens_in(self, seconds: float) -> int:
        """The largest chunk whose step takes no longer than that, even at the end of the prompt."""
        return max(0, int((seconds - self.fixed_s) / self.last_token_s))

    @property
    def full_speed_tokens(self) -> int:
        """The chunk from which the fixed part costs no more than a tenth of the time."""
        return max(1, int(np.ceil(FULL_SPEED / (1 - FULL_SPEED) * self.fixed_s / self.token_s)))


def places(*runs: Measured) -> list[Place]:
    """Judge each setting of a sweep by the SLO of its run and the fastest prefill of all.

    Raises:
        InputError: see :meth:`LongPrompt.of`; or no stream ran through a prefill.
    """
    prompts = [LongPrompt.of(run) for run in runs]
    if not all(long.streams for long in prompts):
        raise InputError(
            "runs", "a run without a stream", "streams all through the prefill", "let the chats run longer"
        )
    best = max((long.tokens_per_s for long in prompts), default=0.0)
    return [Place(long, long.tokens_per_s / best, run.slo.gap_ms) for long, run in zip(prompts, runs, strict=True)]


def golden_range(*runs: Measured) -> Verdict:
    """Judge C7 from a sweep of the budget (chunk off) and one or more chunk caps.

    The claim has four parts: budget 512 stretches the prefill, 8,192 brings pauses, 2,048 and 4,096 do neither, and
    chunk 128 stretches the prefill. *Stretched* is a prefill rate under 90 % of the sweep's best; a *pause* is a P99 of
    the gaps during the prefill above the SLO. Holds when all parts do; does not hold here when 2,048 and 4,096 are
    not both golden, since that is the advice; in part when they are and another part fails.

    Raises:
        InputError: a budget or the chunk that the claim names was not played, a setting was played twice, or a run has
            another policy than "chunked"; see also :func:`places`.
    """
    found = places(*runs)
    _expect_sweep(found)
    budgets = {place.long.budget: place for place in found if not place.long.chunk}
    chunks = {place.long.chunk: place for place in found if place.long.chunk}
    missing = [f"budget {n}" for n in (SMALL, LOW, HIGH, LARGE) if n not in budgets]
    missing += [] if SMALL_CHUNK in chunks else [f"chunk {SMALL_CHUNK}"]
    if missing:
        raise InputError(
            "runs",
            phrase("no {names}", names=", ".join(missing)),
            phrase("what the claim names"),
            phrase("play these settings too"),
        )
    golden = budgets[LOW].golden and budgets[HIGH].golden
    flanks = (not budgets[SMALL].fast, not budgets[LARGE].smooth, not chunks[SMALL_CHUNK].fast)
    outcome: Outcome = "does not hold here"
    if golden:
        outcome = "holds" if all(flanks) else "holds in part"
    cost = StepCost.of([place.long for place in found])
    slo_ms = runs[0].slo.gap_ms
    here = sorted(size for size, place in budgets.items() if place.golden)
    golden_here = phrases(", ", (f"{n:,}" for n in here))
    where = phrase("budgets {golden_here}", golden_here=golden_here) if here else phrase("no budget of the sweep")
    shown = {n: budgets[n] for n in sorted({SMALL, LOW, HIGH, LARGE, *here})}  # what is called golden has its figures
    parts = [place.clause for place in (*shown.values(), chunks[SMALL_CHUNK])]
    said = (
        phrase("{small} stretches", small=SMALL),
        phrase("{large:,} brings pauses", large=LARGE),
        phrase("chunk {small_chunk} stretches", small_chunk=SMALL_CHUNK),
    )
    checks = zip((phrase("{low:,} and {high:,} do neither", low=LOW, high=HIGH), *said), (golden, *flanks), strict=True)
    checked = phrases(
        ", ",
        [
            phrase("{part}: {answer}", part=text, answer=phrase("yes") if true else phrase("no"))
            for text, true in checks
        ],
    )
    return Verdict(
        claim="C7",
        text="Budget 512 is too small, 8,192 too large, 2,048 to 4,096 golden; chunk 128 is too small",
        outcome=outcome,
        sentence=phrase(
            "{checked}. Prefill rate against the best, and P99 gap during the prefill: {value}. Golden "
            "here (≥ {full_speed:.0%} and ≤ {slo_ms:,.0f} ms): {where}. A step costs {fixed_s:,.1f} ms and "
            "{token_s:,.0f} µs a token of prefill ({last_token_s:,.0f} at the prompt's end): full speed "
            "from chunks of {full_speed_tokens:,}, and {slo_ms:,.0f} ms are used up by one of "
            "{tokens_in:,}.",
            checked=checked,
            value=phrases("; ", parts),
            full_speed=FULL_SPEED,
            slo_ms=slo_ms,
            where=where,
            fixed_s=cost.fixed_s * 1000.0,
            token_s=cost.token_s * 1000000.0,
            last_token_s=cost.last_token_s * 1000000.0,
            full_speed_tokens=cost.full_speed_tokens,
            tokens_in=cost.tokens_in(slo_ms / 1000.0),
        ),
        origin=origin_of(runs),
        article="512 too small, 2,048 to 4,096 golden, 8,192 too large, chunk 128 too small (model and GPU not given).",
        arithmetic=phrase(
            "reading bf16 weights outweighs computing below {ridge:,.0f} tokens a step on an {name} "
            "({value:,.4g} TFLOP/s over {value2:.3g} TB/s), whatever the model; where pauses begin goes "
            "with model, GPU and SLO, so no range of tokens is golden for all.",
            ridge=H100.ridge,
            name=H100.name,
            value=H100.flops.value / 1000000000000.0,
            value2=H100.bandwidth.value / 1000000000000.0,
        ),
        untested="" if on_gpu(runs) else phrase("a GPU."),
    )


def _near(value: float, threshold: float) -> str:
    return phrase(" (borderline)") if abs(value / threshold - 1) <= NEAR else ""


def _expect_sweep(found: Sequence[Place]) -> None:
    """Refuse runs of which one would take the place of another, or that were not cut by budget or chunk alone."""
    other = sorted({place.long.policy for place in found} - {"chunked"})
    if other:
        raise InputError("runs", f"policy {', '.join(other)}", "policy chunked in each", "leave these runs out")
    names = Counter(f"chunk {one.long.chunk}" if one.long.chunk else f"budget {one.long.budget}" for one in found)
    twice = [name for name, plays in names.items() if plays > 1]
    if twice:
        raise InputError("runs", f"{', '.join(twice)} more than once", "each setting once", "keep one run of each")
