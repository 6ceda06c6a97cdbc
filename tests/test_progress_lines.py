"""Progress in a pipe, by a clock of the test's own."""

import io

import pytest
from rich.console import Console

from workbench import console
from workbench.progress_lines import ProgressLines


class Piped:
    def __init__(self):
        self.now, self.file = 100.0, io.StringIO()
        self.progress = ProgressLines(Console(file=self.file, width=40), clock=lambda: self.now)

    @property
    def lines(self):
        return self.file.getvalue().splitlines()


@pytest.fixture
def piped():
    return Piped()


def test_a_line_at_the_begin_every_ten_seconds_and_at_the_end(piped):
    task = piped.progress.add_task("budget 64", total=1500, note="tokens")
    assert piped.lines == ["budget 64: 0 of 1,500 tokens"]
    for second in range(1, 26):
        piped.now = 100.0 + second
        piped.progress.update(task, completed=50 * second)
    piped.progress.update(task, completed=1500, note="recorded")
    assert piped.lines[1:] == [
        "budget 64: 500 of 1,500 tokens (0:10)",
        "budget 64: 1,000 of 1,500 tokens (0:20)",
        "budget 64: 1,500 of 1,500 recorded (0:25)",
    ]
    piped.progress.stop()
    assert len(piped.lines) == 4


def test_what_has_no_length_says_what_goes_on(piped):
    task = piped.progress.add_task("engine start", total=None, note="")
    for second, what in enumerate(["loading", "compiling", "compiling", "warming up"]):
        piped.now = 100.0 + 8 * second
        piped.progress.update(task, note=what)
    piped.now = 191.0
    piped.progress.update(task, note="ready", total=1, completed=1)
    assert piped.lines == [
        "engine start: …",
        "engine start: compiling (0:16)",
        "engine start: ready (1:31)",
    ]


def test_what_did_not_end_says_how_far_it_came(piped):
    done, cut = piped.progress.add_task("a", total=2, note=""), piped.progress.add_task("b", total=3, note="")
    piped.progress.advance(done)
    piped.progress.advance(done)
    piped.progress.advance(cut)
    piped.now = 104.0
    piped.progress.stop()
    piped.progress.stop()
    assert piped.lines == ["a: 0 of 2", "b: 0 of 3", "a: 2 of 2 (0:00)", "b: 1 of 3 (0:04)"]


def test_names_are_words_and_a_line_stays_one(piped):
    piped.progress.add_task("[/x]" * 20, total=None, note="")
    assert piped.lines == ["[/x]" * 20 + ": …"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_has_bars(monkeypatch, terminal):
    monkeypatch.setattr(console, "err", Console(file=io.StringIO(), force_terminal=terminal))
    with console.bars() as progress:
        assert isinstance(progress, ProgressLines) is not terminal
