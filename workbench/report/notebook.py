"""A notebook executed from top to bottom without a browser, with parameters."""

from __future__ import annotations

import ast
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import EngineError, InputError, RunNotFoundError
from workbench.store import default_root

if TYPE_CHECKING:
    import nbformat

TAG = "parameters"  # of the cell whose variables can be set
_CELL_S = 1800
_KERNEL = "python3"
_QUIET = ["--IPKernelApp.log_level=ERROR"]  # it warns of plain TCP, which here stays on this machine
_FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


def notebook_names() -> list[str]:
    """Names of the notebooks that come with the workbench."""
    return sorted(file.stem for file in _FOLDER.glob("*.ipynb"))


def find_notebook(name: str | Path) -> Path:
    """A notebook by its file, its name, or the beginning of its name, such as ``01``.

    Raises:
        RunNotFoundError: there is none, or there are several.
    """
    file, text = Path(name).expanduser(), str(name)
    if file.suffix == ".ipynb" and file.is_file():
        return file
    exact = [one for one in notebook_names() if one == text.removesuffix(".ipynb")]
    found = exact or [one for one in notebook_names() if text and one.startswith(text)]
    if len(found) != 1:
        known = ", ".join(found or notebook_names())
        raise RunNotFoundError("notebook", text, f"a file, or one of {known}", "name it in full")
    return _FOLDER / f"{found[0]}.ipynb"


def parameters_of(path: Path) -> dict[str, str]:
    """The variables that a notebook lets be set, with their defaults as written; from its cell with the tag.

    Raises:
        InputError: it is no notebook, or that cell is no Python.
    """
    cells = [cell for cell in _read(path).cells if TAG in cell.metadata.get("tags", ())]
    try:
        lines = [line for cell in cells for line in ast.parse(cell.source).body]
    except SyntaxError as error:
        raise InputError(f"{path.name}: parameters", error.text, "Python assignments", "mend the cell") from None
    return {
        target.id: ast.unparse(line.value)
        for line in lines
        if isinstance(line, ast.Assign)
        for target in line.targets
        if isinstance(target, ast.Name)
    }


def run_notebook(
    path: Path,
    out: Path,
    parameters: Mapping[str, Any] | None = None,
    on_cell: Callable[[int, int], None] | None = None,
) -> nbformat.NotebookNode:
    """Execute a notebook and write what came of it, also when a cell failed.

    No state of widgets is kept: what is shown are drawings and tables.

    Args:
        path: of the notebook.
        out: the executed notebook.
        parameters: values for variables of its cell with the tag ``parameters``.
        on_cell: told of each cell before it runs: its number, and how many there are.

    Returns:
        The executed notebook.

    Raises:
        InputError: the notebook does not have such a parameter.
        EngineError: a cell failed.
        StoreError: ``out`` cannot be written.
    """
    import papermill
    from papermill.exceptions import PapermillExecutionError

    given = dict(parameters or {})
    known = parameters_of(path) if given else {}
    for name in given:
        if name not in known:
            raise InputError(
                f"--set of {path.stem}", name, f"one of {', '.join(known) or 'no parameter at all'}", "leave it out"
            )

    def started(*, cell_index: int, **_: Any) -> None:
        if on_cell is not None:
            on_cell(cell_index, count)

    count = len(_read(path).cells) + bool(given)
    out.parent.mkdir(parents=True, exist_ok=True)
    logging.getLogger("papermill").setLevel(logging.ERROR)
    try:
        with _runs_here():
            done: nbformat.NotebookNode = papermill.execute_notebook(
                str(path),
                str(out),
                parameters=given,
                kernel_name=_KERNEL,
                language="python",
                cwd=str(path.resolve().parent),
                progress_bar=False,
                execution_timeout=_CELL_S,
                store_widget_state=False,
                on_cell_start=started,
                extra_arguments=_QUIET,
            )
            return done
    except PapermillExecutionError as error:
        what = f"{error.ename}: {error.evalue}".splitlines()[0]
        raise EngineError(f"notebook {path.stem}, cell {error.cell_index}: {what}; see {out}") from None


def _read(path: Path) -> nbformat.NotebookNode:
    import nbformat

    try:
        book: nbformat.NotebookNode = nbformat.read(path, 4)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise InputError("notebook", path, "a notebook of format 4", f"mend it ({type(error).__name__})") from error
    return book


@contextmanager
def _runs_here() -> Iterator[None]:
    """The notebook's kernel records into the runs of whoever called, not beside the notebook."""
    before = os.environ.get("WORKBENCH_RUNS")
    os.environ["WORKBENCH_RUNS"] = str(default_root().resolve())
    try:
        yield
    finally:
        if before is None:
            del os.environ["WORKBENCH_RUNS"]
        else:
            os.environ["WORKBENCH_RUNS"] = before
