"""Why a server that is not ours cannot be worked with: each kind of failure in one line that says what to do."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.parse

from workbench.attached_config import AttachedConfig
from workbench.engine.attached_http import Answer, one_line
from workbench.errors import EngineStartError

_REDIRECTS = (301, 302, 303, 307, 308)


def refused(url: str, error: BaseException) -> EngineStartError:
    """Why a server could not be asked, in one line that says what to do."""
    what, https = f"attach {url}", url.startswith("https:")
    match error:
        case ssl.SSLCertVerificationError():
            why = f"TLS: its certificate was not accepted ({error.verify_message}); give --ca FILE, or --insecure"
        case ssl.SSLError() if "WRONG_VERSION_NUMBER" in str(error) or "RECORD_LAYER_FAILURE" in str(error):
            why = "TLS: what answers there does not speak it; give an http:// address"
        case ssl.SSLEOFError() | ConnectionResetError() | BrokenPipeError() if https:
            why = "TLS: it closed the connection without an answer; give an http:// address if it speaks plain HTTP"
        case ssl.SSLError():
            why = f"TLS failed ({error.reason or error}); check the address and the server's certificate"
        case ConnectionRefusedError():
            why = "nothing listens there (connection refused); check host and port, or start the server"
        case socket.gaierror():
            why = "there is no host of that name; check the address"
        case TimeoutError():
            why = f"no answer within {error}; check the address, or raise --set start_timeout_s=…"
        case ConnectionResetError() | BrokenPipeError():
            why = (
                "it closed the connection without an answer; give an https:// address if it speaks TLS, else see "
                "the server's log"
            )
        case http.client.BadStatusLine():
            why = "what answers there does not speak plain HTTP; give an https:// address if it is TLS"
        case http.client.IncompleteRead():
            why = "it closed the connection in the middle of its answer; see the server's log"
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
        try:
            there = urllib.parse.urljoin(url, answer.location)
        except ValueError:  # brackets that are no IPv6 address
            there = ""
        secure = url.startswith("http:") and there.startswith("https:")
        give = f"give {'the https:// address' if secure else 'that address'} if you trust it"
        if not there.startswith(("http:", "https:")):
            give = "check the address"  # file:, javascript: and the like are none of a server
        raise EngineStartError(
            f"{what}: it redirects to {_shown(there) or 'nowhere'}, and a key is never carried elsewhere; {give}"
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
    return one_line(urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")), 200)


def _plain(error: BaseException) -> str:
    return one_line(str(getattr(error, "strerror", None) or error or type(error).__name__))
