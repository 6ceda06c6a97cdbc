"""Prompts that a person drops into a run: each unlike all before, ready to be sent at once."""

from __future__ import annotations

import itertools
from numbers import Integral
from pathlib import Path

from workbench.errors import InputError
from workbench.i18n import phrase
from workbench.workload.priority import OFFLINE
from workbench.workload.prompts import Prompts, load_tokenizer
from workbench.workload.request import Request
from workbench.workload.scenario import MAX_SEED


class Drops:
    """Makes dropped prompts.

    Args:
        tokenizer: the model's ``tokenizer.json``; read now, so that a drop need not wait for it.
        max_model_len: the engine's context.
    """

    def __init__(self, tokenizer: Path, max_model_len: int) -> None:
        self._prompts = Prompts(load_tokenizer(tokenizer), seed=MAX_SEED + 1)  # a seed that no scenario has
        self._numbers = itertools.count()
        self._max_model_len = max_model_len

    def make(self, tokens: int, output_tokens: int) -> Request:
        """One long prompt.

        Raises:
            InputError: it does not fit into the context, or a length is not a whole number of tokens.
        """
        check_lengths(tokens, output_tokens, self._max_model_len)
        return Request(
            request=f"dropped-{next(self._numbers)}",
            class_name="long",
            priority=OFFLINE,  # the cushion: whoever else is there goes first where the policy knows classes
            arrival_s=0.0,
            prompt=self._prompts.piece(tokens),
            output_tokens=output_tokens,
        )


def check_lengths(tokens: int, output_tokens: int, max_model_len: int) -> None:
    """Whether a prompt of that many tokens and its answer fit into the context.

    Raises:
        InputError: they do not, or a length is not a whole number of tokens.
    """
    if not _whole(output_tokens) or not 1 <= output_tokens < max_model_len:
        most = max_model_len - 1
        raise InputError(
            "output_tokens",
            output_tokens,
            phrase("1 to {most} (below max_model_len)", most=most),
            phrase("choose one of these"),
        )
    limit = max_model_len - output_tokens
    if not _whole(tokens) or not 1 <= tokens <= limit:
        expected = phrase(
            "1 to {limit} (max_model_len less {output_tokens} output tokens)", limit=limit, output_tokens=output_tokens
        )
        raise InputError("tokens", tokens, expected, phrase("choose a length in it"))


def _whole(tokens: object) -> bool:
    """Whether it is a count, which True is not."""
    return isinstance(tokens, Integral) and not isinstance(tokens, bool)
