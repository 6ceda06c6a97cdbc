"""What the probe touches of vLLM must be there, with the meaning that it relies on."""

import dataclasses
import inspect

import pytest
import stepping
import vllm
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs
from vllm.v1.worker.cpu_worker import CPUWorker
from vllm.v1.worker.gpu_worker import Worker

from workbench.engine.probe import compat
from workbench.engine.probe.cpu_worker import ProbeCPUWorker
from workbench.engine.probe.scheduler import ProbeAsyncScheduler, ProbeScheduler
from workbench.errors import VersionError
from workbench.simulate.bare import make_request, make_scheduler


@pytest.fixture
def stock(model_folder):
    return make_scheduler(Scheduler, model_folder)


def test_the_installed_version_is_one_that_was_tested():
    compat.check_version(vllm.__version__)


@pytest.mark.parametrize("version", ["0.31.0", "0.33.0", "1.0.0+cpu", "dev"])
def test_another_version_is_refused_and_the_tested_ones_are_named(version):
    with pytest.raises(VersionError, match=r"got .*expected one of 0\.32\.0"):
        compat.check_version(version)


def test_a_build_suffix_does_not_matter():
    compat.check_version("0.32.0+cpu")


@pytest.mark.parametrize("name", compat.SCHEDULER_ATTRIBUTES)
def test_scheduler_has(stock, name):
    assert hasattr(stock, name)


@pytest.mark.parametrize("name", compat.SCHEDULER_CONFIG_ATTRIBUTES)
def test_scheduler_config_has(stock, name):
    assert hasattr(stock.scheduler_config, name)


@pytest.mark.parametrize("name", compat.KV_MANAGER_ATTRIBUTES)
def test_kv_cache_manager_has(stock, name):
    assert hasattr(stock.kv_cache_manager, name)


@pytest.mark.parametrize("name", compat.REQUEST_ATTRIBUTES)
def test_request_has(name):
    assert hasattr(make_request("a", 8, 2), name)


@pytest.mark.parametrize("name", compat.OUTPUT_ATTRIBUTES)
def test_output_has(name):
    assert name in {field.name for field in dataclasses.fields(SchedulerOutput)}


def test_output_takes_an_attribute_that_travels_to_the_workers():
    assert not hasattr(SchedulerOutput, "__slots__")


def test_engine_outputs_hold_the_new_tokens_of_each_request():
    assert {"request_id", "new_token_ids"} <= set(EngineCoreOutput.__struct_fields__)
    assert "outputs" in EngineCoreOutputs.__struct_fields__


@pytest.mark.parametrize("base", [Scheduler, AsyncScheduler])
def test_hooks_have_the_signatures_that_are_overridden(base):
    assert list(inspect.signature(base.schedule).parameters) == ["self", "throttle_prefills"]
    assert list(inspect.signature(base.update_from_output).parameters)[1:] == [
        "scheduler_output",
        "model_runner_output",
    ]
    assert list(inspect.signature(base._preempt_request).parameters)[1] == "request"
    cap = inspect.signature(base._reserve_prefill_lookahead).parameters
    assert list(cap) == ["self", "request", "num_computed_tokens", "num_new_tokens"]


def test_the_last_word_on_a_requests_tokens_is_asked_for_each_and_0_keeps_it_out(stock, monkeypatch):
    for name in ("a", "b", "c"):
        stock.add_request(make_request(name, 40, 9))
    stepping.step(stock)
    stock.add_request(make_request("new", 40, 9))
    bounds = {"a": 0, "new": 7}
    monkeypatch.setattr(
        stock,
        "_reserve_prefill_lookahead",
        lambda request, _, tokens: min(tokens, bounds.get(request.request_id, tokens)),
    )
    assert stepping.step(stock).plan.num_scheduled_tokens == {"b": 1, "c": 1, "new": 7}


@pytest.mark.parametrize("base", [CPUWorker, Worker])
def test_workers_have_the_hooks(base):
    assert list(inspect.signature(base.execute_model).parameters) == ["self", "scheduler_output"]
    assert list(inspect.signature(base.sample_tokens).parameters) == ["self", "grammar_output"]
    assert hasattr(base, "load_model")


def test_the_probe_goes_before_vllm_in_the_order_of_classes():
    assert ProbeScheduler.__mro__.index(Scheduler) > 1
    assert issubclass(ProbeAsyncScheduler, AsyncScheduler)
    assert issubclass(ProbeCPUWorker, CPUWorker)


def test_chunk_cap_and_budget_are_read_at_every_step(stock):
    stock.add_request(make_request("long-0", 3000, 2))
    stock.add_request(make_request("long-1", 3000, 2))
    stock.max_num_scheduled_tokens = 500
    assert stepping.step(stock).plan.num_scheduled_tokens == {"long-0": 500}
    stock.scheduler_config.long_prefill_token_threshold = 100
    assert stepping.step(stock).plan.num_scheduled_tokens == {"long-0": 100, "long-1": 100}


def test_throttle_defers_prefill_while_a_decode_runs(stock):
    stock.add_request(make_request("chat-0", 16, 20))
    stepping.step(stock)
    stock.add_request(make_request("long-0", 3000, 2))
    stock.prefill_capacity_bound = False
    plan = stock.schedule(True)
    assert plan.num_scheduled_tokens == {"chat-0": 1}
