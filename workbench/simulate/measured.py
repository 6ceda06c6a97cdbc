"""What live runs show of an engine: what each step held and took, and what client and front end add.

A virtual request is with the scheduler when it is planned, and its token is with the client when the step ends. A live
one first goes through the client's event loop, HTTP, the front end's checks and a socket to the engine core, and its
tokens go the same way back. Neither depends on what a step holds, so each is one number here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from workbench.metrics.gaps import encode
from workbench.metrics.step_table import StepTable
from workbench.simulate.steptime.prices import FIRST, Floats
from workbench.trace import Trace, floats

_IDLE_S = 5e-3  # planned so long after the last step ended: the engine had waited for requests


def measured_steps(trace: Trace) -> tuple[Floats, Floats, np.ndarray]:
    """Features, seconds and kind of each step of a run whose parts are all on record.

    The seconds are those from the last step's end to this one's, so that what the engine does in between counts too:
    in virtual time the next step begins where the last one ended. After a pause they begin when the step was planned.
    """
    steps = StepTable.of(trace)
    count, prefill, tokens, context = len(steps.row), steps.part_prefill, steps.part_tokens, steps.part_context

    def total(values: Floats) -> Floats:
        return np.asarray(np.bincount(steps.part_step, values, minlength=count))

    prompt = total(np.where(prefill, tokens, 0))
    pairs = total(np.where(prefill, tokens * context + tokens * (tokens + 1) / 2, 0))
    decodes, seen = total(np.where(prefill, 0, tokens)), total(np.where(prefill, 0, tokens * context))
    prompts = total(prefill.astype(np.float64))
    design = np.stack([np.ones(count), prompt, pairs, decodes, seen, prompts, np.minimum(prompt, FIRST)], axis=1)
    before = np.concatenate(([-np.inf], steps.end_s[:-1]))
    seconds = steps.end_s - np.where(steps.scheduled_s - before > _IDLE_S, steps.scheduled_s, before)
    known = (prompt + decodes == steps.prefill_tokens + steps.decode_tokens) & np.isfinite(design).all(axis=1)
    known &= np.isfinite(seconds) & (seconds > 0)
    kinds = np.select([prompt == 0, decodes > 0], ["decode", "mixed"], "prefill")
    return design[known], seconds[known], kinds[known]


class Delays(NamedTuple):
    """Seconds before and after the engine.

    Attributes:
        admission_s: from a request's planned arrival until a scheduler with nothing else to do plans it.
        delivery_s: from the end of a step until the client has its token.
    """

    admission_s: float = 0.0
    delivery_s: float = 0.0


def delays(traces: Iterable[Trace]) -> Delays:
    """Medians over runs that a client played; 0 where nothing can be told.

    Only requests that met an idle engine say something of admission: others waited for a step to end as well.
    """
    admissions, deliveries = [], []
    for trace in traces:
        admissions.append(_admissions(trace))
        tokens = trace.tables["tokens"]
        deliveries.append(floats(tokens["client_s"]) - floats(tokens["engine_s"]))
    return Delays(_median(admissions), _median(deliveries))


def _admissions(trace: Trace) -> np.ndarray:
    """Seconds from planned arrival to the first step, of requests that arrived while no step ran."""
    table, steps = trace.tables["requests"], StepTable.of(trace)
    names, code = encode(table["request"])
    planned, sent = floats(table["planned_s"]), floats(table["sent_s"])
    first = np.full(len(steps.names), -1, np.int64)
    first[steps.part_of[::-1]] = steps.part_step[::-1]  # the earliest is written last
    found = []
    for place in range(len(code)):
        step = first[steps.where[names[code[place]]]] if names[code[place]] in steps.where else -1
        if step < 0:
            continue
        before = steps.end_s[step - 1] if step else -np.inf
        if before <= sent[place]:
            found.append(steps.scheduled_s[step] - planned[place])
    return np.array(found)


def _median(parts: list[np.ndarray]) -> float:
    values = np.concatenate([*parts, np.empty(0)])
    values = values[np.isfinite(values)]
    return float(max(0.0, np.median(values))) if len(values) else 0.0
