"""Colours, sizes and the options that every chart takes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

import altair as alt

from workbench.i18n import spoken, translate

VEGA_LITE = "6.4"  # the schema that Altair 6 writes; the JavaScript of pages and widgets is of the same version
ThemeName = Literal["light", "dark", "page"]
# Of one width with each other, so that a drawing that was laid out with one also fits with another.
FONT = "Arial, 'Liberation Sans', Helvetica, 'Noto Sans', 'DejaVu Sans', sans-serif"
FONT_ZH = FONT.replace(
    "sans-serif", "'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', 'WenQuanYi Micro Hei', sans-serif"
)
PADDING = 4  # px around a chart
POINT_LIMIT = 2000  # rows of data in one chart: what a browser redraws ten times a second
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]


@dataclass(frozen=True)
class Palette:
    """Okabe-Ito colours with a fixed meaning each; shape, dash or position always says the same thing again."""

    ground: str  # behind everything
    ink: str  # text, step time
    muted: str  # axis labels, knob changes
    grid: str
    prefill: str
    prefill2: str  # further requests in prefill: shades of the first
    prefill3: str
    prefill4: str
    prefill_rest: str
    decode: str
    kv: str
    memory: str
    alert: str  # stalls, the SLO, preemptions
    weights: str  # what memory is made of: beside the KV pool and activation
    graphs: str

    @property
    def prefills(self) -> tuple[str, str, str, str]:
        """Shades for the requests that prefill."""
        return (self.prefill, self.prefill2, self.prefill3, self.prefill4)


LIGHT = Palette(
    ground="#ffffff",
    ink="#1b1f24",
    muted="#5b6470",
    grid="#e6e8eb",
    prefill="#e69f00",
    prefill2="#b37400",
    prefill3="#f5c55c",
    prefill4="#7d5000",
    prefill_rest="#c9b48a",
    decode="#0072b2",
    kv="#009e73",
    memory="#cc79a7",
    alert="#d55e00",
    weights="#8b939e",
    graphs="#f0e442",
)
DARK = Palette(
    ground="#15181d",
    ink="#e8eaed",
    muted="#a3abb6",
    grid="#2c323a",
    prefill="#e69f00",
    prefill2="#b37400",
    prefill3="#f5c55c",
    prefill4="#8f6010",
    prefill_rest="#8d7d5c",
    decode="#56b4e9",
    kv="#2fbf95",
    memory="#d990b8",
    alert="#f0743a",
    weights="#7d8591",
    graphs="#f0e442",
)
# Colours as CSS variables: an SVG in a page then follows the page between light, dark and print.
PAGE = Palette(**{f.name: f"var(--wb-{f.name}, {getattr(LIGHT, f.name)})" for f in fields(Palette)})
PALETTES: dict[ThemeName, Palette] = {"light": LIGHT, "dark": DARK, "page": PAGE}


def css_variables(palette: Palette) -> str:
    """The declarations that the ``page`` theme reads, for use inside a CSS rule."""
    return " ".join(f"--wb-{f.name}: {getattr(palette, f.name)};" for f in fields(palette))


@dataclass(frozen=True)
class Look:
    """How a chart is drawn; the same for every factory.

    Attributes:
        theme: light, dark, or ``page`` (CSS variables, SVG renderer only).
        width: of the plot, without axes, in px. Charts of one width have aligned time axes.
        height: of the plot in px.
        title: heading; none takes the chart's own name.
        legend: whether the chart explains its own colours and shapes.
        x_domain: first and last value of the x axis, to give several charts one scale.
        y_domain: the same for the (left) y axis.
        y2_domain: the same for the right y axis.
        zoom: drag moves and Shift+wheel zooms the time axis.
        limit: most rows of data in the chart.
        bare: leave out the top-level config, so that the chart can be concatenated.
        live: the data have names instead of rows, the chart is as wide as what holds it (``width`` is then a guess),
            and the window of time is the parameters ``t0`` and ``t1``.
    """

    theme: ThemeName = "light"
    width: int = 720
    height: int = 170
    title: str | None = None
    legend: bool = True
    x_domain: tuple[float, float] | None = None
    y_domain: tuple[float, float] | None = None
    y2_domain: tuple[float, float] | None = None
    zoom: bool = True
    limit: int = POINT_LIMIT
    bare: bool = False
    live: bool = False
    palette: Palette = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "palette", PALETTES[self.theme])


def finish(
    chart: alt.Chart | alt.LayerChart, look: Look, *, name: str, subtitle: str | list[str], description: str
) -> alt.Chart | alt.LayerChart:
    """Give a chart its size, heading, description for screen readers, and theme."""
    heading = look.title or translate(name)
    said = subtitle if isinstance(subtitle, str) else subtitle[0]
    chart = chart.properties(
        width="container" if look.live else look.width,
        height=look.height,
        title=alt.TitleParams(text=heading, subtitle=subtitle),
        description=translate("{heading}. {description} ({said})", heading=heading, description=description, said=said),
    )
    return chart if look.bare else chart.configure(**config(look.palette))


def font() -> str:
    """Names of fonts, the best first, that have the letters of the language that is spoken."""
    return FONT_ZH if spoken() == "zh" else FONT


def config(colours: Palette) -> dict[str, Any]:
    """The top-level Vega-Lite config of a palette."""
    axis: dict[str, Any] = {
        "labelColor": colours.muted,
        "titleColor": colours.muted,
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "gridColor": colours.grid,
        "tickColor": colours.grid,
        "domainColor": colours.muted,
        "domain": False,
        "tickSize": 4,
        "labelPadding": 4,
        "titlePadding": 6,
    }
    return {
        "background": "transparent" if colours is PAGE else colours.ground,
        "font": font(),
        "padding": PADDING,
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False, "domain": True},
        "legend": {
            "orient": "top",
            "labelColor": colours.ink,
            "titleColor": colours.muted,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "symbolSize": 60,
            "labelLimit": 220,
            "columnPadding": 16,
            "offset": 4,
            "padding": 0,
        },
        "title": {
            "anchor": "start",
            "frame": "group",
            "color": colours.ink,
            "fontSize": 13,
            "fontWeight": 600,
            "subtitleColor": colours.muted,
            "subtitleFontSize": 11,
            "subtitlePadding": 3,
            "offset": 8,
        },
    }


def message_chart(look: Look, *, name: str, subtitle: str, message: str) -> alt.Chart | alt.LayerChart:
    """A chart that says why it has nothing to draw."""
    text = (
        alt.Chart(alt.Data(values=[{"message": message}]))
        .mark_text(color=look.palette.muted, fontSize=12, fontStyle="italic", lineBreak="\n", aria=False)
        .encode(text=alt.Text("message:N"), x=alt.value(look.width / 2), y=alt.value(look.height / 2))
    )
    return finish(text, look, name=name, subtitle=subtitle, description=message.replace("\n", " "))
