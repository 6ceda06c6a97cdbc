"""Why an engine did not start or died: the likely cause and the way out, read from its log."""

from __future__ import annotations

import re
from pathlib import Path

from workbench import redact
from workbench.i18n import Phrase, marked, phrase

_TAIL = 64 << 10  # bytes of log that are looked at
_SHOWN = 12

# First match wins, so the specific stands before the general. Texts are those of vLLM 0.32.
_CAUSES: tuple[tuple[str, str], ...] = (
    (
        r"'port': (?P<port>\d+)(?s:.*)Address already in use",
        marked("port {port} is taken by another program; leave port unset to take a free one, or choose another"),
    ),
    (
        r"Address already in use",
        marked("the port is taken by another program; leave port unset to take a free one, or choose another"),
    ),
    (
        r"VersionError: (?P<detail>.+)",
        marked("{detail}"),
    ),
    (
        r"unrecognized arguments: (?P<detail>.+)",
        marked("vLLM does not know the argument {detail}; correct extra_args"),
    ),
    (
        r"error: argument (?P<detail>.+)",
        marked("vLLM refuses the argument {detail}; correct it, or remove it from extra_args"),
    ),
    (
        r"CUDA out of memory\.(?: (?P<tried>Tried to allocate [\d.]+ \w+))?",
        marked(
            "out of device memory{tried}; lower gpu_memory_utilization, kv_cache_mib or max_num_batched_tokens, "
            "or choose a smaller model"
        ),
    ),
    (
        r"can't allocate memory: you tried to allocate (?P<tried>\d+ bytes)|Cannot allocate memory|\bMemoryError\b"
        r"|std::bad_alloc",
        marked(
            "out of host memory{tried}; lower kv_cache_mib, max_model_len or max_num_batched_tokens, "
            "or choose a smaller model"
        ),
    ),
    (
        r"(?P<detail>Available memory on node [^\n]+? less than requested memory for kv \([^)]+\))",
        marked("{detail}; lower kv_cache_mib, or close other programs"),
    ),
    (
        r"(?P<detail>Available memory on node [^\n]+? less than desired CPU memory utilization \([^)]+\))",
        marked("{detail}; lower gpu_memory_utilization or set kv_cache_mib, or close other programs"),
    ),
    (
        r"(?P<detail>Free memory on device [^\n]+? is less than [^\n]+?GiB\))",
        marked("{detail}; lower gpu_memory_utilization, or close other programs on the device"),
    ),
    (
        r"To serve at least one request with the model's max seq len \((?P<length>\d+)\), "
        r"\((?P<needed>[\d.]+ GiB)[^\n]*?available KV cache memory \((?P<there>[\d.]+ GiB)\)",
        marked(
            "the KV pool of {there} is too small for one request of max_model_len {length}, which needs {needed}; "
            "raise kv_cache_mib or lower max_model_len"
        ),
    ),
    (
        r"No available memory for the cache blocks",
        marked(
            "no memory is left for the KV pool; raise kv_cache_mib, or gpu_memory_utilization where the pool has no "
            "size"
        ),
    ),
    (
        r"max_model_len \((?P<value>\d+)\) is greater than the derived max_model_len \(\w+=(?P<most>\d+)",
        marked("max_model_len {value} is longer than the {most} positions of the model; lower it"),
    ),
    (
        r"Invalid repository ID or local directory specified:\s*'(?P<model>[^']+)'",
        marked("the model {model!r} is no folder with a config.json and no hub id; correct model"),
    ),
    (
        r"Cannot find any model weights with `(?P<model>[^`]+)`",
        marked("the model folder {model!r} holds no weights (*.safetensors, *.bin); complete it, or choose another"),
    ),
    (
        r"(?:SafetensorError|EOFError|UnpicklingError)[^\n]*?: (?P<detail>[^\n]+)",
        marked("a weight file of the model is damaged ({detail}); fetch the model again"),
    ),
    (
        r"LocalEntryNotFoundError",
        marked(
            "the model is not on this machine and the hub may not be asked (HF_HUB_OFFLINE, or no network); "
            "name a folder in model, or fetch it first"
        ),
    ),
    (
        r"(?:OSError|EntryNotFoundError|HFValidationError)[^\n]*?: "
        r"(?P<detail>[^\n]*(?:Can't load|couldn't connect|does not appear|not a local folder|not a valid)[^\n]*)",
        marked("the model could not be loaded ({detail}); check the folder or the hub id in model"),
    ),
    (
        r"Failed to infer device type|No CUDA GPUs are available|libcuda\.so[^\n]*cannot open|Found no NVIDIA driver",
        marked("no usable GPU was found; run `workbench doctor`, or use the CPU build of vLLM"),
    ),
    (r"No space left on device", marked("the disk is full; free some space")),
    (r"Value error, (?P<detail>[^\n]+?)(?: \[type=[^\n]*)?$", marked("vLLM refuses the configuration: {detail}")),
    (
        # Not the two with which other processes only say that somebody else failed.
        r"^(?!.*(?:EngineDeadError|See root cause above))"
        r"(?P<detail>(?:\w+\.)*\w*(?:Error|Exception): [^\n]+)",
        marked("{detail}; see the log"),
    ),
    (
        r"EngineDeadError|Engine core initialization failed",
        marked(
            "a process of the engine was killed or crashed without a word: most likely the machine ran out of memory; "
            "choose smaller settings"
        ),
    ),
)
_NOISE = re.compile(r"^\s*$|^\s+|^(?:Traceback|During handling|The above exception)")


def read_tail(log: Path) -> str:
    """The end of an engine's log as text without secrets; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL))
            return redact.text(file.read().decode(errors="replace"))
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
        found = re.search(pattern, plain, re.IGNORECASE | re.MULTILINE)
        if found:
            groups = {key: value.strip() for key, value in found.groupdict("").items()}
            if groups.get("tried"):
                groups["tried"] = phrase(" ({reason})", reason=groups["tried"])
            return Phrase.of(" ".join(cause.format(**groups).split())[:400], (cause,), groups)
    if code == -9:
        return phrase(
            "the engine was killed (SIGKILL): most likely the machine ran out of memory; choose smaller settings"
        )
    if code is not None and code < 0:
        return phrase("the engine was ended by signal {signal}", signal=-code)
    if code is not None:
        return phrase("the engine ended with status {code}", code=code)
    return phrase("the engine stopped answering")


def _unprefixed(line: str) -> str:
    """A log line without vLLM's ``(EngineCore pid=12) ERROR 11-29 16:49:36 [core.py:9]`` prefix."""
    return re.sub(r"^(?:\([\w ]*pid=\d+\)\s?)?(?:[A-Z]+ [\d-]+ [\d:]+ \[[\w./]+:\d+\] ?)?", "", line)
