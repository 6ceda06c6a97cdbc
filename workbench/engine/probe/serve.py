"""What ``python -m`` runs as vLLM's API server: its own entry point, by a way that starts faster.

vLLM starts EngineCore and each worker as a fresh interpreter that imports the main module again
(multiprocessing's "spawn"). With ``vllm.entrypoints.openai.api_server`` as that module each of them imports the HTTP
server, which only the first one uses. Here the first imports the server and the others what they are for, without the
cyclic garbage collector, which walks through thousands of modules again and again, and takes a fifth of the time.
"""

from __future__ import annotations

import gc
from importlib import import_module
from types import ModuleType

_SERVER = "vllm.entrypoints.launchers.api_server.entry"
_BEHIND_IT = "vllm.v1.engine.core"  # EngineCore; nearly all of it a worker imports as well


def _import(name: str) -> ModuleType:
    """Import with the collector at rest; it is back on before anything runs."""
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.enable()


if __name__ == "__main__":
    _import(_SERVER).main()
elif __name__ == "__mp_main__":
    _import(_BEHIND_IT)
