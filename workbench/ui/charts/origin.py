"""Where a trace's numbers come from, in the words that stand on every chart."""

from __future__ import annotations

from workbench.i18n import marked, translate
from workbench.origin import in_pieces, origin_words
from workbench.trace import Trace

_BECAUSE = {
    "attached": marked("an attached server shows only what its client sees"),
    "simulated": marked("a simulation does not measure it"),
}


def origin(trace: Trace) -> str:
    """Where a trace comes from: "live CPU", "live GPU", "simulated · roofline, uncalibrated", ...

    A run that did not complete says so behind it.
    """
    label = in_pieces(origin_words(trace.meta))
    status = str(trace.meta.get("status") or "complete")
    return label if status == "complete" else translate("{label}, run {status}", label=label, status=translate(status))


def why_missing(trace: Trace, what: str) -> str:
    """A sentence in place of a chart: what is not in the trace, and why where the origin tells."""
    label = origin_words(trace.meta)
    reason = next((text for word, text in _BECAUSE.items() if word in label.lower()), marked("the run recorded none"))
    return translate("{what} in this trace:\n{reason}.", what=translate(what), reason=translate(reason))
