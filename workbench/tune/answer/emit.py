"""The answer to paste: a ``vllm serve`` command, the same as a YAML file, and as arguments of a container.

All three come from :func:`workbench.engine.command.serve_command`. A policy of ours is no flag of vLLM: a command that
serves with it needs our scheduler class, and a folder that tells it the knobs; :func:`write_folder` makes one.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from workbench.config import EngineConfig, Knobs
from workbench.engine.command import Device, installed_device, is_async, serve_command
from workbench.engine.probe.compat import installed_vllm
from workbench.engine.probe.wire import ENV_FOLDER, KnobChange
from workbench.errors import StoreError
from workbench.i18n import marked
from workbench.models import ModelFiles
from workbench.simulated_config import SimulatedConfig
from workbench.tune.answer.candidates import OWN_POLICIES
from workbench.tune.trial import Point

IMAGE = "vllm/vllm-openai:v0.32.0"  # the version that the probe was tested on
_CPU_IMAGE = "VLLM_CPU_IMAGE"
_NO_IMAGE = f"put an image of vLLM's CPU build in place of {_CPU_IMAGE}"
_SCHEDULER = "workbench.engine.probe.scheduler.Probe{}Scheduler"
_FOLDER = "FOLDER"  # stands for one that is still to be written
_HOW = f"  # {_FOLDER}: as workbench tune --serve {_FOLDER} writes it, with the knobs in it"
_MODELS = "/models"  # inside a container
_PORT = 8000  # vLLM's own


@dataclass(frozen=True)
class Emitted:
    """A setting as plain vLLM takes it.

    Attributes:
        command: ``vllm serve ...``, with a comment for what stock vLLM does not have.
        yaml: the same as a file for ``vllm serve --config FILE``.
        container: ``docker run ...`` with the same arguments.
        own_policy: how to serve it with a policy of ours; empty for a stock one.
        knobs: in full.
    """

    command: str
    yaml: str
    container: str
    own_policy: str
    knobs: Knobs

    def as_dict(self) -> dict[str, str]:
        """Plain data."""
        return {
            "serve_command": self.command,
            "yaml": self.yaml,
            "container": self.container,
            "own_policy": self.own_policy,
        }


def emit(point: Point, config: EngineConfig, model: ModelFiles | None = None) -> Emitted:
    """A setting of a study as commands.

    Args:
        point: the setting.
        config: start-up fields of its engine, see :meth:`workbench.tune.space.Space.config_of`.
        model: as the engine resolved it, so that a preset shows as the folder it was made in.

    Raises:
        EnvelopeError: the setting does not fit that engine.
    """
    knobs = point.setting.knobs(config.envelope)
    command = serve_command(config, model, knobs)
    argv, remark = _taken_apart(command)
    device = _device(config)
    return Emitted(
        command=command,
        yaml=_yaml(argv, remark),
        container=_container(argv, remark, device),
        own_policy=_own_policy(argv, config, knobs, device),
        knobs=knobs,
    )


def write_folder(folder: Path | str, point: Point, config: EngineConfig, model: ModelFiles | None = None) -> Path:
    """Write ``serve.sh``, ``config.yaml`` and ``container.sh``, and what a policy of ours needs, into a folder.

    With a policy of ours the folder also holds the knobs, and ``serve.sh`` starts vLLM with our scheduler class, which
    reads them there; the workbench must be installed beside vLLM.

    Returns:
        The folder.

    Raises:
        EnvelopeError: the setting does not fit that engine.
        StoreError: it cannot be written.
    """
    emitted, folder = emit(point, config, model), Path(folder).absolute()
    files = {"config.yaml": emitted.yaml, "container.sh": f"#!/bin/sh\n{emitted.container}\n"}
    named = f"{ENV_FOLDER}={shlex.quote(str(folder))} "
    own = emitted.own_policy.removesuffix(_HOW).replace(f"{ENV_FOLDER}={_FOLDER} ", named, 1)
    serve = own or emitted.command
    files["serve.sh"] = f"#!/bin/sh\n{serve}\n"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        if emitted.own_policy:
            from workbench.engine.probe.knob_page import KnobPage

            KnobPage(folder, create=True).write(KnobChange(revision=1, **emitted.knobs.model_dump()))
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror or error}; choose a folder that can be written") from None
    return folder


def _taken_apart(command: str) -> tuple[list[str], str]:
    """The words behind ``vllm serve``, the model first, and what the comment says."""
    argv = shlex.split(command, comments=True)[2:]
    _, _, remark = command.partition("  # ")
    return argv, remark


def _options(argv: list[str]) -> dict[str, Any]:
    """Flags as a YAML file has them: without dashes, true for those without a value."""
    found: dict[str, Any] = {}
    name = ""
    for word in argv:
        if word.startswith("--"):
            name, given, value = word.removeprefix("--").partition("=")
            found[name] = value if given else True
        elif not name:
            continue
        elif found[name] is True:
            found[name] = word
        else:  # several words behind one flag
            before = found[name]
            found[name] = [*(before if isinstance(before, list) else [before]), word]
    return {name: _number(value) for name, value in found.items()}


def _number(value: Any) -> Any:
    """A number as one: YAML would put a text of digits into quotes."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        return number if str(number) == value else value
    return value


