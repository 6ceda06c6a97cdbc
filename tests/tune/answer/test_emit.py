"""Commands to paste, word for word, and as vLLM's own parser reads them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest
import yaml

from workbench.config import EngineConfig
from workbench.engine.probe.knob_page import KnobPage
from workbench.engine.probe.wire import KnobChange
from workbench.errors import EnvelopeError, StoreError
from workbench.models import ModelFiles
from workbench.simulated_config import SimulatedConfig
from workbench.tune.answer.emit import emit, told, write_folder
from workbench.tune.trial import Point

CONFIG = EngineConfig(device="cuda", max_num_seqs=64, kv_cache_mib=None, enforce_eager=False)
MODEL = ModelFiles("smollm2", "/models/my model", None, "auto", 8192, "a package", {})
POINT = Point({"budget": 512, "chunk": 128, "max_running": 16, "policy": "chunked"})


def test_a_stock_setting_word_for_word():
    emitted = emit(POINT, CONFIG, MODEL)
    flags = (
        "--max-model-len 4096 --max-num-batched-tokens 512 --max-num-seqs 16 --tensor-parallel-size 1 "
        "--pipeline-parallel-size 1 --no-enable-prefix-caching --scheduling-policy fcfs "
        "--long-prefill-token-threshold 128"
    )
    assert emitted.command == f"vllm serve '/models/my model' {flags}"
    assert emitted.container == (
        "docker run --rm --ipc=host --publish 8000:8000 --volume '/models/my model:/models/my model:ro' --gpus all "
        f"vllm/vllm-openai:v0.32.0 '/models/my model' {flags}"
    )
    assert yaml.safe_load(emitted.yaml) == {
        "model": "/models/my model",
        "max-model-len": 4096,
        "max-num-batched-tokens": 512,
        "max-num-seqs": 16,
        "tensor-parallel-size": 1,
        "pipeline-parallel-size": 1,
        "no-enable-prefix-caching": True,
        "scheduling-policy": "fcfs",
        "long-prefill-token-threshold": 128,
    }
    assert emitted.own_policy == ""
    assert list(told(emitted)) == ["vllm serve", "vllm serve --config config.yaml", "container"]


def test_flags_that_were_passed_through_stay_what_they_were():
    extra = ("--seed", "7", "--lora-modules", "a=b", "c=d", "--api-server-count=2", "--served-model-name", "007")
    options = yaml.safe_load(emit(POINT, CONFIG.replace(extra_args=extra), MODEL).yaml)
    assert options["seed"] == 7
    assert options["lora-modules"] == ["a=b", "c=d"]
    assert options["api-server-count"] == 2
    assert options["served-model-name"] == "007"


def test_a_policy_of_ours_comes_with_our_scheduler_class_and_its_knobs(tmp_path):
    point = Point({"policy": "target_gap", "target_gap_ms": 90.0})
    emitted = emit(point, CONFIG, MODEL)
    assert "without the policy target_gap (target_gap_ms 90), which stock vLLM does not have" in emitted.command
    said, _, how = emitted.own_policy.partition("  # ")
    assert how.startswith("FOLDER: as workbench tune --serve FOLDER writes it")
    assert said.endswith("--async-scheduling --scheduler-cls workbench.engine.probe.scheduler.ProbeAsyncScheduler")
    folder = write_folder(tmp_path / "out", point, CONFIG, MODEL)
    script = (folder / "serve.sh").read_text()
    assert script.startswith(
        f"#!/bin/sh\nWORKBENCH_PROBE_FOLDER={shlex.quote(str(folder))} vllm serve '/models/my model' "
    )
    assert "#" not in script.removeprefix("#!")
    assert KnobPage(folder).latest() == KnobChange(
        revision=1, budget=8192, chunk=0, max_running=64, policy="target_gap", target_gap_ms=90.0
    )
    assert (folder / "config.yaml").read_text() == emitted.yaml


def test_on_a_cpu_the_steps_are_not_ahead_and_the_image_is_not_named():
    config = CONFIG.replace(device="cpu")
    emitted = emit(Point({"policy": "qos"}), config, MODEL)
    assert emitted.own_policy.partition("  # ")[0].endswith(
        "--no-async-scheduling --scheduler-cls workbench.engine.probe.scheduler.ProbeScheduler"
    )
    assert "--gpus" not in emitted.container
    assert emitted.container.endswith("put an image of vLLM's CPU build in place of VLLM_CPU_IMAGE")


def test_a_simulated_study_names_the_hub_id():
    config = SimulatedConfig(gpu="H100", count=8)
    assert emit(POINT, config).command.startswith("vllm serve meta-llama/Llama-3.1-70B-Instruct ")


def test_what_does_not_fit_or_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(EnvelopeError, match=r"budget: got '99999'"):
        emit(Point({"budget": 99999}), CONFIG)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="choose a folder that can be written"):
        write_folder(tmp_path / "file", POINT, CONFIG)


PARSE = """
import json, sys
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = make_arg_parser(FlexibleArgumentParser())
asked = json.load(sys.stdin)
print(json.dumps([vars(parser.parse_args(argv)) for argv in asked], default=str))
"""


def test_the_file_and_the_command_are_the_same_to_vllm(tmp_path):
    emitted = emit(POINT, CONFIG.replace(enable_prefix_caching=True, gpu_memory_utilization=0.9), MODEL)
    path = tmp_path / "config.yaml"
    path.write_text(emitted.yaml)
    argv = shlex.split(emitted.command)[2:]
    asked = [["--model", *argv], ["--config", str(path)]]
    done = subprocess.run(
        [sys.executable, "-c", PARSE], input=json.dumps(asked), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    command, file = json.loads(done.stdout.splitlines()[-1])
    different = {name for name in command if command[name] != file[name]}
    assert different <= {"config"}
    assert file["long_prefill_token_threshold"] == 128
    assert file["model"] == "/models/my model"
