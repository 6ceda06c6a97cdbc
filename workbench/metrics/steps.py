"""What the step records say on their own: memory against step size, and the prefill steps of each prompt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from workbench.trace import Trace, floats


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """Peak activation memory as a power of the tokens in the step: bytes = e^intercept * tokens^exponent.

    Attributes:
        exponent: 1 is straight, 2 is square.
        low: lower end of the exponent's 95 % confidence interval.
        high: upper end.
        intercept: natural logarithm of the bytes of a step of one token.
        n: points of the upper envelope that the fit went through.
        steps: steps with a measured peak behind them.
        min_tokens: smallest step in the fit.
        max_tokens: largest step in the fit.
    """

    exponent: float
    low: float
    high: float
    intercept: float
    n: int
    steps: int
    min_tokens: int
    max_tokens: int

    def bytes_at(self, tokens: float) -> float:
        """Peak that the fit expects in a step of that many tokens."""
        return float(np.exp(self.intercept) * tokens**self.exponent)

    def tokens_in(self, size: float) -> int:
        """Tokens of the largest step that the fit expects to need at most ``size`` bytes."""
        # The inverse of a power may be off by the last digit: a step that needs exactly ``size`` fits.
        return int((size / np.exp(self.intercept)) ** (1 / self.exponent) * (1 + 1e-12))


def pooled(traces: Iterable[Trace]) -> Trace:
    """The first trace with the steps of all, for a fit over several runs of one engine."""
    first, *others = traces
    steps = pa.concat_tables([first.tables["steps"], *(trace.tables["steps"] for trace in others)])
    return Trace({**first.tables, "steps": steps}, first.meta)


def memory_fit(trace: Trace, *, min_tokens: int = 64) -> MemoryFit | None:
    """Fit the exponent of activation memory against tokens in the step.

    Least squares in logarithms through the upper envelope: the largest peak in each half octave of step size, since
    a step that finds its memory still resident measures too little but never too much.

    Args:
        trace: of a run with measured peaks.
        min_tokens: smaller steps are left out; there the page size outweighs the activation.

    Returns:
        None when there are fewer than three sizes to fit.
    """
    table = trace.tables["steps"]
    tokens = floats(table["prefill_tokens"]) + floats(table["decode_tokens"])
    peak = floats(table["activation_bytes"])
    sound = (tokens >= min_tokens) & (peak > 0)
    tokens, peak = tokens[sound], peak[sound]
    order = np.lexsort((-peak, np.round(2 * np.log2(tokens))))
    _, first = np.unique(np.round(2 * np.log2(tokens))[order], return_index=True)
    top = order[first]
    if len(top) < 3:
        return None
    from scipy.special import stdtrit  # here, since it takes a while to import

    x, y = np.log(tokens[top]), np.log(peak[top])
    spread = float(((x - x.mean()) ** 2).sum())
    exponent = float(((x - x.mean()) * (y - y.mean())).sum()) / spread
    intercept = float(y.mean() - exponent * x.mean())
    residual = y - intercept - exponent * x
    error = float(np.sqrt((residual**2).sum() / (len(x) - 2) / spread) * stdtrit(len(x) - 2, 0.975))
    return MemoryFit(
        exponent=exponent,
        low=exponent - error,
        high=exponent + error,
        intercept=intercept,
        n=len(x),
        steps=len(tokens),
        min_tokens=int(tokens[top].min()),
        max_tokens=int(tokens[top].max()),
    )


def prefill_steps(trace: Trace) -> pd.DataFrame:
    """Return one row a request whose prompt was computed: in how many steps, and the largest chunk.

    Columns: ``request``, ``prefill_steps``, ``largest_chunk``, ``prefill_tokens``. More tokens than the prompt has mean
    that it was computed again after a preemption; fewer, that the prefix cache held the rest.
    """
    batch = trace.tables["batch"].select(["request", "step", "tokens", "prefill"]).to_pandas()
    batch = batch[batch["prefill"].eq(True) & (batch["tokens"] > 0)]
    grouped = batch.groupby("request", sort=False)
    frame = pd.DataFrame(
        {
            "prefill_steps": grouped["step"].nunique(),
            "largest_chunk": grouped["tokens"].max(),
            "prefill_tokens": grouped["tokens"].sum(),
        }
    )
    return frame.astype("int64").reset_index()
