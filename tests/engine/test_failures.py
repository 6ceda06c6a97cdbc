"""Why an engine ended: log tails in the words of vLLM 0.32.0 and its libraries, and the one line made of them."""

from __future__ import annotations

import signal

import pytest

from workbench.engine.failures import explain, read_tail, useful_lines
from workbench.engine.probe.compat import check_version
from workbench.errors import VersionError

CORE = "(EngineCore pid=19250) ERROR 11-29 16:46:31 [core.py:1241] "
API = "(APIServer pid=18691) "
# What the other processes add when one has failed; it must not hide the cause.
AFTERMATH = (
    f"{API}Traceback (most recent call last):\n"
    f'{API}  File "site-packages/vllm/entrypoints/openai/api_server.py", line 56, in <module>\n'
    f"{API}    main()\n"
    f"{API}RuntimeError: Engine core initialization failed. See root cause above. "
    "Failed core proc(s): {'EngineCore': 1}"
)
DEAD = (
    f"{API}ERROR 11-29 17:04:03 [async_llm.py:906] AsyncLLM output_handler failed.\n"
    f"{API}ERROR 11-29 17:04:03 [async_llm.py:906] Traceback (most recent call last):\n"
    f"{API}ERROR 11-29 17:04:03 [async_llm.py:906]     raise self._format_exception(outputs) from None\n"
    f"{API}ERROR 11-29 17:04:03 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: "
    "EngineCore encountered an issue. See stack trace (above) for the root cause.\n"
)
ARGS = (
    f"{API}INFO 11-29 16:44:41 [api_utils.py:286] non-default args: {{'host': '127.0.0.1', 'port': 34103, "
    "'model': '/models/smollm2', 'max_model_len': 4096}\n"
)


def of_core(message):
    """A failure inside EngineCore, as the log shows it."""
    return "\n".join(
        [
            f"{CORE}EngineCore failed to start.",
            f"{CORE}Traceback (most recent call last):",
            f'{CORE}  File "site-packages/vllm/v1/engine/core.py", line 1215, in run_engine_core',
            f"{CORE}    engine_core = EngineCoreProc(*args, **kwargs)",
            *(CORE + line for line in message.splitlines()),
            AFTERMATH,
        ]
    )


