"""How to reach a server that somebody else started; what it was started with is its own affair."""

from __future__ import annotations

import os
import re
import urllib.parse
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from workbench.config import EngineConfig
from workbench.errors import ConfigError
from workbench.redact import know

OWN = (
    "url",
    "model",
    "api_key_env",
    "chat",
    "insecure",
    "ca",
    "tokenizer",
    "probe",
    "max_model_len",
    "start_timeout_s",
)
"""Fields that say something about an attached server; the others of :class:`EngineConfig` are not ours to know."""

_UNKNOWN: dict[str, Any] = {"flag": None, "unit": ""}


class AttachedConfig(EngineConfig):
    """How to reach a running OpenAI-compatible server.

    The fields of :class:`EngineConfig` that are not in :data:`OWN` stand for what a server was started with. Of an
    attached one they are not known, and are shown nowhere.
    """

    engine: Literal["attached"] = Field(
        "attached", description="A server that runs already; we neither start nor stop it."
    )
    url: str = Field(
        description="Base of its API, such as http://127.0.0.1:8000/v1; without a path, /v1 is taken.",
        json_schema_extra=_UNKNOWN,
    )
    model: str = Field(
        "", description="Name under which it serves the model; none asks it.", json_schema_extra=_UNKNOWN
    )
    api_key_env: str | None = Field(
        None,
        description="Environment variable that holds the API key; the key itself is written nowhere.",
        json_schema_extra=_UNKNOWN,
    )
    chat: bool = Field(False, description="Use chat completions in place of completions.", json_schema_extra=_UNKNOWN)
    insecure: bool = Field(False, description="Do not check the server's TLS certificate.", json_schema_extra=_UNKNOWN)
    ca: Path | None = Field(
        None,
        description="File of the authorities (PEM) that the server's certificate is checked against.",
        json_schema_extra=_UNKNOWN,
    )
    tokenizer: Path | None = Field(
        None,
        description="tokenizer.json of the served model, or its folder: prompts then go out as token ids of exactly "
        "the length that was asked for. None sends text of about that length.",
        json_schema_extra=_UNKNOWN,
    )
    probe: Path | None = Field(
        None,
        description="Folder of the probe that the server was started with on this machine: then it has hot knobs and "
        "step records.",
        json_schema_extra=_UNKNOWN,
    )
    max_model_len: int = Field(
        0,
        ge=0,
        description="Longest prompt plus output of one request; 0 asks the server.",
        json_schema_extra={"flag": None, "unit": "tokens"},
    )
    start_timeout_s: float = Field(
        10.0,
        gt=0,
        le=86_400,
        description="How long the server may take to answer a question.",
        json_schema_extra={"flag": None, "unit": "s"},
    )

    @model_validator(mode="before")
    @classmethod
    def _with_path(cls, data: Any) -> Any:
        """The API's base: with a scheme, without a slash at its end, with /v1 where there is no path."""
        if not isinstance(data, dict) or not isinstance(data.get("url"), str):
            return data
        return {**data, "url": base_of(data["url"])}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.insecure and self.ca is not None:
            raise ConfigError("insecure and ca", "both", "one of them", "leave insecure out to check the certificate")
        if self.chat and self.tokenizer is not None:
            raise ConfigError(
                "chat and tokenizer", "both", "completions, where token ids can be sent", "leave one of them out"
            )
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.api_key_env):
            # What was given may be the key itself: it is not shown.
            raise ConfigError(
                "api_key_env",
                "something that is no name (hidden)",
                "the name of an environment variable",
                "export the key, and give the variable's name",
            )
        return self

    @property
    def api_key(self) -> str:
        """The key, from the environment; empty if none is used.

        Raises:
            ConfigError: the variable is not set, or holds what no header can carry.
        """
        if self.api_key_env is None:
            return ""
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            like_one = re.fullmatch(r"[A-Z0-9_]+", self.api_key_env)  # else it may be the key itself
            shown = self.api_key_env if like_one else "a name that is not set (hidden)"
            raise ConfigError(
                "api_key_env",
                shown,
                "an environment variable that is set",
                "export the key, and give the variable's name",
            )
        if not key.isascii() or not key.isprintable():
            raise ConfigError(
                "api_key_env", self.api_key_env, "a key of printable ASCII characters", "look at how it was exported"
            )
        know(key)
        return key

    @property
    def root(self) -> str:
        """What ``/metrics`` and ``/version`` stand under: the base without its last ``/v1``."""
        return self.url.removesuffix("/v1")

    @property
    def own(self) -> dict[str, Any]:
        """The fields that say something about this server, as plain data."""
        dumped = self.model_dump(mode="json")
        return {"engine": self.engine} | {name: dumped[name] for name in OWN}


def base_of(url: str) -> str:
    """The API's base that a person means by ``url``.

    Raises:
        ConfigError: it is no http or https address, or has a user, a query or a fragment in it.
    """
    text = url.strip()
    if "://" not in text and not re.match("https?:", text):  # http:/host is a slip, and no host called http
        text = f"http://{text}"
    try:
        parts = urllib.parse.urlsplit(text)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError:
        host, parts = None, urllib.parse.urlsplit("")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "url", "an address with a user or password in it (hidden)", "a plain address", "give a key by api_key_env"
        )
    if parts.query or parts.fragment:
        raise ConfigError("url", "an address with ? or # in it (hidden)", "an address without", "leave that part out")
    unprintable = any(letter.isspace() or not letter.isprintable() for letter in text)
    if parts.scheme not in ("http", "https") or not host or unprintable:
        raise ConfigError("url", url, "an http or https address", "write it like http://127.0.0.1:8000/v1")
    path = parts.path.rstrip("/")
    for tail in ("/chat/completions", "/completions", "/models"):
        path = path.removesuffix(tail)
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"
