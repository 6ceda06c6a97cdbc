"""Copied text does what is on screen, and shows no keys."""

from __future__ import annotations

import shlex
import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.code import as_code, hide_keys
from workbench.config import SLO, EngineConfig, Knobs
from workbench.engine.command import serve_command
from workbench.presets import presets
from workbench.redact import HIDDEN


class Played:
    kpis = "figures"

    def __init__(self, told):
        self.told = told

    def wait(self):
        self.told.append(("wait",))


class Fake:
    """Takes the calls of a Workbench and keeps them."""

    told: list

    def __init__(self, model="smollm2", *, slo=None, **start_up):
        self.slo = slo or SLO()
        self.told.append(("new", EngineConfig(model=model, **start_up), self.slo))

    def start(self):
        self.told.append(("start",))

    def stop(self):
        self.told.append(("stop",))

    def knobs(self, **changes):
        self.told.append(("knobs", changes))

    def run(self, scenario, *, rate=None, slo=None):
        self.told.append(("run", scenario, rate, slo))
        return Played(self.told)


@pytest.fixture
def played(monkeypatch):
    """Run code with a fake Workbench and return its calls."""

    def play(text):
        fake = ModuleType("workbench")
        fake.__path__ = sys.modules["workbench"].__path__
        fake.Workbench = type("Workbench", (Fake,), {"told": []})
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "workbench", fake)
            exec(compile(text, "pasted", "exec"), {})  # what a person would do with it
        return fake.Workbench.told

    return play


def test_all_defaults_are_three_lines(played):
    text = as_code(EngineConfig())
    assert text == "from workbench import Workbench\n\nwb = Workbench()\nwb.start()\nwb.stop()\n"
    assert played(text) == [("new", EngineConfig(), SLO()), ("start",), ("stop",)]


def test_word_for_word_with_everything(capsys, played):
    config = EngineConfig(model="tiny-long", max_model_len=32768, enable_prefix_caching=True, kv_cache_mib=None)
    knobs = Knobs(budget=512, chunk=128, max_running=32, policy="decode_first", prefill_every=8)
    slo = SLO(gap_ms=100)
    text = as_code(config, knobs, "interactive", 0.1, slo)
    assert text == (
        "from workbench import Workbench\n"
        "from workbench.config import SLO\n"
        "\n"
        "wb = Workbench(\n"
        '    model="tiny-long",\n'
        "    max_model_len=32768,\n"
        "    kv_cache_mib=None,\n"
        "    enable_prefix_caching=True,\n"
        "    slo=SLO(gap_ms=100.0),\n"
        ")\n"
        "wb.start()\n"
        'wb.knobs(budget=512, chunk=128, policy="decode_first", prefill_every=8)\n'
        'run = wb.run("interactive", rate=0.1, slo=wb.slo)\n'
        "run.wait()\n"
        "print(run.kpis)\n"
        "wb.stop()\n"
    )
    assert played(text) == [
        ("new", config, slo),
        ("start",),
        ("knobs", {"budget": 512, "chunk": 128, "policy": "decode_first", "prefill_every": 8}),
        ("run", "interactive", 0.1, slo),
        ("wait",),
        ("stop",),
    ]
    assert capsys.readouterr().out == "figures\n"


def test_knobs_at_their_ceiling_are_not_set():
    config = EngineConfig(max_num_seqs=8)
    assert "knobs" not in as_code(config, config.envelope.defaults)
    assert "wb.knobs(max_running=4)" in as_code(config, config.envelope.defaults.replace(max_running=4))


@pytest.mark.parametrize("name", presets())
def test_each_preset_comes_back(played, name):
    config = presets()[name].config
    assert played(as_code(config))[0] == ("new", config, SLO())


@given(
    model=st.text(min_size=1),
    quantization=st.none() | st.text(),
    extra=st.lists(st.text().filter(lambda word: not word.startswith("-")), max_size=3),
    share=st.none() | st.floats(0.01, 1),
    scenario=st.text(min_size=1),
)
def test_any_text_comes_back_as_it_was(model, quantization, extra, share, scenario):
    config = EngineConfig(model=model, quantization=quantization, extra_args=tuple(extra), gpu_memory_utilization=share)
    text = as_code(config, scenario=scenario)
    told = []
    names = {"Workbench": type("Workbench", (Fake,), {"told": told}), "print": lambda _: None}
    exec(compile(text.replace("from workbench import Workbench\n", "", 1), "pasted", "exec"), names)
    assert told[0] == ("new", config, SLO())
    assert told[2] == ("run", scenario, None, None)


def test_lines_stay_short_where_they_can():
    text = as_code(presets()["article"].config, Knobs(budget=512, chunk=64, max_running=1), "interactive", 0.25, SLO())
    assert max(len(line) for line in text.splitlines()) <= 88


def test_keys_are_shown_nowhere():
    words = ("--api-key", "abc", "def", "--seed", "7", "--hf-token=abc", "--hf_token", "abc", "--ssl-keyfile", "k.pem")
    config = EngineConfig(extra_args=words)
    shown = (
        *("--api-key", HIDDEN, HIDDEN, "--seed", "7", f"--hf-token={HIDDEN}", "--hf_token", HIDDEN),
        *("--ssl-keyfile", "k.pem"),
    )
    assert hide_keys(config).extra_args == shown
    for text in (as_code(config), serve_command(config)):
        assert "abc" not in text
        assert "def" not in text
    assert shlex.split(serve_command(config))[-len(shown) :] == list(shown)
