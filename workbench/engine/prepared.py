"""What is settled before vLLM is launched: its fields fit together, its model is there, its port is free."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from workbench.config import EngineConfig
from workbench.engine import command
from workbench.engine.checks import check_device, check_extra_args, check_length, open_key, opened, take_port
from workbench.engine.leftovers import new_log
from workbench.engine.probe.compat import check_version, installed_vllm
from workbench.engine.scratch import in_one_line
from workbench.models import ModelFiles, resolve_model


@dataclass(frozen=True)
class Prepared:
    """One launch.

    Attributes:
        config: start-up fields.
        device: that it computes on.
        model: its files.
        port: of its API server, on 127.0.0.1.
        api_key: of the server: random, or the one that others were given.
        label: unique mark in its environment.
        log: where its output goes.
        argv: its command.
        opened: what of it other machines reach, in words; empty where it keeps to itself.
    """

    config: EngineConfig
    device: command.Device
    model: ModelFiles
    port: int
    api_key: str = field(repr=False)
    label: str
    log: Path
    argv: list[str]
    opened: str


def prepare(config: EngineConfig, tell: Callable[[str], None]) -> Prepared:
    """Check a configuration against this machine, and fetch its model.

    Args:
        config: start-up fields.
        tell: told what is going on; it may raise to end this.

    Raises:
        ModelError: the model is not there.
        ConfigError: a field does not fit, or the port is taken.
        VersionError: the installed vLLM is one that the probe was not tested on.
        EngineStartError: there is no vLLM, or no place for its log.
    """
    distribution = installed_vllm()
    device = command.installed_device(distribution)
    check_device(config, device)
    check_extra_args(config)
    shared_key = open_key(config)
    if distribution:
        check_version(distribution[1])
    model = resolve_model(config.model, progress=tell)
    check_length(config, model)
    port = take_port(config.port)
    label = secrets.token_hex(8)
    with in_one_line("the engine's log", "WORKBENCH_STATE"):
        log = new_log(label)
    return Prepared(
        config=config,
        device=device,
        model=model,
        port=port,
        api_key=shared_key or secrets.token_urlsafe(24),
        label=label,
        log=log,
        argv=command.server_argv(config, model, device, port),
        opened=opened(port) if shared_key else "",
    )
