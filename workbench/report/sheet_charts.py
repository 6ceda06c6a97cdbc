"""The picture of each claim on the sheet, drawn from the runs that it was judged from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.claims import article_table, chunking_table, long_prompts
from workbench.claims.sheet import Row
from workbench.claims.verdict import origin_of, origins
from workbench.errors import WorkbenchError
from workbench.i18n import marked, translate
from workbench.ui.charts import (
    Look,
    band_chart,
    crossover_chart,
    gap_chart,
    history_chart,
    largest_step_chart,
    memory_scatter,
    mfu_chart,
    policy_chart,
    step_chart,
)
from workbench.ui.charts.theme import message_chart
from workbench.ui.charts.trade import trade_chart

LOOK = Look(theme="page", width=860, height=190, zoom=False, limit=700)
_DOCUMENT = 65_536  # tokens of the prompt of C16
_FIGURES = ("gap P99, ms", "64K TTFT best, s", "MFU")


def claim_chart(row: Row, look: Look = LOOK) -> Any:
    """An Altair chart for a claim; where there is nothing to draw, it says so.

    Args:
        row: of the sheet.
        look: theme and width.
    """
    draw = PICTURES.get(row.claim.id)
    why = row.word if row.judged is None else marked("a command line has no picture")
    if draw is not None and row.judged is not None:
        try:
            return draw(row, look)
        except (WorkbenchError, KeyError) as error:  # the verdict stands without its picture
            why = str(error)
    return message_chart(look, name=row.claim.id, subtitle=translate(row.origin), message=translate(why))


def _one(chart: Callable[..., Any]) -> Callable[[Row, Look], Any]:
    """A chart of the first run's trace."""
    return lambda row, look: chart(_runs(row)[0].trace, look)


def _runs(row: Row) -> list[Any]:
    return list(row.judged.runs.values()) if row.judged else []


def _gaps(row: Row, look: Look) -> Any:
    run = _runs(row)[0]
    return gap_chart(run.trace, run.slo, look)


def _trade(row: Row, look: Look) -> Any:
    runs = _runs(row)
    return trade_chart(long_prompts(*runs), runs[0].slo.gap_ms, origin_of(runs), look)


def _scatter(row: Row, look: Look) -> Any:
    runs: Mapping[str, Any] = row.judged.runs if row.judged else {}
    return memory_scatter({name: run.trace for name, run in runs.items()}, look)


def _bands(row: Row, look: Look) -> Any:
    played = row.evidence.article if row.evidence else {}
    return band_chart(article_table(played), list(_FIGURES), origin_of(list(played.values())[:1]), look)


def _largest(row: Row, look: Look) -> Any:
    engines = row.evidence.engines if row.evidence else ()
    where = origins(one.without.meta for one in engines)
    return largest_step_chart(chunking_table(engines), _DOCUMENT, where, look)


def _policies(row: Row, look: Look) -> Any:
    runs: Mapping[str, Any] = row.judged.runs if row.judged else {}
    return policy_chart({name: run.trace for name, run in runs.items()}, _runs(row)[0].slo, look)


PICTURES: Mapping[str, Callable[[Row, Look], Any]] = {
    "C1": _gaps,
    "C2": _one(step_chart),
    "C3": _trade,
    "C4": _scatter,
    "C5": _scatter,
    "C7": _trade,
    "C9": _one(mfu_chart),
    "C10": _one(history_chart),
    "C11": _one(crossover_chart),
    "C12": _one(history_chart),
    "C13": _one(step_chart),
    "C14": _bands,
    "C15": _policies,
    "C16": _largest,
}
