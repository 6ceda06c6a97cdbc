"""The few requests that we make ourselves of vLLM's API server; those of a workload are the driver's."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

from workbench.errors import EngineError

_TIMEOUT_S = 5.0
_DEAD = 503  # what vLLM 0.32 answers to /health after EngineDeadError
_STEP_TIMEOUT_S = 30.0
_AGAIN_S = 0.1  # between two questions: one connection may be refused by chance


class Server:
    """The API server of one engine.

    Args:
        port: on 127.0.0.1.
        api_key: of the server.
        model: name under which it serves.
    """

    def __init__(self, port: int, api_key: str, model: str) -> None:
        self._port, self._key, self._model = port, api_key, model

    def is_healthy(self) -> bool:
        """Whether it answers that all is well."""
        try:
            return self._ask("GET", "/health", None, _TIMEOUT_S) == 200
        except (OSError, http.client.HTTPException):
            return False

    def is_lost(self) -> bool:
        """Whether its engine is dead by its own word, or nobody takes requests any more.

        vLLM's API server answers 503 from the moment at which its engine core has told it of a fatal error, which is
        before its requests fail; its processes end up to some seconds later. A server that is slow is not lost.
        """
        if not self._seems_lost():
            return False
        time.sleep(_AGAIN_S)
        return self._seems_lost()

    def _seems_lost(self) -> bool:
        try:
            return self._ask("GET", "/health", None, _TIMEOUT_S) == _DEAD
        except ConnectionError:
            return True
        except (OSError, http.client.HTTPException):
            return False

    def make_one_step(self) -> None:
        """Have the engine compute one step: a prompt of one token, which no prefix cache keeps, and one token out.

        Raises:
            EngineError: the server did not do it.
        """
        body = {"model": self._model, "prompt": [0], "max_tokens": 1, "ignore_eos": True, "temperature": 0}
        try:
            status = self._ask("POST", "/v1/completions", body, _STEP_TIMEOUT_S)
        except (OSError, http.client.HTTPException) as error:
            raise EngineError(f"engine: got no answer ({error}), expected a step; see its log") from None
        if status != 200:
            raise EngineError(f"engine: got status {status}, expected a step; see its log")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None, timeout_s: float) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout_s)
        try:
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()
