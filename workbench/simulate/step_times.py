"""From a step-time model's plain data, as it travels to the child, to a function of what a step holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.engine.probe.wire import Part
from workbench.errors import ConfigError

TimeOf = Callable[[Sequence[Part]], tuple[float, float]]  # seconds until the output, and until the next may begin

LINEAR = ("base_s", "prefill_token_s", "prefill_pair_s", "decode_s", "decode_context_s")


def load(spec: Mapping[str, Any]) -> TimeOf:
    """The function that a description stands for.

    Args:
        spec: ``kind`` and the model's own fields. ``linear`` has the coefficients :data:`LINEAR`, in seconds: a step,
            a prompt token, a pair of a prompt token and one that it attends to, a decode, a token that a decode
            attends to; those left out are 0. Other kinds are models of :mod:`workbench.simulate.steptime`.

    Raises:
        ConfigError: there is no such kind, or the description lacks something.
    """
    kind = spec.get("kind")
    if kind == "linear":
        return _linear(*(float(spec.get(name, 0.0)) for name in LINEAR))
    from workbench.simulate.steptime import StepShape, from_spec  # here: numpy, and tables where they are installed

    model = from_spec(spec)
    shape_of, seconds = StepShape.of, model.seconds
    interval = getattr(model, "interval", None) if spec.get("pp", 1) > 1 else None

    def both(parts: Sequence[Part]) -> tuple[float, float]:
        shape = shape_of(parts)
        whole = seconds(shape)
        return whole, interval(shape) if interval is not None else whole

    return both


def _linear(base: float, token: float, pair: float, decode: float, context: float) -> TimeOf:
    if min(base, token, pair, decode, context) < 0 or not base + token + decode > 0:
        raise ConfigError(
            "step_time", (base, token, pair, decode, context), "no coefficient below 0, one above", "fit again"
        )

    def seconds(parts: Sequence[Part]) -> tuple[float, float]:
        total = base
        for part in parts:
            if part.prefill:
                total += part.tokens * (token + pair * (part.context + (part.tokens + 1) / 2))
            else:
                total += part.tokens * (decode + context * part.context)
        return total, total

    return seconds
