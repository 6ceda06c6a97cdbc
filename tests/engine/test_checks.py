"""What is refused around a start, without vLLM."""

import socket

import pytest

from workbench.config import EngineConfig
from workbench.engine.checks import check_device, check_extra_args, check_length, check_resolved, take_port
from workbench.engine.probe import wire
from workbench.errors import ConfigError
from workbench.models import ModelFiles

HELLO = {
    "pid": 1,
    "vllm": "0.32.0",
    "max_num_batched_tokens": 8192,
    "max_num_seqs": 32,
    "max_model_len": 4096,
    "chunked_prefill": True,
    "prefix_caching": False,
    "async_scheduling": False,
    "kv_blocks": 100,
    "block_size": 128,
}


def test_an_engine_as_configured_is_taken():
    check_resolved(EngineConfig(), wire.SchedulerHello(**HELLO), "cpu")


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"max_num_batched_tokens": 512}, "max_num_batched_tokens: got '512', expected 8192"),
        ({"max_num_seqs": 8}, "max_num_seqs: got '8', expected 32"),
        ({"max_model_len": 2048}, "max_model_len: got '2048', expected 4096"),
        ({"prefix_caching": True}, "enable_prefix_caching: got 'True', expected False"),
        ({"async_scheduling": True}, "async_scheduling: got 'True', expected False"),
        ({"chunked_prefill": False}, "enable_chunked_prefill: got 'False', expected True.*hot knob policy"),
        ({"chunk": 64}, "long_prefill_token_threshold: got '64', expected 0.*hot knob chunk"),
    ],
)
def test_flags_that_contradict_the_configuration_are_refused(other, says):
    with pytest.raises(ConfigError, match=says):
        check_resolved(EngineConfig(), wire.SchedulerHello(**{**HELLO, **other}), "cpu")


@pytest.mark.parametrize(
    ("word", "knob"),
    [
        ("--watermark", "watermark"),
        ("--watermark=0.1", "watermark"),
        ("--no-scheduler-reserve-full-isl", "reserve_full"),
        ("--no_enable_chunked_prefill", "policy"),
        ("--long-prefill-token-threshold=64", "chunk"),
    ],
)
def test_a_flag_that_a_hot_knob_stands_for_costs_no_start(word, knob):
    with pytest.raises(ConfigError, match=f"extra_args: got '{word}'.*turn the hot knob {knob}"):
        check_extra_args(EngineConfig(extra_args=("--seed", "7", word, "0.1")))


def test_other_flags_are_nobodys():
    check_extra_args(EngineConfig(extra_args=("--seed", "7", "--watermark-config", "{}")))


def test_a_device_that_vllm_was_not_built_for():
    check_device(EngineConfig(), "cuda")
    check_device(EngineConfig(device="cpu"), "cpu")
    with pytest.raises(ConfigError, match=r"device: got 'cuda', expected cpu.*set device to auto"):
        check_device(EngineConfig(device="cuda"), "cpu")


def test_a_context_beyond_the_positions_of_the_model():
    model = ModelFiles("small", "/models/small", None, "auto", 2048, "made", {})
    check_length(EngineConfig(max_model_len=2048), model)
    with pytest.raises(ConfigError, match="max_model_len: got '2049', expected at most 2048, the positions of small"):
        check_length(EngineConfig(max_model_len=2049), model)


def test_a_port_is_free_or_refused():
    assert 1024 <= take_port(None) <= 65535
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port: got '{port}', expected a free port"):
            take_port(port)
    assert take_port(port) == port
