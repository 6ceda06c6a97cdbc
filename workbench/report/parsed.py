"""A page, parsed: what it holds that can be checked, and what in it points outside of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any

from workbench.report.packed import unpack

_FETCHING = {
    *("src", "href", "srcset", "action", "formaction", "poster", "data", "background", "ping", "xlink:href"),
    "manifest",
}
_CSS_URL = re.compile(r"url\(\s*['\"]?([^'\")]*)|@import\s+['\"]?([^'\";]*)", re.I)


class Page(HTMLParser):
    """Collects what is checked, and notes what points outside while it reads.

    Attributes:
        problems: what points outside, one line each.
        scripts: text of each.
        lang: of the page, as its tag says.
        policy: the page's content security policy.
        charts: by id, marks in its static drawing.
        rows: of tables, text by key.
        specs: of the charts, by id; None where there are none.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.scripts: list[str] = []
        self.lang = ""
        self.policy = ""
        self.charts: dict[str, int] = {}
        self.rows: list[dict[str, str]] = []
        self.specs: Any = None
        self._json: dict[str, str] = {}
        self._text: list[str] | None = None
        self._open: tuple[str, dict[str, str | None]] = ("", {})
        self._chart = self._key = ""

    def data(self, name: str) -> Any:
        """The JSON under an id; None where it is missing or broken."""
        try:
            return json.loads(self._json.get(name, "null"))
        except ValueError:
            return None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a tag; called by :meth:`feed`."""
        given = dict(attrs)
        for name, value in attrs:
            self._attribute(tag, name, value or "")
        if tag in ("iframe", "object", "embed", "base", "audio", "video"):
            self.problems.append(f"<{tag}> in the page")
        if tag == "html":
            self.lang = given.get("lang") or ""
        if tag == "meta":
            self._meta(given)
        if tag == "figure":
            self._chart = given.get("data-chart") or ""
            self.charts[self._chart] = 0
        elif self._chart and tag in ("path", "use", "line", "text"):
            self.charts[self._chart] += 1
        if tag == "tr":
            self.rows.append({})
        if tag == "td":
            self._key = given.get("data-key") or ""
        if tag in ("script", "style") or (tag == "span" and given.get("class") == "value"):
            self._open, self._text = (tag, given), []

    def handle_data(self, data: str) -> None:
        """Take text."""
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        """Take the end of a tag."""
        if tag == "figure":
            self._chart = ""
        if self._text is None or tag != self._open[0]:
            return
        text, given = "".join(self._text), self._open[1]
        self._text = None
        if tag == "style":
            self._css(text)
        elif tag == "span":
            self.rows[-1][self._key] = text
        elif given.get("type") == "application/json":
            self._json[given.get("id") or ""] = text
        elif given.get("id") == "specs":
            with suppress(ValueError):
                self.specs = unpack(text)
        else:
            self.scripts.append(text)

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if name in _FETCHING and not value.strip().startswith(("#", "data:")):
            self.problems.append(f"<{tag} {name}> points outside the file: {value[:80]}")
        if name.startswith("on"):
            self.problems.append(f"<{tag} {name}> is code in an attribute")
        if "url(" in value.lower():
            self._css(value)

    def _meta(self, given: Mapping[str, str | None]) -> None:
        kind = (given.get("http-equiv") or "").lower()
        if kind == "content-security-policy":
            self.policy = given.get("content") or ""
        elif kind == "refresh":
            self.problems.append("<meta http-equiv=refresh> leads away from the page")

    def _css(self, text: str) -> None:
        for match in _CSS_URL.finditer(text):
            target = (match[1] or match[2] or "").strip()
            if not target.startswith(("#", "data:")):
                self.problems.append(f"CSS points outside the file: {target[:80]}")


def outside(text: str) -> list[str]:
    """What a page would fetch or run, one line each; links that a person may click are no fault.

    Args:
        text: of a page that is to have no script, such as an exported notebook.
    """
    page = Page()
    page.feed(text)
    page.close()
    links = ("<a href> points outside",)
    scripts = [f"{len(page.scripts)} scripts in the page, expected none"] if page.scripts else []
    return [problem for problem in page.problems if not problem.startswith(links)] + scripts
