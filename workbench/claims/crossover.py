"""C11: after a preemption, recompute short requests and swap long ones."""

from __future__ import annotations

import pandas as pd

from workbench.claims.verdict import Measured, Outcome, Verdict, ended, on_gpu, origin_of
from workbench.errors import InputError
from workbench.hardware import gpu
from workbench.i18n import phrase, phrases
from workbench.metrics.crossover import crossover, estimated_cost
from workbench.models.architecture import named

SHORT, LONG = 2_048, 16_384
_MODELS, _GPU = (("llama-3.1-70b", 8), ("smollm2-135m", 1)), "h100-sxm"


def recompute_or_swap(run: Measured, device: str | None = None, devices: int = 1) -> Verdict:
    """Judge C11 from a run in which prompts were prefilled in steps of several sizes.

    Recompute is what the fitted prefill cost says. Swap is KV bytes over the bandwidth that was measured between host
    and device, or else over a published link, out and in. Holds when recompute is cheaper at every length up to 2K
    and swap at every length from 16K on; in part when one of the two is so and they cross somewhere; otherwise it does
    not hold here: where one of them is cheaper at every length, the length decides nothing.

    Args:
        run: with prefill steps and the model's shape in its metadata.
        device: GPU whose published link counts instead.
        devices: GPUs that share the KV cache, each with a link.

    Raises:
        InputError: there are too few prefill steps, or the run does not say which model it was.
    """
    frame = crossover(run.trace, device=device, devices=devices)
    for way in ("recompute", "swap"):
        if frame[f"{way}_s"].isna().any():
            why = frame.attrs[f"{way}_source"]
            raise InputError("run", f"{way} {why}", "both ways known", "play long prompts in chunks on a live engine")
    ahead = frame["recompute_s"] < frame["swap_s"]
    short, long = bool(ahead[frame["tokens"] <= SHORT].all()), not bool(ahead[frame["tokens"] >= LONG].any())
    cross = bool(ahead.any()) and not bool(ahead.all())
    outcome: Outcome = "does not hold here"
    if cross and (short or long):
        outcome = "holds" if short and long else "holds in part"
    return Verdict(
        claim="C11",
        text="Under 2K tokens recompute, over 16K swap",
        outcome=outcome,
        sentence=phrase(
            "Here {summary}; {short}, {long}.",
            summary=frame.attrs["summary"],
            short=_row(frame, SHORT),
            long=_row(frame, LONG),
        ),
        origin=phrase(
            "recompute: {origin}, fitted; swap: {source}", origin=origin_of([run]), source=frame.attrs["swap_source"]
        ),
        article="Under 2K recompute, over 16K swap.",
        arithmetic=_elsewhere(),
        untested=_untested(frame, run),
    )


def _row(frame: pd.DataFrame, tokens: int) -> str:
    """What the two take at the row nearest to that length."""
    row = frame.iloc[(frame["tokens"] - tokens).abs().argmin()]
    return phrase(
        "at {tokens:,.0f} tokens {recompute} against {swap}",
        tokens=row["tokens"],
        recompute=_time(row["recompute_s"]),
        swap=_time(row["swap_s"]),
    )


def _time(seconds: float) -> str:
    """Three digits, in the unit that suits."""
    unit, size = next((u, s) for u, s in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)) if seconds >= s or u == "µs")
    return f"{seconds / size:,.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"


def _elsewhere() -> str:
    """Where two models cross on GPUs, from published figures: it is a matter of the model more than of the length."""
    chosen, parts = gpu(_GPU), []
    for name, count in _MODELS:
        model = named(name)
        frame = crossover(
            architecture=model, cost=estimated_cost(model, chosen, count), device=chosen.key, devices=count
        )
        parts.append(
            phrase(
                "{name} on {count} × {gpu}: {summary}",
                name=model.name,
                count=count,
                gpu=chosen.name,
                summary=frame.attrs["summary"],
            )
        )
    return phrases("; ", parts) + phrase(
        " (estimates from published peaks and links). A prompt token costs the same FLOPs at any length but for "
        "attention, and its KV the same bytes, so only attention and fixed costs can make them cross."
    )


def _untested(frame: pd.DataFrame, run: Measured) -> str:
    parts = []
    if not frame["swap_source"].iloc[0].startswith("measured"):
        parts.append(phrase("the link, which is a published figure"))
    reach = frame.attrs["measured_to"]
    if reach and reach < LONG:
        parts.append(phrase("prefill beyond {reach:,} tokens, which the fit extrapolates", reach=reach))
    if not on_gpu([run]):
        parts.append(phrase("recompute on a GPU (a CPU's slow prefill beside a GPU's link flatters the swap)"))
    parts.append(phrase("a swap inside vLLM, which preempts by recompute only"))
    return ended("; ", parts)