def _yaml(argv: list[str], remark: str) -> str:
    """As vLLM 0.32 reads it: each key is a long flag, ``true`` one without a value, the model is ``model``."""
    head = "# vllm serve --config config.yaml\n" + (f"# {remark}\n" if remark else "")
    body: str = yaml.safe_dump({"model": argv[0], **_options(argv[1:])}, sort_keys=False, allow_unicode=True)
    return head + body


def _container(argv: list[str], remark: str, device: Device) -> str:
    """The image runs ``vllm serve`` itself; a model folder is mounted, read only."""
    model, remarks = argv[0], [remark] if remark else []
    line = ["docker", "run", "--rm", "--ipc=host", "--publish", f"{_PORT}:{_PORT}"]
    if model.startswith(("/", "./", "../")):
        inside = f"{_MODELS}/{Path(model).name}"
        line += ["--volume", f"{Path(model).absolute()}:{inside}:ro"]
        model = inside
    line += ["--gpus", "all", IMAGE] if device == "cuda" else [_CPU_IMAGE]
    if device == "cpu":
        remarks.append(_NO_IMAGE)
    return shlex.join([*line, model, *argv[1:]]) + (f"  # {'; '.join(remarks)}" if remarks else "")


def _own_policy(argv: list[str], config: EngineConfig, knobs: Knobs, device: Device) -> str:
    """The command with our scheduler class; FOLDER stands for one that :func:`write_folder` made."""
    if knobs.policy not in OWN_POLICIES:
        return ""
    asynchronous = is_async(config, device)
    line = [argv[0], *(word for word in argv[1:] if word not in ("--async-scheduling", "--no-async-scheduling"))]
    line += ["--async-scheduling" if asynchronous else "--no-async-scheduling"]
    line += ["--scheduler-cls", _SCHEDULER.format("Async" if asynchronous else "")]
    return f"{ENV_FOLDER}={_FOLDER} {shlex.join(['vllm', 'serve', *line])}{_HOW}"


def _device(config: EngineConfig) -> Device:
    """What the command is for: the hardware that was simulated, or what the installed vLLM was built for."""
    if isinstance(config, SimulatedConfig):
        return "cpu" if config.gpu == "cpu" else "cuda"
    if config.device != "auto":
        return config.device
    found = installed_vllm()
    return installed_device(found) if found is not None else "cuda"


def told(emitted: Emitted) -> Mapping[str, str]:
    """The texts by their headings, for pages and terminals; those that are empty are left out."""
    texts = {
        "vllm serve": emitted.command,
        "vllm serve --config config.yaml": emitted.yaml,
        marked("container"): emitted.container,
        marked("with our scheduler class"): emitted.own_policy,
    }
    return {name: text for name, text in texts.items() if text}
