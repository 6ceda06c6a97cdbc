"""Our SGLang command against the argument parser of a real release, recorded in tests/data."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

import pytest

from workbench.config import POLICIES, EngineConfig
from workbench.engine.sglang_command import TESTED, sglang_command
from workbench.errors import InputError
from workbench.session import Workbench

FLAGS = Path(__file__).parents[1] / "data" / f"sglang-{TESTED}-flags.json"


@pytest.fixture(scope="module")
def parse():
    """SGLang's parser, as far as flags, choices and numbers go; unknown words are an error."""
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    types = {"int": int, "float": float, "human_readable_int": int}
    for flag, kind in json.loads(FLAGS.read_text()).items():
        if flag in ("--help", "--version"):
            continue
        if kind == "none":
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=types.get(kind, str) if isinstance(kind, str) else str,
                                choices=kind if isinstance(kind, list) else None)  # fmt: skip

    def read(command):
        words = shlex.split(command, comments=True)
        assert words[:3] == ["python", "-m", "sglang.launch_server"]
        found, unknown = parser.parse_known_args(words[3:])
        assert unknown == []
        return found

    return read


def knobs(config, **changes):
    return config.envelope.defaults.replace(**changes)


def test_budget_cap_policy_and_mixed_chunk_have_their_flags(parse):
    config = EngineConfig(model="/m", max_num_batched_tokens=8192, max_num_seqs=64, max_model_len=4096)
    found = parse(sglang_command(config, knobs=knobs(config, budget=2048, max_running=32)))
    assert (found.model_path, found.context_length) == ("/m", 4096)
    assert (found.chunked_prefill_size, found.max_prefill_tokens, found.max_running_requests) == (2048, 2048, 32)
    assert found.enable_mixed_chunk
    assert found.schedule_policy == "fcfs"
    assert found.disable_radix_cache


FULL = {
    "tensor_parallel_size": 8, "pipeline_parallel_size": 2, "dtype": "bfloat16", "quantization": "fp8",
    "block_size": 64,
    "gpu_memory_utilization": 0.85, "kv_offloading_gib": 40.0, "enable_prefix_caching": True, "port": 30000,
    "attention_backend": "FLASHINFER", "enforce_eager": True, "kv_cache_mib": None, "scheduling_policy": "priority",
}  # fmt: skip


def test_every_start_up_field_that_sglang_has_is_there(parse):
    found = parse(sglang_command(EngineConfig(model="/m", **FULL)))
    assert (found.tp_size if hasattr(found, "tp_size") else found.tensor_parallel_size) == 8
    assert (found.pp_size, found.dtype, found.quantization, found.page_size) == (2, "bfloat16", "fp8", 64)
    assert (found.mem_fraction_static, found.hicache_size, found.port) == (0.85, 40, 30000)
    assert found.attention_backend == "flashinfer"
    assert found.enable_hierarchical_cache
    assert found.enable_priority_scheduling
    assert found.schedule_low_priority_values_first
    assert not found.disable_radix_cache
    assert found.cuda_graph_backend_decode == "disabled"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cached", [True, False])
def test_every_policy_makes_a_command_that_parses(parse, policy, cached):
    config = EngineConfig(model="/m", enable_prefix_caching=cached, max_model_len=4096)
    command = sglang_command(config, knobs=knobs(config, policy=policy, chunk=128, prefill_every=4, watermark=0.1))
    found = parse(command)
    assert found.chunked_prefill_size == (-1 if policy == "monolithic" else 8192)
    assert found.enable_mixed_chunk == (policy not in ("monolithic", "decode_first"))
    remark = command.partition("  # ")[2]
    assert ("without the policy" in remark) == (policy in ("qos", "target_gap"))
    assert ("chunk cap of 128" in remark) == (policy != "monolithic")
    assert "watermark" in remark
    assert found.prefill_decode_interval == ("3" if False else 3 if policy == "decode_first" else None)


def test_secrets_and_vllm_flags_do_not_come_along():
    command = sglang_command(EngineConfig(model="/m", extra_args=("--api-key", "sk-secret", "--seed", "1")))
    assert "sk-secret" not in command
    assert "flags of vLLM's" in command


def test_the_workbench_hands_it_over():
    bench = Workbench(model="/m")
    assert bench.serve_command("sglang").startswith("python -m sglang.launch_server --model-path /m ")
    with pytest.raises(InputError, match="vllm or sglang"):
        bench.serve_command("trt")
