"""A first look at somebody else's server: what it is, what it serves, and what it says of itself."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from workbench.attached_config import AttachedConfig
from workbench.engine.attached_http import Answer, Caller
from workbench.engine.attached_refused import check, refused
from workbench.errors import ConfigError, EngineStartError, WorkbenchError
from workbench.telemetry.metrics_page import Page

Kind = Literal["vllm", "sglang", "plain"]

# Of SGLang's server arguments those that say how it schedules; the rest holds keys and paths.
_SGLANG = (
    "attention_backend",
    "chunked_prefill_size",
    "disable_radix_cache",
    "dtype",
    "enable_mixed_chunk",
    "max_prefill_tokens",
    "max_running_requests",
    "mem_fraction_static",
    "page_size",
    "pp_size",
    "schedule_policy",
    "tp_size",
)


@dataclass(frozen=True)
class Found:
    """What is known of a server; what it does not say is None.

    Attributes:
        kind: vllm, sglang, or plain for any other OpenAI-compatible server.
        version: of its software.
        model: name under which the model is served.
        max_model_len: longest prompt plus output.
        root: folder or id that the model was loaded from.
        others: further models that it serves.
        metrics: whether its ``/metrics`` says something that we know.
        settings: start-up fields that it tells (SGLang).
    """

    kind: Kind
    version: str | None
    model: str
    max_model_len: int | None
    root: str | None
    metrics: bool
    others: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """What it is, for a person."""
        name = {"vllm": "vLLM", "sglang": "SGLang", "plain": "an OpenAI-compatible server"}[self.kind]
        return f"{name} {self.version}" if self.version else name

    @property
    def local_tokenizer(self) -> Path | None:
        """The model's tokenizer.json, if its folder is on this machine."""
        folder = Path(self.root) if self.root and self.root.startswith("/") else None
        try:
            return folder / "tokenizer.json" if folder is not None and (folder / "tokenizer.json").is_file() else None
        except OSError:
            return None


def look(config: AttachedConfig, caller: Caller) -> Found:
    """Ask a server what it is.

    Raises:
        EngineStartError: it cannot be reached, refuses the key, redirects, or is no OpenAI-compatible server.
        ConfigError: it does not serve the model that was asked for.
    """
    url = f"{config.url}/models"
    try:
        answer = check(url, caller.ask(url), config)
    except WorkbenchError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise refused(config.url, error) from None
    cards = _cards(answer)
    if cards is None:
        raise EngineStartError(
            f"attach {url}: got {answer.said[:80]!r}, expected a list of models; this is no OpenAI-compatible server, "
            "or its API has another base path"
        )
    if not cards:
        raise EngineStartError(
            f"attach {url}: got an empty list of models, expected at least one; wait until it has loaded one, or give "
            "a key that may use one (--api-key-env NAME)"
        )
    card = _chosen(config, cards)
    kind, version = _kind(config, caller, card)
    length = card.get("max_model_len")
    page = _quiet(caller, f"{config.root}/metrics")
    root = card.get("root")
    return Found(
        kind=kind,
        version=version,
        model=card["id"],
        max_model_len=length if is_count(length) else None,
        root=root if isinstance(root, str) else None,
        others=tuple(one["id"] for one in cards if one is not card),
        metrics=page is not None and Page.parse(page.body.decode(errors="replace")).knows,
        settings=_sglang_settings(caller, config) if kind == "sglang" else {},
    )


def _cards(answer: Answer) -> list[dict[str, Any]] | None:
    """The models' cards; none if this is no list of models."""
    found = answer.json
    data = found.get("data") if isinstance(found, dict) else None
    if not isinstance(data, list):
        return None
    named = [one for one in data if isinstance(one, dict) and _is_name(one.get("id"))]
    return named if named or not data else None


def _chosen(config: AttachedConfig, cards: list[dict[str, Any]]) -> dict[str, Any]:
    if not config.model:
        return cards[0]
    named = [one for one in cards if one["id"] == config.model]
    if not named:
        known = ", ".join(str(one["id"]) for one in cards[:8])
        raise ConfigError("model", config.model, f"one that the server has ({known})", "leave it out to take the first")
    return named[0]


def _kind(config: AttachedConfig, caller: Caller, card: dict[str, Any]) -> tuple[Kind, str | None]:
    """By the owner in the model's card, and the version page that each of the two has."""
    owner = str(card.get("owned_by")).lower()
    if owner == "sglang":
        info = _sglang_info(caller, config)
        version = info.get("version") if info else None
        return "sglang", version if _is_name(version) else None
    if owner == "vllm":
        answer = _quiet(caller, f"{config.root}/version")
        found = answer.json if answer else None
        version = found.get("version") if isinstance(found, dict) else None
        return "vllm", version if _is_name(version) else None
    return "plain", None


def _sglang_info(caller: Caller, config: AttachedConfig) -> dict[str, Any] | None:
    for path in ("/server_info", "/get_server_info"):  # the latter in older ones
        answer = _quiet(caller, config.root + path)
        if answer is not None and isinstance(answer.json, dict):
            return dict(answer.json)
    return None


def _sglang_settings(caller: Caller, config: AttachedConfig) -> dict[str, Any]:
    info = _sglang_info(caller, config) or {}
    return {name: info[name] for name in _SGLANG if _is_number(info.get(name)) or _is_name(info.get(name))}


def _quiet(caller: Caller, url: str) -> Answer | None:
    """An answer that may be missing."""
    try:
        answer = caller.ask(url)
    except (OSError, http.client.HTTPException, WorkbenchError):
        return None
    return answer if answer.status == 200 else None


def _is_name(value: object) -> bool:
    """A text to show: not what moves a terminal's cursor."""
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= 1_000


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < 1 << 53  # not so NaN and infinity


def is_count(value: object) -> bool:
    """Whether it is a count of tokens that can be."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31
