"""What the documents tell people to type: fenced blocks, and commands in running text."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:\.venv/bin/)?(?:workbench|make) [a-z][^`]*)`")
_SHELL = {"sh", "bash", "shell", "console"}


def documents() -> list[Path]:
    """README and every other page that is there."""
    first = [ROOT / name for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "data/README.md")]
    rest = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "notebooks").glob("*.md"))]
    return [path for path in (*first, *rest) if path.is_file()]


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: its file, from the root of the repository.
        line: of its first line.
        language: behind the fence.
        text: of the block.
    """

    page: str
    line: int
    language: str
    text: str

    @property
    def id(self) -> str:
        """For a test's name."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command of a shell block, or of running text.

    Attributes:
        page: its file.
        line: of the page.
        text: as it stands there, without comment and without the line's end.
    """

    page: str
    line: int
    text: str

    @property
    def words(self) -> list[str]:
        """Of the shell, without assignments before the command."""
        words = shlex.split(self.text, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        return words

    @property
    def program(self) -> str:
        """What is called: workbench, make, or something else."""
        return Path(self.words[0]).name if self.words else ""

    @property
    def args(self) -> list[str]:
        """Words behind it."""
        return self.words[1:]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    name = str(page.relative_to(ROOT))
    return [Block(name, text[: m.start(2)].count("\n") + 1, m[1], m[2]) for m in _FENCE.finditer(text)]


def commands(page: Path) -> list[Command]:
    """All commands of the shell blocks of a page, in order; the two sides of `&&` are two."""
    found = []
    for block in blocks(page):
        if block.language in _SHELL:
            joined = re.sub(r"\\\n\s*", " ", block.text)
            for number, line in enumerate(joined.splitlines()):
                plain = shlex.join(shlex.split(line, comments=True)) if "&&" not in line else line
                for part in plain.split("&&"):
                    if part.strip():
                        found.append(Command(block.page, block.line + number, part.strip()))
    return found


def in_text(page: Path) -> list[Command]:
    """Commands in backticks outside of blocks."""
    text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
    bare = _FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    return [Command(name, bare[: m.start()].count("\n") + 1, m[1]) for m in _INLINE.finditer(bare)]
