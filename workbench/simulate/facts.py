"""What a simulated engine says of model and hardware, in the words that a live one's runs use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.engine.command import serve_command
from workbench.redact import redact
from workbench.simulate.hardware_setup import Setup
from workbench.simulate.play import SimulatedPlay
from workbench.simulated_config import SimulatedConfig

if TYPE_CHECKING:
    from workbench.simulate.engine import SimulatedEngine


def description_of(engine: SimulatedEngine, vllm: str | None, play: SimulatedPlay | None) -> dict[str, Any]:
    """An engine's part of a run's metadata, without secrets; None is what is not known.

    Args:
        engine: which.
        vllm: version of the scheduler; none before the engine is up.
        play: the last one; its facts are there once it is over.
    """
    config, model, setup = engine.config, engine.model, engine.setup
    over = play if play is not None and play.done else None
    facts: dict[str, Any] = {
        "label": engine.label,
        "engine_pid": None,
        "serve_command": serve_command(config, model, engine.knobs),
        "startup_s": engine.startup_s,
        "config": config.model_dump(mode="json"),
        "model_origin": model.origin if model else None,
        "vllm": vllm,
        "simulated": setup.describe() if setup else None,
        "simulated_facts": over.facts if over else None,
        "probe_faults": over.faults if over else None,
    }
    return dict(redact(facts))


def compute_facts_of(config: SimulatedConfig, setup: Setup | None) -> dict[str, Any]:
    """The run's ``compute`` metadata, see :func:`workbench.compute.compute_facts`; peaks are published, not measured.

    Args:
        config: of the engine.
        setup: what was looked up at its start; none before that.
    """
    sizes, gpu = (setup.architecture, setup.device) if setup is not None else (None, None)
    facts: dict[str, Any] = {
        "architecture": None,
        "peak": None,
        "bandwidth": None,
        "host_bytes_per_s": None,
        "device": None,
    }
    missing: dict[str, str] = {}
    if sizes is not None:
        facts["architecture"] = sizes.as_dict()
    else:
        missing["architecture"] = f"the sizes of {config.model} are not known"
    if gpu is not None:
        many = "" if config.gpus == 1 else f", times {config.gpus} devices"
        read = {"bytes_per_s": gpu.bandwidth * config.gpus, "source": f"{gpu.name}, memory as published{many}"}
        rates = {"to_device": gpu.pcie, "to_host": gpu.pcie, "source": f"{gpu.name}, PCIe as published"}
        facts |= {
            "peak": {"flops_per_s": gpu.flops * config.gpus, "source": gpu.source + many},
            "bandwidth": read,
            "host_bytes_per_s": rates,
            "device": gpu.name,
        }
    else:
        missing |= dict.fromkeys(("peak", "bandwidth", "host_bytes_per_s"), "no GPU is simulated")
    return facts | {"missing": missing}
