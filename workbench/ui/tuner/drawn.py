"""What a study has found so far, and what it answers, as markup for a pane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape

import altair as alt
import pandas as pd

from workbench.config import SLO
from workbench.i18n import translate
from workbench.run import RecordedRun
from workbench.tune.answer.answer import Answer
from workbench.tune.answer.emit import Emitted, told
from workbench.tune.space import Space
from workbench.ui.charts.gaps import gap_chart
from workbench.ui.charts.localise import headed
from workbench.ui.charts.steps import step_chart
from workbench.ui.charts.tuning import slo_chart
from workbench.ui.charts.tuning_front import front_chart, importance_chart
from workbench.ui.charts.tuning_progress import study_chart
from workbench.ui.static import PAGE_LOOK, show

_WIDTH = 760  # px of the charts
_CELL_PX, _FLAT_PX, _BAR_PX = 52, 170, 30
_POINTS = 1200  # most rows of a chart of one trial
_ROWS = 12  # of the table


def going_on(answer: Answer, space: Space) -> str:
    """The chart that fills in, and the study trial by trial."""
    rows = max(len(space.hot.get("chunk", ())), 2)
    charts = [
        slo_chart(answer, space, replace(PAGE_LOOK, width=_WIDTH, height=_CELL_PX * rows)),
        study_chart(answer, replace(PAGE_LOOK, width=_WIDTH, height=_FLAT_PX)),
    ]
    return _shown(*charts)


def of_trial(run: RecordedRun, name: str, slo: SLO) -> str:
    """Gaps and steps of a trial that has ended."""
    look = replace(PAGE_LOOK, width=_WIDTH, height=130, limit=_POINTS)
    gaps = gap_chart(run.trace, slo, replace(look, title=translate("Token gaps under {name}", name=name)))
    return _shown(gaps, step_chart(run.trace, replace(look, height=110)))


def answered(answer: Answer, emitted: Emitted | None) -> str:
    """The answer in words, the front, what matters, every setting, and the commands."""
    first, *rest = map(translate, answer.words)
    words = f"<p><b>{escape(first)}</b></p>" + "".join(f"<p>{escape(one)}</p>" for one in rest)
    charts = ""
    if answer.candidates:
        bars = _BAR_PX * max(len(answer.importance), 2)
        charts = _shown(
            front_chart(answer, replace(PAGE_LOOK, width=_WIDTH, height=240)),
            importance_chart(answer, replace(PAGE_LOOK, width=_WIDTH, height=bars)),
        )
    return words + charts + _table(answer.table) + (_commands(told(emitted)) if emitted is not None else "")


def _table(table: pd.DataFrame) -> str:
    if table.empty:
        return ""
    shown = table.head(_ROWS).dropna(axis=1, how="all")
    left = f"<p>{translate('and {count} more settings', count=len(table) - _ROWS)}</p>" if len(table) > _ROWS else ""
    markup = headed(shown).to_html(float_format=lambda value: f"{value:,.3g}", na_rep="n/a", border=0, index=False)
    return f'<div class="wb-table">{markup}</div>{left}'


def _commands(texts: Mapping[str, str]) -> str:
    return "".join(f"<p>{escape(translate(name))}</p><pre>{escape(text)}</pre>" for name, text in texts.items())


def _shown(*charts: alt.TopLevelMixin) -> str:
    return "".join(show(chart)._repr_html_() for chart in charts)
