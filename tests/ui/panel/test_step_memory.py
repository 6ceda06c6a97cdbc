"""The line beside the budget, on engines that are none."""

from types import SimpleNamespace

import pytest

from workbench.models.architecture import named
from workbench.simulate.engine import SimulatedEngine
from workbench.simulate.memory import Memory
from workbench.simulate.presets import device
from workbench.simulated_config import SimulatedConfig
from workbench.trace import TABLES, Trace, table_of
from workbench.ui.panel import step_memory
from workbench.ui.panel.step_memory import StepMemory

MIB = 1 << 20


def test_a_simulated_engine_says_what_a_step_needs_once_it_was_looked_up():
    engine = SimulatedEngine(SimulatedConfig(tensor_parallel_size=8, max_num_batched_tokens=2048, max_model_len=131072))
    memory = StepMemory(SimpleNamespace(engine=engine, current_run=None))
    assert (memory.note(512), memory.stale) == ("", False)
    counted = Memory.of(named("llama-3.1-70b"), device("H100"), 8, seqs=256)
    engine.setup = SimpleNamespace(memory=counted)
    assert memory.note(512) == counted.beside(512, 2048, 131072)
    assert "unchunked" in memory.note(512)


@pytest.fixture
def live(monkeypatch):
    """A live CPU engine after a run with these steps: (tokens, MiB)."""

    def made(*steps, label="live CPU"):
        rows = [
            {"step": n, "prefill_tokens": tokens, "decode_tokens": 0, "activation_bytes": int(mib * MIB)}
            for n, (tokens, mib) in enumerate(steps)
        ]
        trace = Trace({name: table_of(name, rows if name == "steps" else []) for name in TABLES})
        monkeypatch.setattr(step_memory, "RecordedRun", lambda _folder: SimpleNamespace(trace=trace))
        monkeypatch.setattr(step_memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=8 << 30))
        run = SimpleNamespace(done=True, error=None, folder="x")
        return StepMemory(SimpleNamespace(engine=SimpleNamespace(label=label), current_run=run))

    return made


def test_a_live_engine_says_its_measured_peak_against_what_is_free(live):
    memory = live((128, 2.0), (256, 4.0), (1024, 16.0))
    assert (memory.note(512), memory.stale) == ("", True)
    memory.look()
    assert not memory.stale
    # 16 KiB a token: 8 MiB for 512, and 8 GiB for 524,288
    assert memory.note(512) == (
        "Largest peak measured: 16.0 MiB in a step of 1,024 tokens, 8.0 GiB are free; one of 512 needs about 8.0 MiB "
        "(fit); one of more than 524,288 would die."
    )


def test_too_few_sizes_have_no_fit_and_a_gpu_no_host_memory(live):
    memory = live((128, 2.0))
    memory.look()
    assert memory.note(512) == "Largest peak measured: 2.0 MiB in a step of 128 tokens, 8.0 GiB are free."
    memory = live((128, 2.0), label="live GPU")
    memory.look()
    assert memory.note(512) == "Largest peak measured: 2.0 MiB in a step of 128 tokens."
    memory = live()
    memory.look()
    assert memory.note(512) == ""
