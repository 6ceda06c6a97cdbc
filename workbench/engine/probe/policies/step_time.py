"""How long a step takes, learned while the engine runs from the steps that it has done."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from workbench.engine.probe.wire import Part

_MEMORY = 0.97  # weight of a step against the next one: some thirty steps count
_SURE = 6  # steps after which an outlier is called one
_WORST, _LEAST = 4.0, 0.1  # an error counts at most as so many times the usual one, or as this where that is more
_CHANGED = 3  # so many outliers in a row are none: the machine has changed,
_MEMORY_CHANGED = 0.5  # and the past fades fast
_DOUBT = 1e-3  # pull of a share towards nothing, against one step that says otherwise; see _Line
_ANY = 1 << 30  # tokens: more than any prompt


class Load(NamedTuple):
    """What a step computes, as its time depends on it.

    Attributes:
        prefill: prompt tokens.
        pairs: tokens that they attend to, each counted for each prompt token.
        decodes: tokens of requests that decode.
        context: tokens that those attend to.
    """

    prefill: int
    pairs: int
    decodes: int
    context: int

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Load:
        """The load of a step that was planned or done."""
        prefill = pairs = decodes = context = 0
        for part in parts:
            if part.prefill:
                prefill += part.tokens
                pairs += attended(part.tokens, part.context)
            else:
                decodes += part.tokens
                context += part.tokens * part.context
        return cls(prefill, pairs, decodes, context)


def attended(tokens: int, context: int) -> int:
    """Pairs of a chunk: each token attends to the context before the chunk, the chunk before it, and itself."""
    return tokens * context + tokens * (tokens + 1) // 2


class StepTime:
    """Seconds of a step, as two straight lines: one for steps with prefill, one for those that only decode.

    The second has a start of its own, since kernels for few tokens are others: SmolLM2 on one CPU core takes 30 ms for
    one token and 6.5 ms + 1.87 ms a token beside prefill (measured). Each line is a sum of a constant and a share of
    each feature of :class:`Load`; no share is negative.
    """

    def __init__(self) -> None:
        # The constant is doubted most, the prompt tokens least.
        self._mixed = _Line(doubts=(100.0, 2.0, 20.0, 5.0, 50.0))
        self._decodes = _Line(doubts=(1.0, 5.0, 10.0))

    def learn(self, load: Load, seconds: float) -> None:
        """Take in a step that is done."""
        if seconds > 0:
            line, features = self._line(load)
            line.learn(features, seconds)

    def predict(self, load: Load) -> float | None:
        """Seconds that a step is expected to take; none before the first step of its kind."""
        line, features = self._line(load)
        return line.predict(features)

    def beside(self, decodes: Load) -> float | None:
        """Seconds of a step with prefill, less what its prompt tokens take; none before the first such step."""
        return self._mixed.predict((1.0, 0, 0, decodes.decodes, decodes.context))

    def room(self, seconds: float, context: int) -> int:
        """The largest k whose :meth:`cost` after ``context`` tokens is at most ``seconds``: prompt tokens that fit."""
        if seconds <= 0:
            return 0
        _, token, pair, _, _ = self._mixed.shares
        token += pair * (context + 0.5)
        if token <= 0:  # a device on which steps of this size all take the same
            return _ANY
        # The positive root of pair / 2 * k^2 + token * k = seconds, in the form that does not cancel.
        return int(2 * seconds / (token + math.sqrt(token * token + 2 * pair * seconds)) + 1e-9)

    def cost(self, tokens: int, context: int) -> float:
        """Seconds that a chunk adds to a step."""
        return tokens * self._mixed.shares[1] + attended(tokens, context) * self._mixed.shares[2]

    def _line(self, load: Load) -> tuple[_Line, Sequence[float]]:
        if load.prefill:
            return self._mixed, (1.0, *load)
        return self._decodes, (1.0, load.decodes, load.context)


class _Line:
    """Shares of the features in the time: non-negative least squares of the relative error, over recent steps.

    The normal equations are kept and the past fades from them, so a step costs the same however many there were. An
    outlier (the machine was busy) counts as the nearest believable error; several in a row mean that it has changed.

    Args:
        doubts: of each feature. While the steps cannot tell the features apart, the time is put down to those that are
            doubted least. With the tokens among them, the first guess of a larger step is too long, not too short.
    """

    def __init__(self, doubts: Sequence[float]) -> None:
        self.shares = [0.0] * len(doubts)  # seconds for each unit of each feature
        self.steps = 0
        self._normal = np.zeros((len(doubts), len(doubts)))
        self._right = np.zeros(len(doubts))
        self._weight, self._strange = 0.0, 0  # of the steps so far; outliers in a row
        self._pull = np.diag(_DOUBT * np.array(doubts))
        self._error = _LEAST / _WORST

    def predict(self, features: Sequence[float]) -> float | None:
        if not self.steps:
            return None
        return sum(share * value for share, value in zip(self.shares, features, strict=True))

    def learn(self, features: Sequence[float], seconds: float) -> None:
        memory = _MEMORY
        if self.steps >= _SURE and (expected := self.predict(features)):
            error, most = seconds / expected - 1, max(_WORST * self._error, _LEAST)
            self._strange = self._strange + 1 if abs(error) > most else 0
            self._error += 0.05 * (min(abs(error), most) - self._error)
            if self._strange >= _CHANGED:
                memory = _MEMORY_CHANGED
            else:
                seconds = expected * (1 + min(max(error, -most, -0.5), most))
        row = np.array(features) / seconds
        self._normal = memory * self._normal + np.outer(row, row)
        self._right = memory * self._right + row
        self._weight = memory * self._weight + 1
        self.steps += 1
        size = np.sqrt(np.diagonal(self._normal))  # makes the features comparable
        size[size == 0] = 1.0  # a feature that was never there
        factor = np.linalg.cholesky(self._normal / np.outer(size, size) + self._pull / self._weight)
        shares, _ = nnls(factor.T, np.linalg.solve(factor, self._right / size))
        self.shares = (shares / size).tolist()
