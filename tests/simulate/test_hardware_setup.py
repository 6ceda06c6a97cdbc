"""From a configuration to blocks, swap and step time; and what is refused."""

import pytest

from workbench.engine.probe.wire import Part
from workbench.errors import ConfigError, InputError, ModelError
from workbench.frozen import parse
from workbench.models.architecture import named
from workbench.simulate import choose_step_time, step_times
from workbench.simulate.hardware_setup import activation_of, set_up
from workbench.simulate.job import KnobChange
from workbench.simulate.presets import device
from workbench.simulated_config import SimulatedConfig

H100 = {"gpu": "H100", "count": 8}


def config(**fields):
    return parse(SimulatedConfig, fields)


@pytest.fixture(autouse=True)
def no_calibrations(monkeypatch):
    monkeypatch.setattr(choose_step_time.kept_calibrations, "match", lambda *_: None)


def test_count_alone_is_tensor_parallel_and_must_add_up():
    assert config(count=8).tensor_parallel_size == 8
    assert config(count=8, pipeline_parallel_size=2).tensor_parallel_size == 4
    assert config(tensor_parallel_size=4).gpus == 4
    with pytest.raises(ConfigError, match="'8, 4 and 1', expected as many GPUs"):
        config(count=8, tensor_parallel_size=4)
    with pytest.raises(ConfigError, match="expected one processor"):
        config(gpu="cpu", count=2)


def test_the_default_model_comes_with_gpus_enough_and_any_other_with_none():
    for gpu in ("H100", "A100", "B200", "L40S", "RTX 4090"):
        assert set_up(config(gpu=gpu)).blocks > 1000
        assert config(gpu=gpu).gpus == 8
    assert config(model="qwen2.5-7b").gpus == config(gpu="cpu").gpus == config(tensor_parallel_size=1).gpus == 1
    assert SimulatedConfig().gpus == 8
    assert config(pipeline_parallel_size=2).gpus == 2
    with pytest.raises(ConfigError, match="leave count out, or set tensor_parallel_size"):
        SimulatedConfig().replace(gpu="cpu")


def test_async_scheduling_is_vllms_default_but_on_cpu_and_with_a_pipeline():
    assert config().ahead
    assert not config(pipeline_parallel_size=2, count=8).ahead
    assert not config(gpu="cpu").ahead
    assert not config(async_scheduling=False).ahead


def test_a_70b_on_eight_h100_holds_more_than_a_million_tokens():
    found = set_up(config(**H100))
    # 80 layers x 2 x 1 KV head x 128 x 2 bytes = 40 KiB a token and GPU; some 50 GiB are left of 80
    assert 1_200_000 < found.blocks * found.block_size < 1_600_000
    assert found.block_size == 16
    assert found.label == "roofline, uncalibrated"
    assert found.swap is None
    told = found.describe()
    assert told["step_time"]["calibrated"] is False
    assert told["gpus"] == 8
    assert [share["name"] for share in told["memory"]][-1] == "KV pool"


def test_a_job_has_the_engine_in_it():
    knobs = KnobChange(0, 512, 0, 4, "chunked")
    found = set_up(config(**H100, max_num_batched_tokens=512, max_num_seqs=4, enable_prefix_caching=True))
    job = found.job(number=3, requests=[], knobs=knobs, hold_s=2.0)
    assert (job.budget, job.seqs, job.prefix_cache, job.ahead, job.depth, job.hold_s) == (512, 4, True, True, 2, 2.0)
    assert job.step_time["kind"] == "roofline"
    assert job.most_step_tokens == found.memory.largest_step(512)
    staged = set_up(config(**H100, pipeline_parallel_size=4)).job(number=1, requests=[], knobs=knobs)
    assert (staged.ahead, staged.depth, staged.step_time["pp"]) == (False, 4, 4)


def test_the_childs_activation_is_that_of_the_memory_model():
    memory = set_up(config(**H100)).memory
    fast = activation_of(memory)
    for tokens in (1, 100, 256, 8192):
        mine = fast.scale * tokens**fast.exponent + min(tokens, fast.rows) * fast.row_bytes
        assert mine == pytest.approx(memory.activation(tokens))


