"""The articles' claims as experiments: each takes recorded runs and returns a :class:`Verdict` with its numbers.

verdict.py            what became of a claim, on one line
long_prompt.py        what happened to the long prompt of a run and to the streams beside it
limits.py             the model and the GPU that the articles' numbers are of
freeze.py             C1: one step with the whole prompt freezes every stream
chunk_steps.py        C2: ceil(L/C) steps
flat_gaps.py          C3: chunked, gaps stay flat and TTFT grows
memory.py             C4, C5: the activation peak, and the power of the chunk that it goes with
default_on.py         C6: whether chunked prefill has to be switched on
golden_range.py       C7: the golden range of the budget
reference_command.py  C8: the article's command
journal.py            which requests held KV before each step, and how far each was
preemption_cost.py    C10: what preemption costs
qos_classes.py        C12: classes, and who is preempted
utilisation.py        C9: MFU of decodes alone and with prefill riding along
crossover.py          C11: recompute or swap
step_order.py         C13: the order inside a step
cache_lookup.py       what each request took from the prefix cache
article_rows.py       C14's table: the article's rows, a simulation and the physical floors
eight_h100s.py        C14: three policies on 8 x H100
cached_prefix.py      C15: the longest cached prefix first
oom_rate.py           C16: the OOM rate with and without chunks
evidence.py           what one source gave: runs, what vLLM said, simulations
judging.py            finds the runs that fit each claim
table.py              the claims, with what each needs
gather.py             gets the evidence: one live engine, a simulated one, or recorded runs
sheet.py              all of them at once
resolved.py           asks the installed vLLM what it makes of a command line
"""

from workbench.claims.article_rows import article_table
from workbench.claims.cache_lookup import cache_lookups
from workbench.claims.cached_prefix import cached_prefix
from workbench.claims.chunk_steps import chunk_steps, step_counts
from workbench.claims.crossover import recompute_or_swap
from workbench.claims.default_on import flag_needed
from workbench.claims.eight_h100s import eight_h100s
from workbench.claims.flat_gaps import flat_gaps
from workbench.claims.freeze import freeze
from workbench.claims.golden_range import golden_range
from workbench.claims.long_prompt import LongPrompt, long_prompts
from workbench.claims.memory import memory_exponent, peak_drop
from workbench.claims.oom_rate import chunking_table, oom_rate, play_chunking
from workbench.claims.preemption_cost import preemption_cost
from workbench.claims.qos_classes import qos_classes
from workbench.claims.reference_command import reference_command
from workbench.claims.resolved import resolve, stand_in, stock
from workbench.claims.step_order import step_order
from workbench.claims.utilisation import utilisation
from workbench.claims.verdict import Outcome, Verdict

__all__ = [
    "LongPrompt",
    "Outcome",
    "Verdict",
    "article_table",
    "cache_lookups",
    "cached_prefix",
    "chunk_steps",
    "chunking_table",
    "eight_h100s",
    "flag_needed",
    "flat_gaps",
    "freeze",
    "golden_range",
    "long_prompts",
    "memory_exponent",
    "oom_rate",
    "peak_drop",
    "play_chunking",
    "preemption_cost",
    "qos_classes",
    "recompute_or_swap",
    "reference_command",
    "resolve",
    "stand_in",
    "step_counts",
    "step_order",
    "stock",
    "utilisation",
]
