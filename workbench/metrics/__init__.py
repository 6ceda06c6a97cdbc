"""What a trace says: gaps, TTFT, stalls and their causes, goodput, memory against step size.

Definitions are those of the design: a gap lies between two consecutive *arrivals of output* on one stream, percentiles
are over all gaps pooled (linear interpolation, numpy's default) with count and maximum beside them, and TTFT counts
from the planned arrival. What was not measured is None or NaN, never 0.

gaps.py       every token gap, on the client's and on the engine's clock
requests.py   one row a request: TTFT, TPOT, worst gap, whether the SLO was met
stalls.py     every gap above the SLO, with its cause
summary.py    the figures of a run as plain data
steps.py      activation memory against tokens in the step; prefill steps of each prompt
"""

from workbench.metrics.gaps import gaps
from workbench.metrics.requests import request_metrics
from workbench.metrics.stalls import CAUSES, stalls
from workbench.metrics.steps import MemoryFit, memory_fit, pooled, prefill_steps
from workbench.metrics.summary import summary

__all__ = [
    "CAUSES",
    "MemoryFit",
    "gaps",
    "memory_fit",
    "pooled",
    "prefill_steps",
    "request_metrics",
    "stalls",
    "summary",
]
