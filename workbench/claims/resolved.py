"""Ask the installed vLLM, in a process of its own, what it makes of a command line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from workbench.config import EngineConfig
from workbench.engine.command import serve_command
from workbench.errors import EngineError
from workbench.models import resolve_model

_TIMEOUT_S = 240.0  # importing vllm takes 5 to 30 s on a busy laptop
STAND_IN = "tiny-long"  # a model that is always here, and whose positions and heads fit the article's command


def stock(model: str = STAND_IN) -> list[str]:
    """``vllm serve`` for a model with no flag at all, as words."""
    return [str(resolve_model(model).path)]


def stand_in(config: EngineConfig) -> list[str]:
    """The flags of a configuration's ``vllm serve``, for a model that is on this machine, as words.

    vLLM reads a model's own files to resolve a command line, and a model of 70B is not here.
    """
    model = resolve_model(STAND_IN)
    return [str(model.path), *shlex.split(serve_command(config))[3:], "--load-format", model.load_format]


def resolve(*commands: Sequence[str]) -> list[dict[str, Any]]:
    """What vLLM resolves each command line (the words behind ``vllm serve``) to; no engine is started.

    Raises:
        EngineError: vLLM refused one, or did not answer.
    """
    argvs = json.dumps([["--model", *words] for words in commands])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "workbench.engine.probe.resolve"],
            input=argvs,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
        )
        found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise EngineError(f"vllm serve: refused by vLLM ({last[:300]}); correct the command") from None
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError) as error:
        raise EngineError(f"vllm serve: vLLM did not say what it resolves to ({error})") from None
    return found
