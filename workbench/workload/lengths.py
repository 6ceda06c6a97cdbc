"""How many tokens a prompt or an output has: one number, or a distribution to draw from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, model_validator

from workbench.config import Frozen

MAX_TOKENS = 10_000_000
_Z99 = NormalDist().inv_cdf(0.99)

Ints = npt.NDArray[np.int64]


def check_kind(data: Any, kinds: Sequence[str], also: str = "") -> Any:
    """Return ``data``, the plain form of a configuration that comes in several kinds, if it names one of them.

    Raises:
        ValueError: no kind or an unknown one, with all of them in the message (pydantic's own speaks of tags).
    """
    if not isinstance(data, Frozen) and (not isinstance(data, dict) or data.get("kind") not in kinds):
        raise ValueError(f"a mapping with kind: {' or '.join(kinds)}{also}")
    return data


class Fixed(Frozen):
    """Always the same length; in a file, a bare number."""

    kind: Literal["fixed"] = "fixed"
    tokens: int = Field(ge=1, le=MAX_TOKENS, description="The length.", json_schema_extra={"unit": "tokens"})

    @property
    def longest(self) -> int:
        """The most tokens that a sample can hold."""
        return self.tokens

    def sample(self, rng: np.random.Generator, n: int) -> Ints:  # noqa: ARG002 - the signature of all kinds
        """Draw ``n`` lengths."""
        return np.full(n, self.tokens, dtype=np.int64)


class Uniform(Frozen):
    """Any length between two bounds, each as likely."""

    kind: Literal["uniform"] = "uniform"
    min: int = Field(ge=1, le=MAX_TOKENS, description="Shortest length.", json_schema_extra={"unit": "tokens"})
    max: int = Field(ge=1, le=MAX_TOKENS, description="Longest length.", json_schema_extra={"unit": "tokens"})

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min > self.max:
            raise ValueError("min at most max")
        return self

    @property
    def longest(self) -> int:
        """The most tokens that a sample can hold."""
        return self.max

    def sample(self, rng: np.random.Generator, n: int) -> Ints:
        """Draw ``n`` lengths."""
        return rng.integers(self.min, self.max, n, dtype=np.int64, endpoint=True)


class LogNormal(Frozen):
    """Many short and a few long, as real traffic has it: given by the two numbers that dashboards show.

    Draws outside ``min`` and ``max`` are set to the bound.
    """

    kind: Literal["lognormal"] = "lognormal"
    median: int = Field(ge=1, le=MAX_TOKENS, description="Half are shorter.", json_schema_extra={"unit": "tokens"})
    p99: int = Field(ge=1, le=MAX_TOKENS, description="99 % are shorter.", json_schema_extra={"unit": "tokens"})
    min: int = Field(1, ge=1, le=MAX_TOKENS, description="Shortest length.", json_schema_extra={"unit": "tokens"})
    max: int = Field(ge=1, le=MAX_TOKENS, description="Longest length.", json_schema_extra={"unit": "tokens"})

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.min <= self.median <= self.p99 <= self.max:
            raise ValueError("min, median, p99 and max in rising order")
        return self

    @property
    def longest(self) -> int:
        """The most tokens that a sample can hold."""
        return self.max

    def sample(self, rng: np.random.Generator, n: int) -> Ints:
        """Draw ``n`` lengths."""
        sigma = math.log(self.p99 / self.median) / _Z99
        draws = np.rint(rng.lognormal(math.log(self.median), sigma, n))
        return np.clip(draws, self.min, self.max).astype(np.int64)


def _readable(data: Any) -> Any:
    if isinstance(data, int) and not isinstance(data, bool):
        return {"kind": "fixed", "tokens": data}
    return check_kind(data, ("fixed", "uniform", "lognormal"), ", or a bare number of tokens")


Length = Annotated[Fixed | Uniform | LogNormal, Field(discriminator="kind"), BeforeValidator(_readable)]
