"""What a trace says: gaps, TTFT, stalls and their causes, goodput, preemptions, memory against step size.

Definitions are those of the design: a gap lies between two consecutive *arrivals of output* on one stream, percentiles
are over all gaps pooled (linear interpolation, numpy's default) with count and maximum beside them, and TTFT counts
from the planned arrival. What was not measured is None or NaN, never 0. A simulated run has no client: there output
arrives when the step that made it ends.

gaps.py         every token gap, on the client's and on the engine's clock
requests.py     one row a request: TTFT, TPOT, worst gap, whether the SLO was met
classes.py      one row a class of requests
stalls.py       every gap above the SLO, with its cause; stall_parts.py divides the gaps for it
preemptions.py  who lost KV blocks, what was computed again, how long it took
phases.py       the history of each request
mfu.py          FLOPs of each step, and their share of a peak
floors.py       the least that each first token can take
prefill_cost.py what a prefill costs, fitted to the steps
crossover.py    recompute or swap, by length
steps.py        activation memory against tokens in the step; prefill steps of each prompt
step_table.py   the steps and their parts as arrays, which the others share
summary.py      the figures of a run as plain data
"""

from workbench.metrics.classes import by_class
from workbench.metrics.crossover import crossover
from workbench.metrics.floors import request_floors
from workbench.metrics.gaps import gaps
from workbench.metrics.mfu import mfu, mfu_by_kind, step_flops
from workbench.metrics.phases import PHASES, phases
from workbench.metrics.preemptions import preemptions
from workbench.metrics.prefill_cost import PrefillCost, prefill_cost
from workbench.metrics.requests import request_metrics
from workbench.metrics.stalls import CAUSES, explained, stalls
from workbench.metrics.steps import MemoryFit, memory_fit, pooled, prefill_steps
from workbench.metrics.summary import summary

__all__ = [
    "CAUSES",
    "PHASES",
    "MemoryFit",
    "PrefillCost",
    "by_class",
    "crossover",
    "explained",
    "gaps",
    "memory_fit",
    "mfu",
    "mfu_by_kind",
    "phases",
    "pooled",
    "preemptions",
    "prefill_cost",
    "prefill_steps",
    "request_floors",
    "request_metrics",
    "stalls",
    "step_flops",
    "summary",
]
