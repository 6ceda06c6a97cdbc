"""A notebook executed with parameters, and exported as a page without a network."""

from __future__ import annotations

import subprocess
import sys

import nbformat
import pytest

from workbench.errors import EngineError, InputError, RunNotFoundError
from workbench.report.export import write_page
from workbench.report.notebook import find_notebook, notebook_names, run_notebook
from workbench.report.parsed import outside

CHART = """
from workbench import Workbench
from workbench.ui.charts import gap_chart
from workbench.ui.static import PAGE_LOOK, show

run = Workbench.open("data/runs/chats_beside_a_prompt-budget-320")
show(gap_chart(run.trace, run.slo, PAGE_LOOK))
"""


@pytest.fixture
def book(tmp_path):
    """A notebook with a parameter, a chart of a recorded run and a link."""
    cells = [
        nbformat.v4.new_code_cell("budget = 512", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_markdown_cell("# A [link](https://example.org) to click"),
        nbformat.v4.new_code_cell("print('budget', 2 * budget)"),
        nbformat.v4.new_code_cell(CHART),
    ]
    path = tmp_path / "small.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_runs_with_its_parameters_and_exports_with_its_chart(book, tmp_path, capfd):
    told = []
    done = run_notebook(book, tmp_path / "out" / "small.ipynb", {"budget": 64}, lambda *cell: told.append(cell))
    assert "without encryption" not in capfd.readouterr().err
    assert "widgets" not in done.metadata
    assert [output.text for cell in done.cells for output in cell.get("outputs", []) if "text" in output] == [
        "budget 128\n"
    ]
    assert told[-1] == (4, 5)
    page = write_page(done, tmp_path / "out" / "small.html", title="small")
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 1
    assert "recorded, live CPU, AMD EPYC" in text
    assert '<span class="mi">64</span>' in text
    assert "<script" not in text
    assert "default-src 'none'" in text
    assert outside(text) == []
    shown = write_page(done, tmp_path / "out" / "bare.html", title="small", code=False).read_text(encoding="utf-8")
    assert '<span class="mi">64</span>' not in shown
    assert "budget 128" in shown


def test_plain_nbconvert_has_the_chart_too(book, tmp_path):
    run_notebook(book, tmp_path / "out.ipynb")
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", str(tmp_path / "out.ipynb")]
    subprocess.run(command, check=True, capture_output=True)
    text = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert text.count('<div class="wb-static"><svg') == 1


def test_an_unknown_parameter_is_refused_before_anything_runs(book, tmp_path):
    with pytest.raises(InputError, match="got 'chunk', expected one of budget"):
        run_notebook(book, tmp_path / "out.ipynb", {"chunk": 1})
    assert not (tmp_path / "out.ipynb").exists()


def test_a_cell_that_fails_is_one_line_and_what_ran_is_kept(tmp_path):
    path, out = tmp_path / "bad.ipynb", tmp_path / "out.ipynb"
    cells = [nbformat.v4.new_code_cell("x = 7\nx"), nbformat.v4.new_code_cell("x / 0")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    with pytest.raises(EngineError, match=r"^notebook bad, cell 1: ZeroDivisionError: division by zero; see .*out"):
        run_notebook(path, out)
    assert "7" in str(nbformat.read(out, 4).cells)


def test_what_a_page_would_fetch_keeps_it_from_being_written(tmp_path):
    from workbench.errors import StoreError

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell('<img src="https://example.org/a.png">')])
    with pytest.raises(StoreError, match="points outside the file"):
        write_page(book, tmp_path / "page.html", title="t")
    assert not (tmp_path / "page.html").exists()


def test_a_progress_bar_stands_as_it_ended(tmp_path):
    outputs = [nbformat.v4.new_output("stream", text=text) for text in ("run:  0%\rrun: 50%", "\rrun: 100%\nnext\r\n")]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=outputs)])
    text = write_page(book, tmp_path / "page.html", title="t").read_text(encoding="utf-8")
    assert "run: 100%\nnext" in text
    assert "run: 50%" not in text
    assert "run: 50%" in book.cells[0].outputs[0].text, "the notebook itself stays as it was"


def test_notebooks_are_found_by_the_beginning_of_their_names():
    assert find_notebook("01").stem == "01_one_long_prompt"
    assert find_notebook("05_preemption.ipynb").stem == "05_preemption"
    with pytest.raises(RunNotFoundError, match="00_quickstart"):
        find_notebook("0")
    with pytest.raises(RunNotFoundError):
        find_notebook("")
    assert "00_quickstart" in notebook_names()
