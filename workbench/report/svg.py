"""Static SVG of a chart, small enough to stand in a page beside twelve others."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import Any

import vl_convert

from workbench.printable import printable, printable_data
from workbench.ui.charts.theme import VEGA_LITE, font

_NUMBERS = re.compile(r'\b(d|x|y|x1|x2|y1|y2|transform|width|height)="([^"<>]*)"')
_DECIMALS = re.compile(r"(\.\d\d)\d+")
_FONT = re.compile(r' font-family="[^"<>]*"')
_ID = re.compile(r'(\bid="|url\(#)')
_PATH = re.compile(r'<path (?:transform="translate\(([^,")]*),([^,")]*)\)" )?d="([^"<>]*)"([^<>]*)/>')
_FADED = re.compile(r'(?<!-)opacity="(?!1")')  # of a group it is another thing than of each of its marks
_ESCAPED = re.compile(r"\\u(?:00(?:0[0-8bcef]|[189][0-9a-f]|7f)|fff[ef])", re.I)  # as expressions hold names
_FEW = 4  # a run of fewer equal marks stays as it is


def static_svg(spec: dict[str, Any], prefix: str, *, alone: bool = False) -> str:
    """Render a Vega-Lite spec as SVG for inlining in HTML, or for a file of its own.

    Coordinates are cut to a hundredth of a pixel, the font is said once or left to the page, ids get ``prefix``, and
    runs of marks that differ only in place share one symbol: a third of the size.

    Args:
        spec: the chart.
        prefix: unique in the page, since all SVG in a page share one space of ids.
        alone: whether it is to be a file, which has no page to name its font.
    """
    text: str = vl_convert.vegalite_to_svg(printable_data(spec, _drawable), vl_version=VEGA_LITE, allowed_base_urls=[])
    text = _NUMBERS.sub(lambda m: f'{m[1]}="{_DECIMALS.sub(_cut, m[2])}"', text)
    text = _ID.sub(rf"\g<1>{prefix}-", _FONT.sub("", text))
    if alone:
        text = text.replace("<svg ", f'<svg font-family="{font()}" ', 1)
    return _share(text, prefix)


def _drawable(text: str) -> str:
    """Without control characters: XML has none, and the renderer ends the whole process over one."""
    return _ESCAPED.sub("?", printable(text))


def _cut(match: re.Match[str]) -> str:
    return match[1]


def _share(text: str, prefix: str) -> str:
    """Draw each run of equal marks as one symbol that is used again and again."""
    out, symbols, at = [], dict[str, str](), 0
    for run in _runs(list(_PATH.finditer(text))):
        if len(run) < _FEW or _FADED.search(run[0][4]):
            continue
        out.append(text[at : run[0].start()])
        out.append(f"<g{run[0][4]}>{''.join(map(_use(symbols, prefix), run))}</g>")
        at = run[-1].end()
    out.append(text[at:])
    if not symbols:
        return "".join(out)
    defined = "".join(f'<path id="{name}" d="{shape}"/>' for shape, name in symbols.items())
    return "".join(out).replace(">", f"><defs>{defined}</defs>", 1)


def _runs(paths: list[re.Match[str]]) -> list[list[re.Match[str]]]:
    """Paths that follow each other without anything between, and look the same but for shape and place."""
    number, last = 0, None
    keyed = []
    for path in paths:
        number += last is None or last.end() != path.start() or last[4] != path[4]
        keyed.append((number, path))
        last = path
    return [[path for _, path in group] for _, group in groupby(keyed, key=lambda pair: pair[0])]


def _use(symbols: dict[str, str], prefix: str) -> Callable[[re.Match[str]], str]:
    def draw(path: re.Match[str]) -> str:
        x, y, shape = path[1], path[2], path[3]
        if x is None:
            return f'<path d="{shape}"/>'
        name = symbols.setdefault(shape, f"{prefix}-s{len(symbols)}")
        return f'<use href="#{name}" x="{x}" y="{y}"/>'

    return draw
