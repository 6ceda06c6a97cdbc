"""Questions to a server that is not ours: one connection each, an end to the waiting, no redirect followed."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import ssl
import threading
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from workbench import redact
from workbench.attached_config import AttachedConfig
from workbench.errors import ConfigError, EngineStartError

_MOST_BYTES = 8 << 20  # of an answer: /metrics of a busy server is some 100 kB, and JSON takes 25 times its size
STOPPED = "the start was stopped"
_PATH = "/%:@!$&'()*+,;=~"  # stays as it is in the path of an address


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
        if isinstance(error, str):
            return one_line(error)
        text = self.body[:4000].decode(errors="replace")
        if re.match(r"\s*<(!doctype html|html|head|body)\b", text, re.IGNORECASE):
            title = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
            return f"an HTML page, {one_line(title[1])!r}" if title and title[1].strip() else "an HTML page"
        return one_line(text)


@dataclass(frozen=True)
class Caller:
    """Asks one server.

    Attributes:
        config: how to reach it.
        api_key: empty if none is used.
    """

    config: AttachedConfig
    api_key: str = field(repr=False, default="")
    _open: set[http.client.HTTPConnection] = field(init=False, repr=False, compare=False, default_factory=set)
    _over: threading.Event = field(init=False, repr=False, compare=False, default_factory=threading.Event)

    def ask(self, url: str, body: dict[str, Any] | None = None, timeout_s: float | None = None) -> Answer:
        """GET ``url``, or POST a body to it.

        Args:
            url: on the server.
            body: to send as JSON.
            timeout_s: to connect, and then for all of the answer; by default the configuration's.

        Raises:
            EngineStartError: :meth:`abort` was called.
            OSError: nobody listens there, TLS failed, or the connection broke; a timeout is one as well.
            http.client.HTTPException: what came is not HTTP.
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
        self._open.add(connection)
        # A socket's own timeout is for each packet: of a server that sends a byte now and then it never comes.
        late = _Late(connection, timeout)
        try:
            if self._over.is_set():
                raise EngineStartError(STOPPED)
            connection.connect()
            late.start()
            path = urllib.parse.quote(parts.path or "/", safe=_PATH)
            connection.request("GET" if data is None else "POST", path, data, headers)
            answer = connection.getresponse()
            body_bytes = answer.read(_MOST_BYTES)
            if answer.length and len(body_bytes) < _MOST_BYTES:  # with a limit, read() itself does not mind
                raise http.client.IncompleteRead(body_bytes, answer.length)
            if late.fired:
                raise TimeoutError
            return Answer(answer.status, body_bytes, answer.getheader("Location") or "")
        except (OSError, http.client.HTTPException, ValueError) as error:  # the latter of a chunk of -5 bytes
            if self._over.is_set():
                raise EngineStartError(STOPPED) from None
            if late.fired or isinstance(error, TimeoutError):
                raise TimeoutError(f"{timeout:g} s") from None
            if not isinstance(error, OSError | http.client.HTTPException):
                raise http.client.HTTPException(str(error)) from None
            raise
        finally:
            late.cancel()
            self._open.discard(connection)
            connection.close()

    def abort(self) -> None:
        """End the questions that are on their way, and refuse further ones; from any thread."""
        self._over.set()
        for connection in tuple(self._open):
            _cut(connection)

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


class _Late:
    """Cuts a connection off when its time is up.

    Args:
        connection: that is to be cut off.
        after_s: :meth:`start`.
    """

    def __init__(self, connection: http.client.HTTPConnection, after_s: float) -> None:
        self.fired = False
        self._connection = connection
        self._timer = threading.Timer(after_s, self._fire)
        self._timer.daemon = True

    def start(self) -> None:
        """Begin to count."""
        self._timer.start()

    def cancel(self) -> None:
        """The answer is there."""
        self._timer.cancel()

    def _fire(self) -> None:
        self.fired = True
        _cut(self._connection)


def _cut(connection: http.client.HTTPConnection) -> None:
    """Have whoever waits for its next byte wait no longer."""
    sock = connection.sock
    if sock is not None:
        with contextlib.suppress(OSError):  # not connected yet, or no more
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not that of TLS, which takes its state from the reader


def one_line(text: str, most: int = 160) -> str:
    """A server's words in one line, without what moves a terminal's cursor, and without a key that it says again."""
    line = redact.text(" ".join(text.split()))  # before it is cut: half a key is not known for one
    return "".join(letter if letter.isprintable() else "?" for letter in line)[:most]