CASES = {
    "kv pool above free memory, CPU": (
        of_core(
            "ValueError: Available memory on node 0 (20.71/23.5 GiB) on kv cache allocation is less than requested "
            "memory for kv (40.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, or reduce CPU memory "
            "used by other processes."
        ),
        "Available memory on node 0 (20.71/23.5 GiB) on kv cache allocation is less than requested memory for kv "
        "(40.0 GiB); lower kv_cache_mib, or close other programs",
    ),
    "memory share above free memory, CPU": (
        of_core(
            "ValueError: Available memory on node 0 (15.0/23.5 GiB) on startup is less than desired CPU memory "
            "utilization (0.92, 21.62 GiB). On the CPU backend, the `--gpu-memory-utilization` flag controls the "
            "fraction of CPU memory reserved (despite its name). To resolve: decrease `--gpu-memory-utilization` "
            "(e.g. `--gpu-memory-utilization 0.5`) or reduce CPU memory used by other processes."
        ),
        "Available memory on node 0 (15.0/23.5 GiB) on startup is less than desired CPU memory utilization (0.92, "
        "21.62 GiB); lower gpu_memory_utilization or set kv_cache_mib, or close other programs",
    ),
    "memory share above free memory, CUDA": (
        of_core(
            "ValueError: Free memory on device cuda:0 (12.3/79.1 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 71.19 GiB). Decrease GPU memory utilization or reduce GPU memory used by other "
            "processes."
        ),
        "Free memory on device cuda:0 (12.3/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, "
        "71.19 GiB); lower gpu_memory_utilization, or close other programs on the device",
    ),
    "kv pool below one request": (
        of_core(
            "ValueError: To serve at least one request with the model's max seq len (131072), (2.0 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (0.06 GiB). Based on the available memory, the "
            "estimated maximum model length is 4096. Try increasing `gpu_memory_utilization` (which also controls CPU "
            "memory on the CPU backend) or decreasing `max_model_len` when initializing the engine. See "
            "https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
        ),
        "the KV pool of 0.06 GiB is too small for one request of max_model_len 131072, which needs 2.0 GiB; raise "
        "kv_cache_mib or lower max_model_len",
    ),
    "nothing left for the kv pool": (
        of_core(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
            "initializing the engine (this flag also controls CPU memory reservation on the CPU backend, despite its "
            "name)."
        ),
        "no memory is left for the KV pool; raise kv_cache_mib, or gpu_memory_utilization where the pool has no size",
    ),
    "max length above the positions": (
        f"{API}pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        f"{API}  Value error, User-specified max_model_len (9000) is greater than the derived max_model_len "
        "(max_position_embeddings=8192.0 or model_max_length=None in model's config.json). To allow overriding this "
        "maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. [type=value_error, input_type=ArgsKwargs]",
        "max_model_len 9000 is longer than the 8192 positions of the model; lower it",
    ),
    "not a model folder": (
        f"{API}pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        f"{API}  Value error, Invalid repository ID or local directory specified: '/models/empty'.\n"
        f"{API}Please verify the following requirements:\n"
        f"{API}1. Provide a valid Hugging Face repository ID.",
        "the model '/models/empty' is no folder with a config.json and no hub id; correct model",
    ),
    "not on this machine": (
        f"{API}huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder for "
        "the specified revision on the local disk and outgoing traffic has been disabled.",
        "the model is not on this machine and the hub may not be asked (HF_HUB_OFFLINE, or no network); name a folder "
        "in model, or fetch it first",
    ),
    "no weights": (
        of_core("RuntimeError: Cannot find any model weights with `/models/half`"),
        "the model folder '/models/half' holds no weights (*.safetensors, *.bin); complete it, or choose another",
    ),
    "damaged weights": (
        of_core("safetensors_rust.SafetensorError: Error while deserializing header: header too large"),
        "a weight file of the model is damaged (Error while deserializing header: header too large); fetch the model "
        "again",
    ),
    "no tokenizer": (
        f"{API}OSError: Can't load tokenizer for '/models/half'. If you were trying to load it from the hub, make sure "
        "you don't have a local directory with the same name.",
        "the model could not be loaded (Can't load tokenizer for '/models/half'. If you were trying to load it from "
        "the hub, make sure you don't have a local directory with the same name.); check the folder or the hub id in "
        "model",
    ),
    "port in use": (
        f"{ARGS}{API}Traceback (most recent call last):\n{API}    sock.bind(addr)\n"
        f"{API}OSError: [Errno 98] Address already in use",
        "port 34103 is taken by another program; leave port unset to take a free one, or choose another",
    ),
    "port in use, after a long log": (
        f"{API}OSError: [Errno 98] Address already in use",
        "the port is taken by another program; leave port unset to take a free one, or choose another",
    ),
    "unknown argument": (
        "usage: api_server.py [-h] [--model MODEL]\napi_server.py: error: unrecognized arguments: --no-such-flag 3",
        "vLLM does not know the argument --no-such-flag 3; correct extra_args",
    ),
    "argument with a wrong value": (
        "api_server.py: error: argument --block-size: invalid int value: 'many'",
        "vLLM refuses the argument --block-size: invalid int value: 'many'; correct it, or remove it from extra_args",
    ),
    "settings that clash": (
        f"{API}pydantic_core._pydantic_core.ValidationError: 1 validation error for SchedulerConfig\n"
        f"{API}  Value error, max_num_batched_tokens (64) is smaller than max_model_len (4096). Please increase "
        "max_num_batched_tokens or decrease max_model_len. [type=value_error, input_value=ArgsKwargs(())]",
        "vLLM refuses the configuration: max_num_batched_tokens (64) is smaller than max_model_len (4096). Please "
        "increase max_num_batched_tokens or decrease max_model_len.",
    ),
    "out of CUDA memory": (
        of_core(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of "
            "79.10 GiB of which 512.00 MiB is free."
        ),
        "out of device memory (Tried to allocate 896.00 MiB); lower gpu_memory_utilization, kv_cache_mib or "
        "max_num_batched_tokens, or choose a smaller model",
    ),
    "out of host memory": (
        of_core(
            "RuntimeError: [enforce fail at alloc_cpu.cpp:119] err == 0. DefaultCPUAllocator: can't allocate memory: "
            "you tried to allocate 34359738368 bytes. Error code 12 (Cannot allocate memory)"
        ),
        "out of host memory (34359738368 bytes); lower kv_cache_mib, max_model_len or max_num_batched_tokens, or "
        "choose a smaller model",
    ),
    "Python's own memory error": (
        of_core("MemoryError"),
        "out of host memory; lower kv_cache_mib, max_model_len or max_num_batched_tokens, or choose a smaller model",
    ),
    "no GPU": (
        of_core(
            "RuntimeError: Failed to infer device type, please set the environment variable "
            "`VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue."
        ),
        "no usable GPU was found; run `workbench doctor`, or use the CPU build of vLLM",
    ),
    "disk full": (
        of_core("OSError: [Errno 28] No space left on device: '/tmp/torchinductor'"),
        "the disk is full; free some space",
    ),
    "anything else names the first error": (
        of_core("KeyError: 'rope_parameters'"),
        "KeyError: 'rope_parameters'; see the log",
    ),
    "EngineCore was killed in mid-run": (
        DEAD,
        "a process of the engine was killed or crashed without a word: most likely the machine ran out of memory; "
        "choose smaller settings",
    ),
    "EngineCore was killed at the start": (
        AFTERMATH,
        "a process of the engine was killed or crashed without a word: most likely the machine ran out of memory; "
        "choose smaller settings",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_line_names_thing_value_and_way_out(name):
    text, line = CASES[name]
    assert explain(text, 1) == line


def test_the_probe_speaks_for_itself():
    with pytest.raises(VersionError) as refused:
        check_version("0.33.1")
    assert explain(of_core(f"workbench.errors.VersionError: {refused.value}"), 1) == str(refused.value)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (-signal.SIGKILL, "the engine was killed (SIGKILL): most likely the machine ran out of memory; choose smaller"),
        (-signal.SIGSEGV, "the engine was ended by signal 11"),
        (3, "the engine ended with status 3"),
        (None, "the engine stopped answering"),
    ],
)
def test_without_words_the_status_must_do(code, line):
    quiet = f"{ARGS}{API}INFO 11-29 16:45:20 [model.py:733] Resolved architecture: LlamaForCausalLM\n"
    assert explain(quiet, code).startswith(line)


def test_an_aftermath_does_not_hide_a_killed_leader():
    assert "SIGKILL" in explain(ARGS, -9)


def test_useful_lines_leave_out_frames_and_prefixes():
    text, _ = CASES["no weights"]
    assert useful_lines(text) == (
        "EngineCore failed to start.",
        "RuntimeError: Cannot find any model weights with `/models/half`",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
    )
    assert useful_lines("") == ()
    assert useful_lines("\n".join(f"line {n}" for n in range(50)))[0] == "line 38"
    assert len(useful_lines("x" * 5000)[0]) == 300


def test_read_tail_takes_the_end(tmp_path):
    log = tmp_path / "engine.log"
    assert read_tail(log) == ""
    log.write_bytes(b"first" + b"." * (1 << 17) + b"\xff last")
    assert read_tail(log).endswith(".\N{REPLACEMENT CHARACTER} last")
    assert "first" not in read_tail(log)
    assert len(read_tail(log)) == 64 << 10
