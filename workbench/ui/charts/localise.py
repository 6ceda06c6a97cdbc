"""What a chart's spec says by itself: names of fields in tooltips, and of kinds in legends.

The words that a chart is given are translated where they are written. Values of its data stay as they are, since marks
and expressions go by them: a legend reads them through an expression instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from workbench.i18n import spoken, translate

_LEGENDS = ("color", "shape", "fill", "stroke", "strokeDash", "opacity", "size")


def localise(spec: dict[str, Any]) -> dict[str, Any]:
    """Translate a Vega-Lite spec in place, and return it; nothing is done where English is spoken."""
    if spoken() != "en":
        for encoding in _encodings(spec):
            _tooltips(encoding.get("tooltip"))
            for channel in _LEGENDS:
                _legend(encoding.get(channel))
    return spec


def headed(table: pd.DataFrame) -> pd.DataFrame:
    """A table as people read it: the same with its headings translated."""
    return table.rename(columns=lambda name: translate(str(name)))


def _encodings(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, list):
        for one in part:
            yield from _encodings(one)
    elif isinstance(part, dict):
        for name, one in part.items():
            if name == "encoding" and isinstance(one, dict):
                yield one
            elif name not in ("data", "datasets", "config"):
                yield from _encodings(one)


def _tooltips(tips: Any) -> None:
    """A field without a title of its own has its name for one."""
    for tip in tips if isinstance(tips, list) else [tips]:
        if isinstance(tip, dict) and "field" in tip:
            tip["title"] = translate(str(tip.get("title") or tip["field"]))


def _legend(channel: Any) -> None:
    if not isinstance(channel, dict) or channel.get("legend", {}) is None:
        return
    kinds = (channel.get("scale") or {}).get("domain")
    if not isinstance(kinds, list):
        return
    words = {kind: translate(kind) for kind in kinds if isinstance(kind, str) and translate(kind) != kind}
    legend = channel.setdefault("legend", {})
    if words and "labelExpr" not in legend:
        known = json.dumps(words, ensure_ascii=False)
        legend["labelExpr"] = f"{known}[datum.label] || datum.label"
