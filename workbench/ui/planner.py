"""``from workbench.ui.planner import Planner``: the planner as a widget; see :mod:`workbench.ui.panel.planner`."""

from workbench.ui.panel.planner import Planner

__all__ = ["Planner"]