def test_swap_goes_over_each_gpus_own_link():
    found = set_up(config(**H100, swap_gib=100.0, swap_overlap=True))
    block = 16 * 2 * 80 * 8 * 128 * 2  # tokens, K and V, layers, KV heads, width, bytes: all GPUs together
    assert found.swap.blocks == int(100 * 2**30 // block)
    assert found.swap.out_s == pytest.approx(block / 8 / (64e9 * 0.8))  # PCIe Gen5: 64 GB/s one way, 80 % of it
    assert found.swap.overlap
    assert found.describe()["swap"]["label"] == "estimate"


def test_pcie_in_place_of_nvlink_is_slower():
    knobs = KnobChange(0, 512, 0, 4, "chunked")
    part = Part("a", 512, 0, True)
    times = [
        step_times.load(set_up(config(**H100, link=link)).job(requests=[], knobs=knobs).step_time)([part])[0]
        for link in ("nvlink", "pcie")
    ]
    assert times[0] < times[1]
    with pytest.raises(ConfigError, match="link: got 'nvlink', expected pcie"):
        set_up(config(model="qwen2.5-7b", gpu="L40S", link="nvlink"))


def test_what_is_not_known_or_does_not_fit_is_named():
    with pytest.raises(InputError, match="GPU: got 'H9000'"):
        set_up(config(gpu="H9000"))
    with pytest.raises(ModelError, match="model: got 'gpt-9'"):
        set_up(config(model="gpt-9"))
    with pytest.raises(InputError, match=r"memory of Llama-3\.1-70B on 1 x H100 SXM"):
        set_up(config(gpu="H100", count=1))
    with pytest.raises(InputError, match=r"a calibration of llama-3\.1-70b on H100 SXM"):
        set_up(config(**H100, step_time="calibrated"))
    with pytest.raises(InputError, match="a calibration of smollm2 on this processor"):
        set_up(config(gpu="cpu", model="smollm2", kv_cache_mib=64))


def test_blocks_are_what_was_asked_for_where_something_was():
    assert set_up(config(**H100, kv_blocks=77)).blocks == 77
    assert set_up(config(**H100, extra_args=("--num-gpu-blocks-override", "34"))).blocks == 34
    assert set_up(config(**H100, extra_args=("--num-gpu-blocks-override=34",))).blocks == 34
    sizes = named("smollm2-135m")
    model = type("Fixed", (), {"name": "fixed", "calibrated": True, "describe": dict, "spec": dict})()
    found = set_up(config(gpu="cpu", model="smollm2", kv_cache_mib=64, dtype="float32"), step_time=model)
    # 30 layers x 3 KV heads x (64 + 64) x 4 bytes, 128 tokens a block
    assert found.blocks == 64 * 2**20 // (30 * 3 * 128 * 4 * 128)
    assert found.architecture == sizes
    assert (found.block_size, found.memory, found.device) == (128, None, None)
    assert device("h100").key == "h100-sxm"


def test_a_processor_without_a_calibration_says_which_there_are(monkeypatch):
    monkeypatch.setattr(choose_step_time, "machine_facts", lambda: {"processor": "Other 7", "usable_cores": 4})
    known = type("One", (), {"machine": {"device": "Made-up 9000", "usable_cores": 2}})
    monkeypatch.setattr(choose_step_time.kept_calibrations, "every", lambda: [known])
    with pytest.raises(InputError) as error:
        set_up(config(gpu="cpu", model="smollm2"))
    assert "expected a calibration of smollm2 on this processor (Other 7, 4 cores)" in str(error.value)
    assert "`workbench calibrate --set model=smollm2`" in str(error.value)
    assert "there are calibrations for Made-up 9000 with 2 cores" in str(error.value)


def test_the_pool_of_a_processor_is_that_of_a_live_engine():
    model = type("Fixed", (), {"name": "fixed", "calibrated": True, "describe": dict, "spec": dict})()
    found = set_up(config(gpu="cpu", model="smollm2", dtype="float32"), step_time=model)
    assert found.blocks == 182  # 1,024 MiB; a live SmolLM2 in float32 says the same of itself
    with pytest.raises(InputError, match="set kv_blocks"):
        set_up(config(gpu="cpu", model="unknown"), step_time=model)
