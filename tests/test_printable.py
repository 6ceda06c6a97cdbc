"""What would move a cursor or turn a line around is a question mark; all else stays."""

from __future__ import annotations

import io

import pytest
from rich.progress import Progress, TextColumn

from workbench import cli, console
from workbench.errors import EngineStartError, InputError
from workbench.printable import in_lines, letters, printable

BAD = "\x1b[31mred\x1b]0;mine\x07 \u202egnp.\u2066x\x9b2J\x7f\r"
SHOWN = "?[31mred?]0;mine? ?gnp.?x?2J??"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (BAD, SHOWN),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("שלום, مرحبا", "שלום, مرحبا"),
        ("family \U0001f468\u200d\U0001f469 and می\u200cخواهم", "family \U0001f468\u200d\U0001f469 and می\u200cخواهم"),
        ("half \ud800 a character", "half ? a character"),
    ],
)
def test_printable(words, expected):
    assert printable(words) == expected


def test_an_error_moves_no_cursor_wherever_the_words_are_from():
    assert str(InputError(BAD, BAD, BAD, BAD)).isprintable()
    error = EngineStartError(BAD, (BAD,))
    assert (error.cause, error.log_tail) == (SHOWN, (SHOWN,))


def test_the_console_shows_the_letters_of_names(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(console.out, "_file", screen)
    row = {BAD: f"{BAD}[/red][bold]b[/bold] :smile:"}
    console.out.print(console.frame_table([row], [BAD], BAD))
    console.out.print(BAD)
    said = screen.getvalue()
    assert printable(said) == said
    assert "[/red][bold]b[/bold] :smile:" in " ".join(said.split())


def test_bars_do_as_well(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(console.err, "_file", screen)
    with console.bars() as lines:
        lines.update(lines.add_task(BAD, total=2, note=BAD), completed=2, note=BAD)
    assert "gnp" in screen.getvalue()
    assert printable(screen.getvalue()) == screen.getvalue()
    bars = console._bars()
    Progress.add_task(bars, BAD, start=False, note=BAD)
    said = [column.render(bars.tasks[0]).plain for column in bars.columns if isinstance(column, TextColumn)]
    alone = "?[31mred?]0;mine ?gnp.?x?2J?"  # Rich itself takes bells and carriage returns out
    assert (said[0], said[-1]) == (alone, alone)


@pytest.mark.parametrize("words", [["runs", "show", BAD], [BAD], ["runs", f"--{BAD}"], ["import", f"/none/{BAD}"]])
def test_what_was_typed_is_one_line_that_moves_nothing(monkeypatch, capsys, words):
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["workbench", *words])
    with pytest.raises(SystemExit) as left:
        cli.main()
    said = capsys.readouterr().err.strip()
    assert left.value.code == 2
    assert said.isprintable()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a gap of 9 ms", ["a gap of 9", "ms"]),
        ("no-one-cuts-this word", ["no-one-cuts-this", "word"]),
        ("间隔P99；置信（95%）区间", ["间隔P99；置", "信（95%）区", "间"]),
        ("未显示出差异", ["未显示出差", "异"]),
        ("（甲）“乙”，", ["（甲）", "“乙”，"]),
    ],
)
def test_lines_end_where_a_reader_of_either_language_breaks_them(text, lines):
    assert in_lines(text, 11) == lines
    assert "".join(lines).replace(" ", "") == text.replace(" ", ""), "nothing is lost"


def test_letters_of_han_are_twice_as_wide():
    assert [letters(one) for one in ("P99", "间隔", "间隔 P99，")] == [3, 4, 10]
