"""The terms that a report explains; those of settings are the configuration's own texts."""

from __future__ import annotations

from workbench.config import SLO, Knobs


def definitions() -> list[tuple[str, str]]:
    """Term and meaning, in the order in which a reader meets them."""
    settings = {name: field.description or "" for name, field in Knobs.model_fields.items()}
    promise = {name: field.description or "" for name, field in SLO.model_fields.items()}
    return [
        (
            "token gap",
            "Time between two consecutive arrivals of output on one stream, measured at the client. An arrival of "
            "several tokens ends one gap. Percentiles (P50, P99) are over all gaps pooled; they can miss the one gap "
            "that matters, so the longest stands beside them.",
        ),
        ("SLO, stall", promise["gap_ms"]),
        (
            "cause of a stall",
            "What accounts for at least half of the gap: another request’s prefill; preemption (its KV blocks were "
            "taken); kv wait (it sat out steps in which blocks were short); the front end or the client after the "
            "engine had the token; several of these together; else unknown.",
        ),
        (
            "preemption, recompute",
            "When KV blocks run out the scheduler takes those of a running request. vLLM computes what was lost again "
            "before the request goes on; away is the time until it computes again.",
        ),
        (
            "class, priority",
            "The API’s own priority: 0 is VIP, 1 normal, 2 offline. Goodput counts requests that met the SLO.",
        ),
        ("TTFT", "Time to first token, from the planned arrival, so that a late client cannot hide queueing."),
        ("step", "One scheduler step: one pass of the model over all tokens that it was given."),
        ("prefill, decode", "Prefill computes the tokens of a prompt; decode makes one new token for each stream."),
        (
            "MFU",
            "Model FLOPs utilisation: the arithmetic that the model needs for a step’s tokens, counted from its "
            "layers, over what the device’s peak would do in the step’s time. The peak’s source stands on the chart.",
        ),
        (
            "activation peak",
            "What a step needed and gave back: its peak minus what was in use before or after it, whichever is more. "
            "Torch’s allocator on CUDA, the resident high-water mark of the worker on CPU.",
        ),
        ("policy", settings["policy"]),
        ("budget", settings["budget"]),
        ("chunk", settings["chunk"]),
        (
            "knob revision",
            "Each change of a knob has a number; it acts on the next step.",
        ),
    ]
