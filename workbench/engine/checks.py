"""What is checked around an engine's start, so that a wrong field is named then and not in the middle of a run."""

from __future__ import annotations

import socket

from workbench.config import EngineConfig
from workbench.engine import command
from workbench.engine.probe import wire
from workbench.errors import ConfigError
from workbench.listening import EVERYWHERE, KEY, host_in, key_for
from workbench.models import ModelFiles

_HOT_FLAGS = {
    "--long-prefill-token-threshold": "chunk",
    "--no-enable-chunked-prefill": "policy",
    "--no-scheduler-reserve-full-isl": "reserve_full",
    "--watermark": "watermark",
}


def check_extra_args(config: EngineConfig) -> None:
    """Refuse flags that a hot knob stands for: the knobs would show something else than what is in force.

    Raises:
        ConfigError: extra_args has one, or one that opens the engine to others or shuts our own client out.
    """
    for word in config.extra_args:
        flag = word.partition("=")[0].replace("_", "-")
        if flag in _HOT_FLAGS:
            knob = _HOT_FLAGS[flag]
            raise ConfigError(
                "extra_args", word, "flags that no hot knob stands for", f"leave it out and turn the hot knob {knob}"
            )


def open_key(config: EngineConfig) -> str | None:
    """The key of an engine that extra_args opens to other machines; none for one that keeps to itself.

    Raises:
        ConfigError: there is no key for that, our own client would not reach it, or its key is not ours to know.
    """
    flags = [word.partition("=")[0].replace("_", "-") for word in config.extra_args]
    if "--config" in flags:
        raise ConfigError("extra_args", "--config", "flags, as a file may open the engine to others", "write them out")
    if "--api-key" in flags:
        fix = f"leave it out; to hand a key to others, export {KEY} and give --host {EVERYWHERE}"
        raise ConfigError("extra_args", "--api-key", "flags that leave our client its key", fix)
    host = host_in(config.extra_args)
    if host in (None, "127.0.0.1"):
        return None
    if host != EVERYWHERE:
        fix = "leave it out, or open all addresses"
        raise ConfigError("extra_args: --host", host, f"127.0.0.1 or {EVERYWHERE}, where our client comes in", fix)
    return key_for(host, "engine")


def opened(port: int) -> str:
    """What an engine with :func:`open_key` opens, for a person."""
    return (
        f"open to every machine that reaches this one: port {port}, /v1 with the key in {KEY}, and without a key "
        "/metrics, /health and /version; nothing is encrypted"
    )


def check_device(config: EngineConfig, installed: command.Device) -> None:
    """Refuse a device that the installed vLLM was not built for.

    Raises:
        ConfigError: it was built for the other one.
    """
    if config.device not in ("auto", installed):
        raise ConfigError(
            "device", config.device, f"{installed}, which the installed vLLM was built for", "set device to auto"
        )


def check_length(config: EngineConfig, model: ModelFiles) -> None:
    """Refuse a context that the model has no positions for.

    Raises:
        ConfigError: max_model_len is too large.
    """
    if model.max_positions is not None and config.max_model_len > model.max_positions:
        raise ConfigError(
            "max_model_len",
            config.max_model_len,
            f"at most {model.max_positions}, the positions of {model.name}",
            "lower it or choose another model",
        )


def take_port(wanted: int | None) -> int:
    """A port of 127.0.0.1 that is free now.

    Args:
        wanted: the port to take; none takes any.

    Raises:
        ConfigError: it is taken.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            raise ConfigError(
                "port", wanted, "a free port on 127.0.0.1", f"leave it unset or choose another ({error})"
            ) from None
        return int(probe.getsockname()[1])


def check_resolved(config: EngineConfig, hello: wire.SchedulerHello, device: command.Device) -> None:
    """Refuse an engine that extra_args made another than the configuration, its envelope and its charts say.

    Raises:
        ConfigError: a field was resolved to another value than was asked for.
    """
    asked = {
        "max_num_batched_tokens": (hello.max_num_batched_tokens, config.max_num_batched_tokens),
        "max_num_seqs": (hello.max_num_seqs, config.max_num_seqs),
        "max_model_len": (hello.max_model_len, config.max_model_len),
        "enable_prefix_caching": (hello.prefix_caching, config.enable_prefix_caching),
        "async_scheduling": (hello.async_scheduling, command.is_async(config, device)),
        "enable_chunked_prefill": (hello.chunked_prefill, True),
        "long_prefill_token_threshold": (hello.chunk, 0),
    }
    hot = {"enable_chunked_prefill": "policy", "long_prefill_token_threshold": "chunk"}
    for field, (found, expected) in asked.items():
        if found != expected:
            way = f"turn the hot knob {hot[field]}" if field in hot else f"set {field}"
            raise ConfigError(field, found, f"{expected}, as the engine was configured", f"{way}, not extra_args")
