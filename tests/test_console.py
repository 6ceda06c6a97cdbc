"""What the command line says and shows, in 120 columns of text."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from workbench import console
from workbench.errors import ConfigError
from workbench.models.architecture import named
from workbench.simulate.engine import SimulatedEngine
from workbench.simulate.memory import Memory
from workbench.simulate.presets import device
from workbench.simulated_config import SimulatedConfig

WIDE = {
    "requests": 100, "ttft_p50_s": 12.98, "ttft_p99_s": 57.277, "gap_p50_ms": 1144.4, "gap_p99_ms": 13781.1,
    "gap_max_ms": 13784.9, "stalls": 25251, "goodput_per_s": 1.25, "preemptions": 12, "recomputed_tokens": 10400,
    "mfu": 0.452, "compute_floor_s": 1.8446, "bandwidth_floor_s": 0.005,
}  # fmt: skip


def shown(rows):
    out = Console(width=120, record=True, file=io.StringIO())
    out.print(console.classes_table(rows, "title"))
    return out.export_text()


def rows(**changes):
    named_so = [(p, c) for p in ("chunked with classes", "decode_first") for c in ("document", "all")]
    return [{"policy": policy, "class": name, **WIDE, **changes} for policy, name in named_so]


def test_the_widest_figures_of_policies_fit():
    text = shown(rows())
    assert "…" not in text
    for figure in ("12.98", "57.28", "13,785", "25,251", "10,400", "0.452", "1.845", "chunked with classes", "recom-"):
        assert figure in text


def test_the_floor_is_the_larger_one_of_those_that_are_known():
    assert "2.500" in shown(rows(bandwidth_floor_s=2.5))
    assert "1.845" in shown(rows(bandwidth_floor_s=float("nan")))
    assert "floor" not in shown(rows(compute_floor_s=None, bandwidth_floor_s=None))


def test_columns_that_tell_nothing_are_left_out():
    text = shown(rows(preemptions=0, recomputed_tokens=0, mfu=None))
    assert not any(word in text for word in ("pre-", "recom-", "MFU"))
    assert "stalls" in shown(rows(stalls=0))
    one = rows(preemptions=0, recomputed_tokens=0)
    one[0]["preemptions"] = 1
    assert "pre-" in shown(one)


@pytest.fixture
def said(monkeypatch):
    lines = []
    monkeypatch.setattr(console.err, "print", lambda text, **_: lines.append(text))
    return lines


def test_a_simulated_engine_says_what_it_is_and_what_memory_a_step_has(said):
    engine = SimulatedEngine(SimulatedConfig(tensor_parallel_size=8, max_model_len=131072))
    memory, gpu = Memory.of(named("llama-3.1-70b"), device("H100"), 8), device("H100")
    engine.setup = SimpleNamespace(
        label="roofline, uncalibrated", device=gpu, blocks=1000, block_size=16, memory=memory
    )
    console.say_engine(SimpleNamespace(engine=engine))
    (line,) = said
    assert line.startswith("simulated · roofline, uncalibrated: llama-3.1-70b on 8 x H100 SXM, 1,000 KV blocks of 16. ")
    budget = engine.config.max_num_batched_tokens
    assert line.endswith(memory.beside(budget, budget, 131072))
    assert "unchunked, " in line


def test_a_live_engine_says_nothing(said):
    console.say_engine(SimpleNamespace(engine=SimpleNamespace(label="live CPU")))
    assert not said


@pytest.fixture
def piped(monkeypatch):
    """What stands on stderr, which is a pipe here."""
    file = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=file, width=100))
    return file


def test_bars_take_no_line_before_there_is_the_first_of_them(piped):
    def start(_tell):
        raise ConfigError("model", "/no/such", "a folder that is there", "check the path")

    with pytest.raises(ConfigError), console.bars() as progress:
        start(console.engine_start(progress))
    assert piped.getvalue() == ""


def test_the_bar_of_a_start_is_there_from_its_first_word_on(piped):
    with console.bars() as progress:
        tell = console.engine_start(progress)
        assert progress.tasks == []
        tell(0.1, "loading")
        tell(0.2, "ready")
        (task,) = progress.tasks
        assert (task.description, task.fields["note"], task.finished) == ("engine start", "ready", True)
    assert piped.getvalue() == "engine start: …\nengine start: ready (0:00)\n"


@pytest.mark.parametrize("name", ["[/x]", "[bold]loud[/bold]", "[link=http://a]b[/link]"])
def test_brackets_in_names_are_words(name, monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(console.out, "_file", file)  # "file" would be set back to what is standard output right now
    console.out.print(name, soft_wrap=True)
    console.out.print(console.frame_table([{"run": name}], ["run"], name))
    assert file.getvalue().count(name) == 3
    with console.bars() as progress:
        progress.add_task(name, total=1, note=name)
