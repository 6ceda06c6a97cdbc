"""How prompts go out to an attached server: as token ids where its tokenizer is here, else as measured texts."""

from __future__ import annotations

import http.client
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.attached_config import AttachedConfig
from workbench.engine.attached_http import Answer, Caller
from workbench.engine.attached_look import Found, is_count
from workbench.engine.attached_prompts import Texts, write_words
from workbench.engine.attached_refused import check, refused
from workbench.errors import ConfigError, EngineStartError, WorkbenchError
from workbench.workload.prompts import load_tokenizer

_LEAST_WAIT_S = 60.0  # a server may be busy with what others asked


@dataclass(frozen=True)
class Prompts:
    """How prompts are made for one server.

    Attributes:
        tokenizer: the file that lengths are counted with.
        texts: makes the text of a request; none sends token ids.
    """

    tokenizer: Path
    texts: Texts | None

    @property
    def words(self) -> str:
        """The same for a run's metadata."""
        if self.texts is None:
            return "token ids of exactly the length asked for"
        ratio = self.texts.ratio
        how = (
            f"{ratio.per_word:.3g} tokens a word, {ratio.fixed:.3g} of every prompt"
            if ratio.measured
            else "a token a word"
        )
        return f"text of about the length asked for ({how}); prompt_tokens is the server's own count"


def choose_prompts(config: AttachedConfig, found: Found, caller: Caller, folder: Path) -> Prompts:
    """Token ids where the model's tokenizer is here and the server takes them as they are, else texts.

    Args:
        config: how the server is reached.
        found: what it is.
        caller: of it.
        folder: to write a vocabulary into.

    Raises:
        ConfigError: the tokenizer that was named is none, or not the server's.
        EngineStartError: the server did not complete a short prompt.
    """
    tokenizer = config.tokenizer
    here = urllib.parse.urlsplit(config.url).hostname in ("127.0.0.1", "localhost", "::1")
    if tokenizer is None and here and not config.chat and found.kind != "plain":
        tokenizer = found.local_tokenizer
    if tokenizer is not None:
        load_tokenizer(tokenizer)
        ids = list(range(100, 108))
        counted = completion(config, caller, found.model, ids)
        if counted is None or counted == len(ids):
            return Prompts(tokenizer, None)
        if config.tokenizer is not None:
            raise ConfigError(
                "tokenizer", tokenizer, f"a server that takes token ids as they are ({len(ids)} became {counted})",
                "leave it out, and prompts go out as text",
            )  # fmt: skip
    words = write_words(folder)
    texts = Texts(words)
    texts.measure(lambda prompt: completion(config, caller, found.model, prompt))
    return Prompts(words, texts)


def completion(config: AttachedConfig, caller: Caller, model: str, prompt: str | list[int]) -> int | None:
    """Have the server complete a prompt by one token; return how many tokens it found in it, none if it does not say.

    Raises:
        EngineStartError: it did not.
    """
    kind = "chat/completions" if config.chat else "completions"
    url, body = f"{config.url}/{kind}", {"model": model, "max_tokens": 1, "temperature": 0}
    said = {"messages": [{"role": "user", "content": prompt}]} if config.chat else {"prompt": prompt}
    try:
        answer = caller.ask(url, body | said, timeout_s=max(_LEAST_WAIT_S, config.start_timeout_s))
    except WorkbenchError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise refused(url, error) from None
    if answer.status in (404, 405):
        other = "leave --chat out" if config.chat else "try --chat"
        raise EngineStartError(f"attach {url}: it has no such endpoint (status {answer.status}); {other}")
    return _prompt_tokens(check(url, answer, config))


def _prompt_tokens(answer: Answer) -> int | None:
    found: Any = answer.json
    usage = found.get("usage") if isinstance(found, dict) else None
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return count if is_count(count) else None
