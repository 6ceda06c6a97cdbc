"""The panel's style sheet, in the page's own colours."""

from __future__ import annotations

_CSS = """
.wb-panel { container-type: inline-size; }
.wb-both { flex-wrap: wrap; align-items: flex-start; gap: 12px; overflow: hidden; }
.wb-left { flex: 0 0 27.5em; max-width: 100%; }
.wb-right { flex: 1 1 34em; min-width: 0; }
.wb-section { border-top: 1px solid var(--jp-border-color2, #d4d8dd); padding: 2px 0 6px; }
.wb-section h3 { margin: 0; font-size: 13px; font-weight: 600; }
.wb-section small { font-weight: normal; color: var(--jp-ui-font-color2, #5b6470); }
.wb-bar { flex-wrap: wrap; gap: 4px; overflow: hidden; }
.wb-trouble { border-left: 4px solid #d55e00; padding: 2px 8px; align-items: center; gap: 8px; }
.wb-trouble .wb-error { white-space: normal; line-height: 1.4; }
.wb-log pre {
  max-height: 14em; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; margin: 2px 0 8px; font-size: 11px;
}
.wb-log, .wb-result { line-height: 1.4; }
.wb-result:empty { display: none; }
.wb-table { overflow-x: auto; }
.wb-table table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.wb-table th, .wb-table td { padding: 1px 10px; text-align: right; }
.wb-table th:first-child { text-align: left; font-weight: normal; }
@container (max-width: 62em) { .wb-left, .wb-right { flex: 1 1 100%; } }
"""


def style() -> str:
    """A ``<style>`` element."""
    return f"<style>{_CSS}</style>"
