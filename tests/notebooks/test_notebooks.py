"""Each notebook runs from top to bottom without a browser, and is committed without outputs."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# The claims that each notebook must end up with a verdict on, in order.
VERDICTS = {
    "01_one_long_prompt": ["C1", "C2", "C3"],
    "02_memory_peaks": ["C1", "C2", "C4", "C5"],
    "03_budget_and_chunk": ["C6", "C7", "C8"],
    "04_policies": ["C12", "C13", "C9"],
    "05_preemption": ["C12", "C10", "C11"],
    "06_prefix_cache": ["C15"],
    "07_hardware_you_lack": ["C14", "C16"],
    "09_claims": ["C1"],  # the first line of the sheet
}
# Where the numbers of a notebook come from: what stands on each of its charts.
ORIGINS = dict.fromkeys(("07_hardware_you_lack", "08_tune"), "simulated · roofline, uncalibrated")
_DRAWS = re.compile(r"(?<!import )\b\w+_(chart|scatter)\(|\.reveal\(")
_VERDICT = re.compile(r"(C\d+) (holds in part|holds|does not hold here): .*\d.* \[.+\]")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_committed_without_outputs_and_with_short_cells(path):
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
            assert len(cell.source.splitlines()) <= 15


@pytest.mark.live
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_headless_and_shows_its_charts(path, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))
    try:
        notebook = _run(path)
    except CellExecutionError as error:
        # Seen once in some fifty runs: the machine lets the client stand still until the engine is idle. The streams
        # end before the prompt is sent, and the claim says that it cannot judge such a run. A person runs it again.
        if not re.search(r"InputError.*: runs?: got", str(error)):
            raise
        notebook = _run(path)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    drawn = [text for output in outputs if (text := _svg(output.get("data", {})))]
    assert len(drawn) == sum(bool(_DRAWS.search(cell.source)) for cell in notebook.cells if cell.cell_type == "code")
    assert all(ORIGINS.get(path.stem, "live CPU") in text for text in drawn)
    lines = [output.get("data", {}).get("text/plain", "") for output in outputs]
    verdicts = [found[1] for line in lines if (found := _VERDICT.match(line))]
    assert verdicts == VERDICTS.get(path.stem, [])


def _run(path):
    notebook = nbformat.read(path, 4)
    where = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=480, store_widget_state=False, resources=where).execute()
    return notebook


def _svg(data):
    """The drawing in an output, if it is one."""
    html = data.get("text/html", "")
    return data.get("image/svg+xml") or (html if "<svg" in html else "")
