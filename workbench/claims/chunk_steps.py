"""C2: a prompt of L tokens becomes ceil(L/C) steps. Which C? Counted from the step records."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import pandas as pd

from workbench.claims.long_prompt import LongPrompt
from workbench.claims.verdict import Measured, Outcome, Verdict, origin_of
from workbench.errors import InputError
from workbench.i18n import phrase, phrase_counted, phrases


@dataclass(frozen=True)
class Count:
    """The steps of one long prompt beside the formula's."""

    long: LongPrompt

    @property
    def size(self) -> int:
        """C: the chunk cap where one is set, but never more than the budget."""
        return min(self.long.chunk or self.long.budget, self.long.budget)

    @property
    def formula(self) -> int:
        """Steps by the claim."""
        return ceil(self.long.tokens / self.size)

    @property
    def counted(self) -> int:
        """Steps that carried prompt tokens."""
        return len(self.long.chunks)

    @property
    def decodes(self) -> int:
        """Tokens of others in a typical step of the prefill."""
        return int(np.median(self.long.beside))

    @property
    def alone(self) -> bool:
        """Whether no step of the prefill had a token of another request."""
        return not any(self.long.beside)

    @property
    def why(self) -> str:
        """What explains a difference, as far as the records show it."""
        if self.counted == self.formula:
            return ""
        if self.long.chunk and self.alone and max(self.long.chunks) > self.long.chunk:
            return phrase("alone in the engine: vLLM does not apply the cap then, and takes the whole budget")
        full = [a + b == self.long.budget for a, b in zip(self.long.chunks, self.long.beside, strict=True)]
        room = self.long.budget - self.decodes
        if all(full[:-1]) and room > 0 and ceil(self.long.tokens / room) == self.counted:
            return phrase(
                "decodes take {decodes} of the budget first: ⌈{tokens:,} / {room:,}⌉ = {counted}",
                decodes=self.decodes,
                tokens=self.long.tokens,
                room=room,
                counted=self.counted,
            )
        return phrase("not explained by the budget")

    @property
    def clause(self) -> str:
        """One clause of the verdict."""
        chunk = 0 < self.long.chunk <= self.long.budget
        same = phrase("as the formula says")
        if self.why:
            same = phrase("the formula says {formula}; {why}", formula=self.formula, why=self.why)
        return phrase_counted(
            "{tokens:,} tokens at {knob} {size:,}: {n} step ({same})",
            "{tokens:,} tokens at {knob} {size:,}: {n} steps ({same})",
            self.counted,
            tokens=self.long.tokens,
            knob=phrase("chunk") if chunk else phrase("budget"),
            size=self.size,
            same=same,
        )


def step_counts(*runs: Measured) -> pd.DataFrame:
    """One row a run: the formula's steps and the counted ones.

    Raises:
        InputError: see :meth:`LongPrompt.of`.
    """
    counts = [Count(LongPrompt.of(run)) for run in runs]
    return pd.DataFrame(
        {
            "prompt tokens": [one.long.tokens for one in counts],
            "budget": [one.long.budget for one in counts],
            "chunk": [one.long.chunk or "off" for one in counts],
            "decodes beside": [one.decodes for one in counts],
            "⌈L/C⌉": [one.formula for one in counts],
            "counted": [one.counted for one in counts],
        }
    )


def chunk_steps(*runs: Measured) -> Verdict:
    """Judge C2 from runs with one long prompt each.

    C is the chunk cap, or the token budget where that is smaller or no cap is set. Holds when every count is
    that of the formula, in part when some are, and not when none is: a count is exact, so there is no tolerance.

    Raises:
        InputError: no run is given; see also :meth:`LongPrompt.of`.
    """
    if not runs:
        raise InputError("runs", "none", "at least one run with a long prompt", "play one")
    counts = [Count(LongPrompt.of(run)) for run in runs]
    right = sum(one.counted == one.formula for one in counts)
    outcome: Outcome = "holds" if right == len(counts) else "holds in part" if right else "does not hold here"
    return Verdict(
        claim="C2",
        text="A prompt of L tokens becomes ⌈L/C⌉ steps",
        outcome=outcome,
        sentence=phrases("; ", [one.clause for one in counts]) + phrase("."),
        origin=origin_of(runs),
        article="32,768 tokens at C = 1,024 are 32 steps.",
        untested="" if any(one.long.tokens == 32_768 for one in counts) else phrase("32,768 tokens at C = 1,024."),
    )
