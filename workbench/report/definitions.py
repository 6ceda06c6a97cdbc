"""The terms that a report explains; those of settings are the configuration's own texts."""

from __future__ import annotations

from workbench.config import SLO, Knobs
from workbench.i18n import marked


def definitions() -> list[tuple[str, str]]:
    """Term and meaning, in the order in which a reader meets them."""
    settings = {name: field.description or "" for name, field in Knobs.model_fields.items()}
    promise = {name: field.description or "" for name, field in SLO.model_fields.items()}
    return [
        (
            marked("token gap"),
            marked(
                "Time between two consecutive arrivals of output on one stream, measured at the client. An arrival "
                "of several tokens ends one gap. Percentiles (P50, P99) are over all gaps pooled; they can miss the"
                " one gap that matters, so the longest stands beside them."
            ),
        ),
        (marked("SLO, stall"), promise["gap_ms"]),
        (
            marked("cause of a stall"),
            marked(
                "What accounts for at least half of the gap: another request’s prefill; preemption (its KV blocks "
                "were taken); kv wait (it sat out steps in which blocks were short); the front end or the client "
                "after the engine had the token; several of these together; else unknown."
            ),
        ),
        (
            marked("preemption, recompute"),
            marked(
                "When KV blocks run out the scheduler takes those of a running request. vLLM computes what was lost"
                " again before the request goes on; away is the time until it computes again."
            ),
        ),
        (
            marked("class, priority"),
            marked("The API’s own priority: 0 is VIP, 1 normal, 2 offline. Goodput counts requests that met the SLO."),
        ),
        (
            marked("TTFT"),
            marked("Time to first token, from the planned arrival, so that a late client cannot hide queueing."),
        ),
        (marked("step"), marked("One scheduler step: one pass of the model over all tokens that it was given.")),
        (
            marked("prefill, decode"),
            marked("Prefill computes the tokens of a prompt; decode makes one new token for each stream."),
        ),
        (
            marked("MFU"),
            marked(
                "Model FLOPs utilisation: the arithmetic that the model needs for a step’s tokens, counted from its"
                " layers, over what the device’s peak would do in the step’s time. The peak’s source stands on the "
                "chart."
            ),
        ),
        (
            marked("activation peak"),
            marked(
                "What a step needed and gave back: its peak minus what was in use before or after it, whichever is "
                "more. Torch’s allocator on CUDA, the resident high-water mark of the worker on CPU."
            ),
        ),
        (marked("policy"), settings["policy"]),
        (marked("budget"), settings["budget"]),
        (marked("chunk"), settings["chunk"]),
        (marked("knob revision"), marked("Each change of a knob has a number; it acts on the next step.")),
    ]
