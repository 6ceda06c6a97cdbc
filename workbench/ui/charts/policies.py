"""Policies side by side: the gaps of each over time on one scale, and what each class waited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import altair as alt

from workbench import metrics
from workbench.config import SLO
from workbench.i18n import counted, marked, translate
from workbench.trace import Trace
from workbench.ui.charts.data import run_span
from workbench.ui.charts.gaps import gap_chart, gap_domain
from workbench.ui.charts.stall_marks import cause_words
from workbench.ui.charts.theme import Look, config
from workbench.ui.charts.waits import origins, policy_waits

NAME = marked("Policies side by side")
_BETWEEN = 66  # px that the axis of the right plot and the space before it take
_NARROW = 560  # px; below, the plots stand under each other


def policy_chart(runs: Mapping[str, Trace], slo: SLO, look: Look | None = None) -> alt.VConcatChart:
    """Token gaps over time, one plot a policy, and below them TTFT and gaps of each class under each policy.

    All plots of gaps have the same axes, and so have all policies and classes in a plot of waits.

    Args:
        runs: policy's name → its run, of the same load.
        slo: the promise; dashed lines.
        look: theme and width of the whole, ``height`` of each plot of gaps, and shared domains of these.
    """
    look = look or Look(height=110)
    across = 1 if len(runs) < 2 or look.width < _NARROW else 2
    part = replace(
        look,
        width=(look.width - (across - 1) * _BETWEEN) // across,
        x_domain=look.x_domain or (0.0, max((run_span(trace)[1] for trace in runs.values()), default=1.0)),
        y_domain=look.y_domain or gap_domain(runs.values(), slo),
        limit=max(200, look.limit // max(len(runs), 1)),
        legend=False,
        zoom=False,
        bare=True,
    )
    plots = [_gaps(name, trace, slo, part) for name, trace in runs.items()]
    chart = alt.vconcat(
        *([alt.concat(*plots, columns=across)] if plots else []),
        policy_waits(runs, slo, replace(look, title=None, bare=True, legend=False)),
        spacing=24,
        title=alt.TitleParams(
            text=look.title or translate(NAME),
            subtitle=[
                f"{origins(runs)} · "
                + translate(
                    "{policies} under the same load · SLO {gap:,.0f} ms between tokens",
                    policies=counted("{n} policy", "{n} policies", len(runs)),
                    gap=slo.gap_ms,
                ),
                _stall_words(runs, slo) + translate("shaded: prefill of a long prompt"),
            ],
        ),
        description=(
            translate(
                "Token gaps of {policies} against time on one scale, then TTFT and gaps of each class ({where}).",
                policies=counted("{n} policy", "{n} policies", len(runs)),
                where=origins(runs),
            )
        ),
    )
    return chart if look.bare else chart.configure(**config(look.palette))


def _stall_words(runs: Mapping[str, Trace], slo: SLO) -> str:
    """What the marks of stalls stand for; empty where there are none."""
    causes = {cause for trace in runs.values() for cause in metrics.stalls(trace, slo)["cause"]}
    return translate("filled, with a whisker: stall by {causes} · ", causes=cause_words(causes)) if causes else ""


def _gaps(name: str, trace: Trace, slo: SLO, look: Look) -> alt.Chart | alt.LayerChart:
    """The gaps of one policy, with its figures in short."""
    chart = gap_chart(trace, slo, replace(look, title=name))
    said = chart.title.subtitle
    figures = (said if isinstance(said, str) else said[0]).partition(" · ")[2]
    chart.title = alt.TitleParams(text=name, subtitle=figures.partition(" · ")[2], fontSize=12)
    return chart
