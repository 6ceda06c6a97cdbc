"""The live charts of an attached server, in place of those that are made of scheduler steps."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from workbench.i18n import translate
from workbench.ui.charts import queue_marks, server_marks
from workbench.ui.charts.scales import named
from workbench.ui.charts.server_rows import HISTOGRAMS, SHARES, row_name
from workbench.ui.charts.theme import Look
from workbench.ui.live.server_rows import LIVE

LATENCY = "latency"  # the one chart whose x axis is no time of the run


def server_charts(label: str, look: Look) -> Iterator[tuple[str, str, str, str, alt.LayerChart]]:
    """Id, title, subtitle, description and chart of each.

    Their data come from :mod:`workbench.ui.live.server_rows`.

    Args:
        label: where the numbers come from.
        look: of the charts.
    """
    yield (
        "rates",
        server_marks.RATES_NAME,
        f"{label} · " + translate("between two readings of /metrics; also what others asked for"),
        translate(server_marks.RATES_DESCRIPTION),
        server_marks.draw_rates(named("rates"), look, top="rate_top"),
    )
    yield (
        "queue",
        server_marks.QUEUE_NAME,
        f"{label} · " + translate("read twice a second · cross: preemption"),
        translate(queue_marks.DESCRIPTION),
        queue_marks.draw_queue(named("kv", "requests", "losses"), look, span=(0, 100), requests=(0, "requests_top")),
    )
    yield (
        LATENCY,
        server_marks.LATENCY_NAME,
        f"{label} · " + translate("of this run so far · band: its bucket, no more is known · dot: interpolated"),
        translate(server_marks.LATENCY_DESCRIPTION),
        server_marks.draw_latency(
            named("quantiles"),
            look,
            rows=[row_name(HISTOGRAMS[name], share) for name in LIVE for share in SHARES],
            span=("lat_lo", "lat_hi"),
        ),
    )
