"""Every chart of the product, as Altair objects made from a trace; no widgets in here.

    gap_chart       token gaps of each stream, with stalls, the SLO and long prefills
    step_chart      what every scheduler step was made of, and how long it took
    memory_chart    activation peak of every step, memory held, and what it is made of
    queue_chart     KV use, running, waiting, preemptions
    server_rate_chart  tokens a second by an attached server's counters; server_queue_chart has its KV use and queue,
                    server_latency_chart the quantiles of its histograms with their buckets
    history_chart   what each request went through, with its preemptions
    mfu_chart       model FLOPs utilisation of every step
    memory_scatter  activation peak against tokens in the step, over several runs
    crossover_chart cost of a recompute and of a swap against the length of a context
    band_chart      figures with their bands, beside what is said of them and the physical floor
    largest_step_chart  the largest step that fits into memory, by budget
    policy_chart    gaps and waits of several policies on one scale; policy_table has the figures
    slo_chart       what a study reached by budget and chunk cap; study_chart has it trial by trial, front_chart TTFT
                    against gap against throughput, importance_chart what mattered
    guess_chart     what somebody expected, and what was measured
    plan_chart      capacity over budget and chunk cap; capacity_chart has policies, plan_table the figures

All take a :class:`Look` for size, theme and shared axes, and say on themselves where their numbers come from. Each of
the four time charts is made of two halves: ``gaps``, ``steps``, ``memory``, ``queue`` turn a trace into rows, and
``gap_marks``, ``step_marks``, ``memory_marks``, ``queue_marks`` draw rows, whether they are there or come later.
"""

from workbench.ui.charts.band import band_chart
from workbench.ui.charts.crossover import crossover_chart
from workbench.ui.charts.data import decimate, long_prefills, run_span
from workbench.ui.charts.gaps import gap_chart, gap_domain
from workbench.ui.charts.guess import guess_chart
from workbench.ui.charts.history import history_chart
from workbench.ui.charts.largest_step import largest_step_chart
from workbench.ui.charts.memory import memory_chart
from workbench.ui.charts.mfu import mfu_chart
from workbench.ui.charts.origin import origin
from workbench.ui.charts.plan import capacity_chart, plan_chart, plan_table
from workbench.ui.charts.policies import policy_chart
from workbench.ui.charts.policy_table import policy_table
from workbench.ui.charts.queue import queue_chart
from workbench.ui.charts.scales import decades
from workbench.ui.charts.scatter import memory_scatter
from workbench.ui.charts.server import server_latency_chart, server_queue_chart, server_rate_chart
from workbench.ui.charts.steps import step_chart
from workbench.ui.charts.theme import DARK, LIGHT, PAGE, Look, Palette, css_variables
from workbench.ui.charts.tuning import slo_chart
from workbench.ui.charts.tuning_front import front_chart, importance_chart
from workbench.ui.charts.tuning_progress import study_chart
from workbench.ui.charts.waits import policy_waits

__all__ = [
    "DARK",
    "LIGHT",
    "PAGE",
    "Look",
    "Palette",
    "band_chart",
    "capacity_chart",
    "crossover_chart",
    "css_variables",
    "decades",
    "decimate",
    "front_chart",
    "gap_chart",
    "gap_domain",
    "guess_chart",
    "history_chart",
    "importance_chart",
    "largest_step_chart",
    "long_prefills",
    "memory_chart",
    "memory_scatter",
    "mfu_chart",
    "origin",
    "plan_chart",
    "plan_table",
    "policy_chart",
    "policy_table",
    "policy_waits",
    "queue_chart",
    "run_span",
    "server_latency_chart",
    "server_queue_chart",
    "server_rate_chart",
    "slo_chart",
    "step_chart",
    "study_chart",
]
