"""Why an engine did not start or died: the likely cause and the way out, read from its log."""

from __future__ import annotations

import re
from pathlib import Path

_TAIL = 64 << 10  # bytes of log that are looked at
_SHOWN = 12

# First match wins, so the specific stands before the general.
_CAUSES: tuple[tuple[str, str], ...] = (
    (
        r"address already in use|Errno 98",
        "the port is taken by another program; leave port unset to take a free one, or choose another",
    ),
    (
        r"VersionError: (?P<detail>.+)",
        "{detail}",
    ),
    (
        r"unrecognized arguments: (?P<detail>.+)",
        "vLLM does not know the argument {detail}; correct extra_args",
    ),
    (
        r"error: argument (?P<detail>.+)",
        "vLLM refuses the argument {detail}",
    ),
    (
        r"CUDA out of memory|OutOfMemoryError|torch\.cuda\.OutOfMemory",
        "out of device memory; lower gpu_memory_utilization, max_model_len or max_num_batched_tokens, "
        "or choose a smaller model",
    ),
    (
        r"DefaultCPUAllocator: can't allocate memory|MemoryError|Cannot allocate memory|std::bad_alloc",
        "out of host memory; lower kv_cache_mib, max_model_len or max_num_batched_tokens, or choose a smaller model",
    ),
    (
        r"(?P<detail>Available memory on node .+?)(?: Decrease| Reduce| To resolve)",
        "{detail}; lower kv_cache_mib or gpu_memory_utilization",
    ),
    (
        r"(?P<detail>To serve at least one request with the models's max seq len[^\n]+)",
        "the KV pool is too small for one request of max_model_len; raise kv_cache_mib or lower max_model_len "
        "({detail})",
    ),
    (
        r"No available memory for the cache blocks",
        "no memory is left for the KV pool; raise kv_cache_mib or gpu_memory_utilization",
    ),
    (
        r"max_model_len \((?P<detail>\d+)\) is greater than the derived max_model_len",
        "max_model_len {detail} is longer than the model's positions; lower it",
    ),
    (
        r"(?:OSError|ValueError|RepositoryNotFoundError|SafetensorError|HeaderTooLarge)[^\n]*?"
        r"(?P<detail>(?:Can't load|does not appear|not a valid|Invalid repository|header|No such file)[^\n]*)",
        "the model could not be loaded ({detail}); check the model's folder",
    ),
    (
        r"libcuda|CUDA driver|No CUDA GPUs are available|Failed to infer device type",
        "no usable GPU was found; run `workbench doctor`, or use the CPU build of vLLM",
    ),
    (r"No space left on device", "the disk is full; free some space"),
    (r"(?P<detail>(?:\w+\.)*\w*(?:Error|Exception)): (?P<message>[^\n]+)", "{detail}: {message}"),
)
_NOISE = re.compile(r"^\s*$|^\s+|^(?:Traceback|During handling|The above exception)")


def read_tail(log: Path) -> str:
    """The end of an engine's log as text; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def useful_lines(text: str) -> tuple[str, ...]:
    """The last lines that say something: no frames of a traceback, no blank lines, cut to a screen's width."""
    lines = [plain.strip()[:300] for line in text.splitlines() if not _NOISE.match(plain := _unprefixed(line))]
    return tuple(lines[-_SHOWN:])


def explain(text: str, code: int | None) -> str:
    """One line on why the engine ended.

    Args:
        text: the end of its log.
        code: exit status of its first process (negative: signal), or none if it still ran.
    """
    plain = "\n".join(_unprefixed(line) for line in text.splitlines())
    for pattern, cause in _CAUSES:
        found = [*re.finditer(pattern, plain, re.IGNORECASE)]
        if found:
            groups = {key: value.strip() for key, value in found[0].groupdict("").items()}
            return " ".join(cause.format(**groups).split())[:400]
    if code == -9:
        return "the engine was killed (SIGKILL): most likely the machine ran out of memory; choose smaller settings"
    if code is not None and code < 0:
        return f"the engine was ended by signal {-code}"
    return f"the engine ended with status {code}" if code is not None else "the engine stopped answering"


def _unprefixed(line: str) -> str:
    """A log line without vLLM's ``(EngineCore pid=12) ERROR 11-29 16:49:36 [core.py:9]`` prefix."""
    return re.sub(r"^(?:\([\w ]*pid=\d+\)\s?)?(?:[A-Z]+ [\d-]+ [\d:]+ \[[\w./]+:\d+\] ?)?", "", line)
