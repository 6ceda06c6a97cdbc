"""Every notebook has its lesson, and hands over what the lesson asks for."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from workbench import Workbench
from workbench.errors import ScenarioError
from workbench.learn import Lesson
from workbench.learn.content import content, folder
from workbench.learn.curves import CURVES
from workbench.learn.limits import LIMITS
from workbench.learn.rights import RIGHTS

ROOT = Path(__file__).parents[2]
NAMES = sorted(file.stem for file in folder().glob("*.yaml"))
_FIGURE = re.compile(r"(gap_(p50|p99|max)_ms|ttft_(p50|max)_s|output_tokens_per_s)(\.\w+)?")
_HEADER = re.compile(r"> \*\*Time\*\*: (\d+) minutes · \*\*Before this\*\*: \S.*\n>\n> \*\*You will learn\*\* \S")


def calls(name):
    """The calls of the lesson in a notebook: ``exercise 1``, ``quiz``, ``reveal`` → the names handed over."""
    book = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4)
    found = {}
    for cell in book.cells:
        for node in ast.walk(ast.parse(cell.source)) if cell.cell_type == "code" else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                what = node.func.attr
                if what in ("exercise", "quiz", "reveal", "predict"):
                    place = f" {node.args[0].value}" if node.args else ""
                    found[what + place] = {word.arg for word in node.keywords}
    return found


def rights(asked):
    for one in (*asked.predict.numbers, *asked.exercises, *(q.number for q in asked.quiz if q.number)):
        yield from (condition.right for condition in getattr(one, "conditions", ()))
        if one.right:
            yield one.right
            yield from ([one.options["name"]] if "name" in one.options else [])


def test_each_notebook_has_one():
    assert set(NAMES) <= {file.stem for file in (ROOT / "notebooks").glob("*.ipynb")}
    assert [name[:2] for name in NAMES][:9] == [f"0{n}" for n in range(9)]
    with pytest.raises(ScenarioError, match=r"^lesson: got 'x', expected one of 00_quickstart"):
        Lesson.of("x")


@pytest.mark.parametrize("name", NAMES)
def test_names_what_can_be_computed(name):
    asked = content(name)
    assert asked.notebook == name
    for one in rights(asked):
        assert one in RIGHTS or one in LIMITS or _FIGURE.fullmatch(one), one
    draw = asked.predict.draw
    assert draw.curve in CURVES if draw.seconds else draw.curve in RIGHTS or _FIGURE.fullmatch(draw.curve)
    assert all(draw.low <= value <= draw.high for value in draw.guess)


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_hands_over_what_is_asked_for(name):
    asked, found = content(name), calls(name)
    needs = {"predict": set(), "reveal": {asked.predict.draw.of}.union(*(one.of for one in asked.predict.numbers))}
    needs |= {f"exercise {place}": set(one.of) for place, one in enumerate(asked.exercises, 1)}
    needs["quiz"] = set().union(*(q.number.of for q in asked.quiz if q.number))
    assert found == needs


@pytest.mark.parametrize("name", NAMES)
def test_the_first_cell_says_how_long_what_and_what_before(name):
    first = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4).cells[0].source
    header = _HEADER.search(first)
    assert header
    assert 10 <= int(header[1]) <= 20
    agenda = (ROOT / "notebooks" / "workshop.md").read_text(encoding="utf-8")
    assert re.search(rf"`{name}` \|[^|]*\| {header[1]} ", agenda), "the agenda has the same time"


def test_the_agendas_add_up():
    agenda = (ROOT / "notebooks" / "workshop.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in agenda.splitlines() if re.match(r"\| (`\d\d_|closing)", line)]
    minutes = [[int((re.match(r" (\d+)", cell) or [0, 0])[1]) for cell in row[3:]] for row in rows]
    assert [sum(column) for column in zip(*minutes, strict=True)] == [60, 120]


def recorded():
    """The workshop's table of recorded runs: for each lesson their names, and the words that hand them over."""
    text = (ROOT / "notebooks" / "workshop.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(\d\d)` \| (`.+?) \| .*?`(.+?)`.* \|$", text, re.MULTILINE)


def handed_over(runs, words):
    opened = [Workbench.open(ROOT / "data" / "runs" / name) for name in re.findall(r"`([^`]+)`", runs)]
    names = {"run": opened[0], **dict(zip(("one", "other", "third"), opened, strict=False))}
    return eval(f"dict({words})", {}, names)


@pytest.mark.parametrize(("name", "runs", "words"), recorded())
def test_recorded_runs_do_for_what_the_workshop_says(name, runs, words):
    lesson, given = Lesson.of(name), handed_over(runs, words)
    assert lesson.predict().reveal(**given).origin.startswith(("recorded, live CPU", "recorded, simulated"))
    asked = [one for one in enumerate(lesson.asked.exercises, 1) if one[1].kind in ("number", "limit")]
    answered = [place for place, one in asked if set(one.of) <= given.keys()]
    for place in answered:
        assert "lesson: got" not in lesson.exercise(place, **given).check(1).said
    if name == "01":
        assert lesson.exercise(1, **given).check(80).state == "right"


def test_a_class_without_vllm_can_reveal_and_answer():
    code = """
import sys
from workbench import Workbench
from workbench.learn import Lesson
lesson = Lesson.of("00")
run = Workbench.open("data/runs/chat_and_long-budget-512-then-64")
print(lesson.predict().reveal(run=run).origin)
lesson.exercise(1, run=run).check(1), lesson.quiz(run=run).answer(1, "a"), Lesson.of("07").exercise(1).check(1)
print(sorted({"vllm", "torch", "ipywidgets", "anywidget"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines() == ["recorded, live CPU, AMD EPYC, 2 cores, 2026-12-01, smollm2", "[]"]


def test_no_widgets_are_imported():
    files = list((ROOT / "workbench" / "learn").glob("*.py"))
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert "workbench.learn.content" in names
    assert not {name.split(".")[0] for name in names} & {"ipywidgets", "anywidget", "IPython", "traitlets"}
