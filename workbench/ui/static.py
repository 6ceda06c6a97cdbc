"""A chart in a notebook without widgets and without a network: inline SVG that follows the page's theme."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex

import altair as alt

from workbench.report.svg import static_svg
from workbench.ui.charts.localise import localise
from workbench.ui.charts.theme import DARK, FONT, LIGHT, Look, css_variables

PAGE_LOOK = Look(theme="page", zoom=False)  # what a chart for :func:`show` is made with

# JupyterLab, Notebook and Voilà say their theme on <body> (or above); VS Code has a class. Else a page is light.
_STYLE = (
    f".wb-static {{ {css_variables(LIGHT)} max-width: 100%; overflow-x: auto; }}"
    f' [data-jp-theme-light="false"] .wb-static, .vscode-dark .wb-static {{ {css_variables(DARK)} }}'
    f" .wb-static svg text {{ font-family: {FONT}; }}"
)


@dataclass(frozen=True, repr=False)
class Static:
    """A drawn chart, as a notebook shows it.

    Attributes:
        svg: the drawing; its colours are CSS variables with the light theme's as fallback.
        description: for screen readers and terminals.
    """

    svg: str
    description: str

    def __repr__(self) -> str:
        """What a terminal shows."""
        return self.description

    def _repr_html_(self) -> str:
        return f'<style>{_STYLE}</style><div class="wb-static">{self.svg}</div>'


def show(chart: alt.TopLevelMixin) -> Static:
    """Draw a chart as SVG; the last value of a cell is displayed.

    Args:
        chart: made with :data:`PAGE_LOOK`, or another look of the ``page`` theme; with another theme its colours stay
            as they are.
    """
    spec = localise(chart.to_dict())
    spec.pop("$schema", None)  # an address
    # Ids of its own in a page that may hold the outputs of several kernels.
    return Static(static_svg(spec, f"wb-{token_hex(4)}"), str(spec.get("description") or "chart"))
