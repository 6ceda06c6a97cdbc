"""Starting and stopping, without vLLM: the part before it is launched stands still as long as a test wants."""

import threading

import pytest

from workbench.engine import live
from workbench.engine.live import LiveEngine
from workbench.engine.probe import wire
from workbench.errors import ConfigError, EngineError, EngineStartError


class Fetch:
    """A model that is being fetched, and says so again and again."""

    def __init__(self):
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, _model, progress):
        self.begun.set()
        while not self.go_on.wait(0.01):
            progress("fetching")
        raise AssertionError("nobody stopped it")


@pytest.fixture
def fetch(monkeypatch):
    fetch = Fetch()
    monkeypatch.setattr(live, "resolve_model", fetch)
    yield fetch
    fetch.go_on.set()


def test_a_stop_ends_a_start_that_has_not_come_to_vllm_yet(fetch):
    engine, errors = LiveEngine(), []

    def start():
        try:
            engine.start()
        except EngineStartError as error:
            errors.append(str(error))

    starting = threading.Thread(target=start)
    starting.start()
    assert fetch.begun.wait(10)
    with pytest.raises(EngineError, match="while starting"):
        engine.start()
    engine.stop()
    starting.join(10)
    assert not starting.is_alive()
    assert errors == ["the start was stopped"]
    assert engine.state == "stopped"


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
    LiveEngine()._check_resolved(wire.SchedulerHello(**HELLO))


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
        LiveEngine()._check_resolved(wire.SchedulerHello(**{**HELLO, **other}))
