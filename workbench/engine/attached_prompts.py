"""Prompts for a server whose tokenizer we do not have: text of about the length that was asked for.

A vocabulary of whole English words stands in for the tokenizer, so that scenarios, shared prefixes and dropped prompts
are built as for any engine. Two short requests tell how many of the server's tokens a word is; the text of each request
is then cut or drawn out to fit. What a prompt really had is the server's own count, ``usage.prompt_tokens``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from workbench.workload.english import sentences
from workbench.workload.prompts import load_tokenizer
from workbench.workload.request import Request

_SHORT, _LONG = 64, 192  # words of the two prompts that are measured
_LEAST, _MOST = 0.25, 8.0  # tokens a word that can be: beyond, the server's count does not follow its prompts
_BYTE_SCORE, _WORD_SCORE = -20.0, -1.0  # a word in one piece wins over its bytes
_SPACE = "\u2581"  # stands for a space in pieces


@dataclass(frozen=True)
class Ratio:
    """How the server counts our words.

    Attributes:
        per_word: its tokens a word.
        fixed: its tokens of any prompt: a template, a first token.
        measured: whether the server said so; otherwise a word is taken as a token.
    """

    per_word: float = 1.0
    fixed: float = 0.0
    measured: bool = False

    def words(self, tokens: int) -> int:
        """How many words make about that many tokens; at least one."""
        return max(1, round((tokens - self.fixed) / self.per_word))


def write_words(folder: Path) -> Path:
    """Write the vocabulary as a ``tokenizer.json`` into a folder; return its path. Any text can be encoded with it."""
    english = "".join(sentences(np.random.default_rng(0), 4000))
    words = sorted({*re.findall(r"\w+", english), *map(str, range(2000))})
    pieces = [(f"{_SPACE}{word}", _WORD_SCORE) for word in words] + [(mark, _WORD_SCORE) for mark in ".,?"]
    single = [(f"<0x{byte:02X}>", _BYTE_SCORE) for byte in range(256)]
    vocabulary = [("<unk>", 0.0), *single, *pieces, (_SPACE, _BYTE_SCORE)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, 0, byte_fallback=True))
    tokenizer.normalizer = normalizers.Strip(left=False, right=True)  # each piece of a text brings its own space
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence([decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path


class Texts:
    """Makes the text of a request from its ids in our vocabulary.

    Args:
        path: of the vocabulary, from :func:`write_words`.
    """

    def __init__(self, path: Path) -> None:
        self._tokenizer = load_tokenizer(path)
        self.ratio = Ratio()

    def __call__(self, request: Request) -> str:
        """A text of about as many of the server's tokens as the request has ids."""
        ids, words = request.prompt, self.ratio.words(request.prompt_tokens)
        return self.text(ids * -(-words // len(ids)), words)

    def text(self, ids: tuple[int, ...], words: int) -> str:
        """The first ``words`` ids as text."""
        return str(self._tokenizer.decode(ids[:words], skip_special_tokens=False)).strip()

    def measure(self, ask: Callable[[str], int | None]) -> Ratio:
        """Learn how the server counts.

        Args:
            ask: sends a prompt and returns how many tokens the server found in it; none if it does not say.
        """
        ids = tuple(
            self._tokenizer.encode("".join(sentences(np.random.default_rng(1), 60)), add_special_tokens=False).ids
        )
        few, many = (ask(self.text(ids, words)) for words in (_SHORT, _LONG))
        if few is not None and many is not None:
            per_word = (many - few) / (_LONG - _SHORT)
            if _LEAST <= per_word <= _MOST:
                self.ratio = Ratio(per_word, few - _SHORT * per_word, measured=True)
        return self.ratio
