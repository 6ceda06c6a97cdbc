"""An executed notebook as one HTML file without scripts and without an address in it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import StoreError
from workbench.report.parsed import outside

if TYPE_CHECKING:
    import nbformat

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; form-action 'none'"
)
# nbconvert's page without what it would fetch: RequireJS, MathJax, Mermaid, and the widgets' manager.
_OFFLINE = f"""
{{%- extends 'index.html.j2' -%}}
{{%- block html_head_js -%}}
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<link rel="icon" href="data:,">
{{%- endblock html_head_js -%}}
{{%- block jupyter_widgets -%}}{{%- endblock jupyter_widgets -%}}
{{%- block html_head_js_mathjax -%}}{{%- endblock html_head_js_mathjax -%}}
{{%- block html_head_js_mermaidjs -%}}{{%- endblock html_head_js_mermaidjs -%}}
{{%- block data_widget_view scoped -%}}
{{%- if "text/html" in output.data -%}}
<div class="jp-RenderedHTMLCommon jp-OutputArea-output">{{{{ output.data["text/html"] }}}}</div>
{{%- else -%}}
<div class="jp-RenderedText jp-OutputArea-output"><em>Controls that live in a notebook with a kernel.</em></div>
{{%- endif -%}}
{{%- endblock data_widget_view -%}}
"""


def write_page(notebook: nbformat.NotebookNode, path: Path, *, title: str, code: bool = True) -> Path:
    """Write a notebook as a page that asks for nothing from anywhere, and return its path.

    Args:
        notebook: with its outputs.
        path: of the page.
        title: of the page.
        code: whether the cells' code is shown.

    Raises:
        StoreError: it cannot be written, or something in it would be fetched.
    """
    from jinja2 import DictLoader
    from nbconvert import HTMLExporter  # here, since it takes a second

    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="lab",
        template_file="offline.html.j2",
        extra_loaders=[DictLoader({"offline.html.j2": _OFFLINE})],
        exclude_input=not code,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    page, _ = exporter.from_notebook_node(_settled(notebook), resources={"metadata": {"name": title}})
    problems = outside(page)
    if problems:
        raise StoreError(f"page {path}: {problems[0]}; take it out of the notebook")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        raise StoreError(f"page {path}: {error.strerror or error}; choose a folder that can be written") from None
    return path


def _settled(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy in which lines that wrote over themselves, such as a progress bar, stand as they ended."""
    settled = copy.deepcopy(notebook)
    for cell in settled.cells:
        whole: list[Any] = []  # what was printed in several pieces is one
        for output in cell.get("outputs", ()):
            last = whole[-1] if whole else {}
            if "text" in output and last.get("name") == output.get("name") and "text" in last:
                last["text"] += output["text"]
            else:
                whole.append(output)
        for output in whole:
            if "text" in output:
                lines = str(output["text"]).split("\n")
                output["text"] = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
        if whole:
            cell["outputs"] = whole
    return settled
