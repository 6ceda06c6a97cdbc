"""From a knob to the eye, on a live engine: a knob is turned in a notebook, and its rule awaited on the charts."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from benchmarks.parts.lab import Lab
from benchmarks.parts.notebook import PANEL as _PANEL
from benchmarks.parts.notebook import Notebook
from benchmarks.parts.stats import say

_CELL = "import json, time\nfrom workbench import Workbench\nwb = Workbench(model='smollm2')\npanel = wb.panel()\npanel"
_BOARD = "document.querySelector('.wb-board')?.parentElement.__board"
# Until Vega holds the rule of a revision; answers with the time of that frame.
_SEEN = f"""(revision) => new Promise((resolve, reject) => {{
    const began = Date.now();
    const look = () => {{
        const rules = {_BOARD}?.rows().steps?.rules ?? new Map();
        const drawn = new Set({_BOARD}?.ids().steps?.rules ?? []);
        if ([...rules].some(([id, row]) => row.revision === revision && drawn.has(id))) resolve(Date.now());
        else if (Date.now() - began > 30000) reject(new Error(`no rule of revision ${{revision}}`));
        else requestAnimationFrame(look);
    }};
    look();
}})"""
# Whether Vega holds what each chart is about.
_ALL_DRAWN = f"""() => {{
    const held = {_BOARD}?.ids() ?? {{}};
    return [["gaps", "gaps"], ["steps", "bars"], ["memory", "peaks"], ["queue", "kv"]]
        .every(([chart, name]) => held[chart]?.[name]?.length);
}}"""
_NOTEBOOK = f"() => ['idle', 'busy'].includes({_PANEL}?.sessionContext?.session?.kernel?.status)"
_CONTROLS = "() => document.querySelector('.wb-form input[type=range]') !== null"
# Steps that began after a change was sent and ran under an older revision, at most; and changes that a step ran under.
_LATE = """
trace = wb.current_run.trace
sent = trace.knobs.dropna(subset="sent_s").groupby("revision")["sent_s"].min()
steps = trace.steps
late = [int(((steps["scheduled_s"] > at) & (steps["revision"] < number)).sum()) for number, at in sent.items()]
print(json.dumps([max(late), int(steps["revision"].nunique()) - 1]))  # the first was in force before
"""
_BETWEEN_S = 0.7  # two changes


def turn(browser: Any, lab: Lab, changes: int, reloads: int = 1) -> dict[str, Any]:
    """Start an engine and a load, turn the budget so often, and reload the page in mid-run.

    Args:
        browser: from :func:`benchmarks.parts.chromium.chromium`.
        lab: to open the notebook in.
        changes: of the knob.
        reloads: of the page.

    Returns:
        ``knob_visible_p95_s`` (from the change to the frame that shows its rule), ``knob_late_steps_max`` (steps that
        began after a change and ran without it), ``knob_steps`` (changes that a step ran under), ``lab_s``,
        ``controls_s`` and ``reload_s`` (medians, from the reload to a kernel, to controls, and to four charts with
        rows), ``reload_max_s``.
    """
    with Notebook(browser, lab, [_CELL], name="turning") as notebook:
        page = notebook.page
        notebook.run(0)
        page.wait_for_selector(".wb-board canvas")
        say("starting an engine")
        notebook.execute("_ = wb.start()\n_ = wb.run('interactive')")
        page.wait_for_function(_ALL_DRAWN, timeout=60_000)
        say(f"turning the budget {changes} times")
        seen = []
        for number in range(changes):
            turned = f"at = time.time()\nprint(json.dumps([at, wb.knobs(budget={(64, 256)[number % 2]})]))"
            sent, revision = json.loads(notebook.execute(turned))
            seen.append(page.evaluate(_SEEN, revision) / 1000 - sent)
            time.sleep(_BETWEEN_S)
        page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        say(f"reloading the page {reloads} times")
        taken = [_reload(page) for _ in range(reloads)]
        notebook.ready()
        late, ran = json.loads(notebook.execute(_LATE))
        notebook.execute("wb.stop()")
        if notebook.complaints:
            raise SystemExit(f"charts: the page complains: {notebook.complaints[:3]}")
    return {
        "knob_visible_p50_s": float(np.percentile(seen, 50)) if seen else None,
        "knob_visible_p95_s": float(np.percentile(seen, 95)) if seen else None,
        "knob_late_steps_max": late,
        "knob_steps": ran,
        "knob_changes": changes,
        **{name: float(np.median([one[name] for one in taken])) for name in (taken or [{}])[0]},
        "reload_max_s": max((one["reload_s"] for one in taken), default=None),
        "reloads": reloads,
    }


def _reload(page: Any) -> dict[str, float]:
    """Load the page again: seconds until the notebook has its kernel, the panel its controls, the charts their rows."""
    began = time.perf_counter()
    page.reload()
    marks = {}
    for name, there in (("lab_s", _NOTEBOOK), ("controls_s", _CONTROLS), ("reload_s", _ALL_DRAWN)):
        page.wait_for_function(there, timeout=60_000)
        marks[name] = time.perf_counter() - began
    time.sleep(_BETWEEN_S)
    return marks
