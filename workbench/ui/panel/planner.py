"""The planner in a notebook: ``Planner()`` as a cell's last line; everything that takes time runs in a thread."""

from __future__ import annotations

from workbench.ui.panel.form_box import FormBox
from workbench.ui.panel.plan_form import PlanForm


class Planner(FormBox):
    """Asks for hardware, model, traffic and SLO; shows capacity, charts and the ``vllm serve`` command.

    Showing another closes this one and ends what it does.

    Args:
        lang: language, see :mod:`workbench.i18n`; none takes the one that is spoken.
    """

    form: PlanForm

    def __init__(self, lang: str | None = None) -> None:
        super().__init__(PlanForm, "plan", lang)
