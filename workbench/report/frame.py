"""What all pages have in common: template, style, script, policy, seal, and a check before they are in place."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from workbench.errors import StoreError
from workbench.i18n import translate
from workbench.origin import in_pieces
from workbench.report.seal import UNSEALED, sealed
from workbench.ui.charts import DARK, LIGHT, css_variables
from workbench.ui.charts.theme import VEGA_LITE
from workbench.whole_file import draft_of


def place(path: Path, page: str, check: Callable[[Path], Sequence[str]]) -> Path:
    """Seal the page, write it beside the target, check it, then put it in place in one go.

    Args:
        path: of the file.
        page: its text.
        check: says what is wrong with the page, one line each.

    Raises:
        StoreError: the file cannot be written, or does not pass.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(path, mode=0o644) as draft:
            draft.write_text(sealed(page), encoding="utf-8", errors="replace", newline="\n")
            problems = check(draft)
            if problems:
                raise StoreError(
                    f"report {path}: got {problems[0]!r}, expected a self-contained page; report this fault"
                )
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"report {path}: {reason}; choose a folder that can be written and has space") from None
    return path


@cache
def script_of_page() -> str:
    """Vega, Vega-Lite and Vega-Embed with the page's own code, once."""
    own = files("workbench.report").joinpath("templates/report.js").read_text(encoding="utf-8")
    return str(vl_convert.javascript_bundle(own, vl_version=VEGA_LITE))


def style() -> str:
    """The pages' CSS, with the charts' colours in both themes."""
    own = files("workbench.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    light, dark = css_variables(LIGHT), css_variables(DARK)
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{own}"
    )


def policy(script: str) -> str:
    """A content security policy: only this very script, and no connection to anywhere."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def template(name: str) -> Any:
    """A page's template; what is put in is escaped."""
    pages = Environment(
        loader=PackageLoader("workbench.report"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}
    pages.globals |= {"zip": zip, "translate": translate, "in_pieces": in_pieces, "unsealed": UNSEALED}
    return pages.get_template(name)
