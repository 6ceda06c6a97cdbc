"""Questions to a server that is not ours: one connection each, no redirect followed, every failure in one line."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from workbench.attached_config import AttachedConfig
from workbench.errors import ConfigError, EngineStartError

_MOST_BYTES = 32 << 20  # of an answer; /metrics of a busy server is some 100 kB
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class Answer:
    """What a server said.

    Attributes:
        status: of HTTP.
        body: its bytes.
        location: where a redirect points; empty if it is none.
    """

    status: int
    body: bytes
    location: str = ""

    @property
    def json(self) -> Any:
        """The body as JSON; none if it is not."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def said(self) -> str:
        """The beginning of the body in one line, or of the error in it."""
        found = self.json
        error = found.get("error", found.get("message", found.get("detail"))) if isinstance(found, dict) else None
        if isinstance(error, dict):
            error = error.get("message")
        text = error if isinstance(error, str) else self.body[:400].decode(errors="replace")
        return " ".join(text.split())[:160]


@dataclass(frozen=True)
class Caller:
    """Asks one server.

    Attributes:
        config: how to reach it.
        api_key: empty if none is used.
    """

    config: AttachedConfig
    api_key: str = field(repr=False, default="")

    def ask(self, url: str, body: dict[str, Any] | None = None, timeout_s: float | None = None) -> Answer:
        """GET ``url``, or POST a body to it.

        Args:
            url: on the server.
            body: to send as JSON.
            timeout_s: of the connection and of each packet; by default the configuration's.

        Raises:
            EngineStartError: nobody listens there, TLS failed, or what came is not HTTP.
            OSError: the connection broke in the middle of it; also a timeout.
        """
        parts = urllib.parse.urlsplit(url)
        timeout = self.config.start_timeout_s if timeout_s is None else timeout_s
        headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body), "application/json"
        connection = self._connection(parts, timeout)
        try:
            connection.request("GET" if data is None else "POST", parts.path or "/", data, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(_MOST_BYTES), answer.getheader("Location") or "")
        finally:
            connection.close()

    def _connection(self, parts: urllib.parse.SplitResult, timeout: float) -> http.client.HTTPConnection:
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout, context=self._context())

    def _context(self) -> ssl.SSLContext:
        ca = self.config.ca
        try:
            context = ssl.create_default_context(cafile=str(ca) if ca is not None else None)
        except (OSError, ssl.SSLError) as bad:
            raise ConfigError("ca", ca, f"a file of certificates in PEM ({bad.strerror or bad})", "check it") from None
        if self.config.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def refused(url: str, error: BaseException) -> EngineStartError:
    """Why a server could not be asked, in one line that says what to do."""
    what, https = f"attach {url}", url.startswith("https:")
    match error:
        case ssl.SSLCertVerificationError():
            why = f"TLS: its certificate was not accepted ({error.verify_message}); give --ca FILE, or --insecure"
        case ssl.SSLError() if "WRONG_VERSION_NUMBER" in str(error) or "RECORD_LAYER_FAILURE" in str(error):
            why = "TLS: what answers there does not speak it; give an http:// address"
        case ssl.SSLError():
            why = f"TLS failed ({error.reason or error}); check the address and the server's certificate"
        case ConnectionRefusedError():
            why = "nothing listens there (connection refused); check host and port, or start the server"
        case socket.gaierror():
            why = "there is no host of that name; check the address"
        case TimeoutError():
            why = "no answer in time; check the address, or raise --set start_timeout_s=…"
        case http.client.BadStatusLine() | http.client.RemoteDisconnected() | ConnectionResetError() if not https:
            why = "what answers there does not speak plain HTTP; give an https:// address if it is TLS"
        case http.client.HTTPException():
            why = f"what answers there does not speak HTTP ({type(error).__name__}); check the address"
        case _:
            why = f"the connection failed ({_plain(error)}); check the address"
    return EngineStartError(f"{what}: {why}")


def check(url: str, answer: Answer, config: AttachedConfig) -> Answer:
    """The answer, if it is one to work with.

    Raises:
        EngineStartError: a redirect, a refused key, or any other status than 200.
    """
    what = f"attach {url}"
    if answer.status in _REDIRECTS:
        there = urllib.parse.urljoin(url, answer.location)
        secure = url.startswith("http:") and there.startswith("https:")
        raise EngineStartError(
            f"{what}: it redirects to {_shown(there)}, and a key is never carried elsewhere; "
            f"give {'the https:// address' if secure else 'that address'} if you trust it"
        )
    if answer.status in (401, 403):
        how = (
            f"check the value of {config.api_key_env}" if config.api_key_env else "name its key with --api-key-env NAME"
        )
        raise EngineStartError(f"{what}: it refused the key (status {answer.status}); {how}")
    if answer.status != 200:
        said = answer.said or "no reason given"
        raise EngineStartError(
            f"{what}: got status {answer.status} ({said}), expected 200; check the base path of the address"
        )
    return answer


def _shown(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))[:200]


def _plain(error: BaseException) -> str:
    return " ".join(str(getattr(error, "strerror", None) or error or type(error).__name__).split())[:160]
