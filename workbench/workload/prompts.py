"""Prompts with an exact number of tokens, made from a seed: English of our own, or cut from a person's text files.

A long text is encoded once into a pool of tokens; a prompt is a slice of it. What is not asked to be shared must not
be: every piece opens with a *head* of a few tokens that counts the pieces, so that two pieces differ in their first
token (or, after as many pieces as the pool has different tokens, in their second). Prefix caches share whole blocks
of equal tokens, which such prompts do not have.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from workbench.errors import ModelError, ScenarioError
from workbench.workload.english import sentences
from workbench.workload.paths import is_file, is_folder

_SENTENCES = 4000
_HEAD_TOKENS = 4
_TEXT_SUFFIXES = (".txt", ".md", ".rst")
_MOST_TEXT_BYTES = 8 << 20
_PROMPT_STREAM = 1  # keeps the random numbers of prompts apart from those of arrivals and lengths


@dataclass(frozen=True)
class Pool:
    """Tokens to cut prompts from.

    Attributes:
        tokens: the text, encoded.
        starts: where its sentences or lines begin.
    """

    tokens: tuple[int, ...]
    starts: tuple[int, ...]

    def cut(self, start: int, n: int) -> tuple[int, ...]:
        """``n`` tokens from the position ``start`` on, going round at the end."""
        rounds = -(-(start + n) // len(self.tokens))
        return (self.tokens * rounds if rounds > 1 else self.tokens)[start : start + n]


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a ``tokenizer.json``.

    Args:
        path: the file, or the model's folder that holds it.

    Raises:
        ModelError: the file is missing or damaged.
    """
    file = path / "tokenizer.json" if is_folder(path) else path
    if not is_file(file):
        raise ModelError("tokenizer", file, "a tokenizer.json", "give a model folder that has one")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as bad:  # noqa: BLE001 - the library raises nothing narrower
        raise ModelError("tokenizer", file, f"a readable tokenizer.json ({bad})", "fetch the model again") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # "<|im_end|>" in a person's text is text
    return tokenizer


def encode(tokenizer: Tokenizer, pieces: Iterable[str]) -> Pool:
    """Encode sentences or lines, one by one, into a pool.

    One by one, since ``encode_batch`` starts threads, after which each ``fork`` of the process prints a warning.

    Raises:
        ModelError: the tokenizer has no token for something and none for the unknown.
    """
    tokens: list[int] = []
    starts: list[int] = []
    for piece in pieces:
        try:
            ids = tokenizer.encode(piece, add_special_tokens=False).ids
        except Exception as bad:  # noqa: BLE001 - the library raises nothing narrower
            expected = f"text that it can encode ({bad})"
            raise ModelError("tokenizer", piece.strip(), expected, "use another model") from None
        if ids:
            starts.append(len(tokens))
            tokens += ids
    return Pool(tuple(tokens), tuple(starts))


class Prompts:
    """Makes the prompts of one workload.

    Args:
        tokenizer: the model's tokenizer, from ``load_tokenizer``.
        seed: the workload's seed.
        salt: other text for the same workload, so that a prefix cache does not know it from the run before.
    """

    def __init__(self, tokenizer: Tokenizer, seed: int, salt: int = 0) -> None:
        self._tokenizer = tokenizer
        self._rng = np.random.default_rng([_PROMPT_STREAM, seed, salt])
        self.english = encode(tokenizer, sentences(self._rng, _SENTENCES))
        if not self.english.tokens:
            raise ModelError("tokenizer", "no tokens", "tokens for English text", "use another model")
        self._alphabet: list[int] = self._rng.permutation(sorted(set(self.english.tokens))).tolist()
        self._known: dict[Hashable, tuple[tuple[int, ...], int]] = {}
        self._made = 0

    def piece(self, n: int, key: Hashable = None, pool: Pool | None = None) -> tuple[int, ...]:
        """Exactly ``n`` tokens.

        Args:
            n: how many.
            key: pieces with the same key start with the same tokens (all of them, if equally long, else as many as
                the shorter one has); without a key the piece is like no other.
            pool: what to cut it from; our own English otherwise.
        """
        pool = pool or self.english
        known = self._known.get(key) if key is not None else None
        if known is None:
            known = self._next_head(), pool.starts[int(self._rng.integers(len(pool.starts)))]
            if key is not None:
                self._known[key] = known
        head, start = known
        return (head + pool.cut(start, n - len(head)))[:n] if n > len(head) else head[:n]

    def _next_head(self) -> tuple[int, ...]:
        """The number of pieces so far, lowest digit first, written in tokens."""
        rest, base = self._made, len(self._alphabet)
        self._made += 1
        head = []
        for place in range(_HEAD_TOKENS):
            rest, digit = divmod(rest, base)
            head.append(self._alphabet[(digit + place) % base])
        return tuple(head)

    def documents(self, path: Path) -> Pool:
        """Encode a person's text: a file, or all text files below a folder in the order of their names.

        No more than the first 8 MiB are read.

        Raises:
            ScenarioError: there is no text, or it is not UTF-8.
        """
        pool = encode(self._tokenizer, _lines(path))
        if not pool.tokens:
            raise ScenarioError("documents", path, "some text", "use files that are not empty")
        return pool


def _lines(path: Path) -> Iterator[str]:
    left = _MOST_TEXT_BYTES
    for file in _text_files(path):
        try:
            with file.open("rb") as stream:
                data = stream.read(left)
                whole = not stream.read(1)
            text = data.decode("utf-8-sig", errors="strict" if whole else "ignore")
        except OSError as bad:
            raise ScenarioError("documents", file, "a file that can be read", str(bad.strerror or bad)) from None
        except UnicodeDecodeError as bad:
            fix = f"save it as UTF-8 (byte {bad.start} is not) or leave it out"
            raise ScenarioError("documents", file, "text in UTF-8", fix) from None
        if "\0" in text:
            raise ScenarioError("documents", file, "text, not binary data", "leave it out")
        yield from text.splitlines(keepends=True)
        left -= len(data)
        if left <= 0:
            return


def _text_files(path: Path) -> list[Path]:
    if is_file(path):
        return [path]
    if not is_folder(path):
        raise ScenarioError("documents", path, "a text file or a folder of them", "check the path")
    files = sorted(f for f in path.rglob("*") if f.suffix.lower() in _TEXT_SUFFIXES and is_file(f))
    if not files:
        kinds = ", ".join(_TEXT_SUFFIXES)
        raise ScenarioError("documents", path, f"a folder with text files ({kinds})", "name a file or another folder")
    return files
