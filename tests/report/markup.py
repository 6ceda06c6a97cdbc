"""Texts that would run something in a page, and a look at a page for what could."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = [
    "<script>window.ran=1</script>",
    '"><img src=x onerror="window.ran=2">',
    "</script><script>window.ran=3</script>",
    "</style><script>window.ran=4</script><style>",
    "' onmouseover='window.ran=5' x='",
    "<!--<script>window.ran=6",
    "</title></textarea></noscript><svg onload=window.ran=7>",
    "javascript:window.ran=8",
    "${window.ran=9} {{window.ran=9}} ]]>",
    "'+(window.ran=10)+'",
]
EVERY = " ".join(HOSTILE)

_RUN = {
    "script",
    "iframe",
    "object",
    "embed",
    "link",
    "base",
    "form",
    "foreignobject",
    "animate",
    "set",
    "img",
    "image",
}
_ADDRESSES = {"href", "src", "action", "formaction", "data", "xlink:href", "srcdoc", "background"}


class Page(HTMLParser):
    """Collects elements that run or load something, attributes that do, and how often a script stands there."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found, self.scripts, self.text = [], 0, []

    def handle_starttag(self, tag, attributes):
        if (tag, attributes) == ("link", [("rel", "icon"), ("href", "data:,")]):
            return  # ours: so that a browser asks for no icon
        if tag == "script":
            self.scripts += 1
        elif tag in _RUN:
            self.found.append(tag)
        for name, value in attributes:
            bad = name.startswith("on") or (
                name in _ADDRESSES and not (value or "").startswith(("#", "data:image/png"))
            )
            if bad:
                self.found.append(f"{tag} {name}={value}")

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        self.text.append(data)


def look(markup):
    """What a browser would make of it, as far as that can be told without one."""
    page = Page()
    page.feed(markup)
    page.close()
    return page


def assert_harmless(markup, *, scripts=0):
    """Nothing in the markup runs or loads anything, but for scripts of ours; it does say what it was given."""
    page = look(markup)
    assert page.found == []
    assert page.scripts == scripts
    return " ".join(page.text)
