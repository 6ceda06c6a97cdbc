"""C16, on made-up outcomes and on vLLM's own scheduler with one document."""

import pytest

from workbench.claims import chunking_table, oom_rate, play_chunking
from workbench.claims.oom_rate import Chunking
from workbench.errors import InputError
from workbench.models.architecture import named
from workbench.simulate.memory import Memory
from workbench.simulate.presets import device
from workbench.trace import TABLES, Trace, table_of
from workbench.workload.scenario import load_scenario

# Of one token on one of 8 GPUs: residual and norm, the MLP's three parts of 28672 / 8, 2 bytes each, a third more.
TOKEN = (3 * 8192 + 3 * 28_672 / 8) * 2 * 1.33
TOTAL = 81_559 << 20


def memory(share):
    return Memory.of(named("llama-3.1-70b"), device("H100"), 8, utilisation=share)


def ended(oom, ok):
    """A trace in which so many requests ran out of memory, and so many ended well."""
    rows = [{"request": f"a{n}", "status": "error", "error": "oom: a step of 66,570 tokens"} for n in range(oom)]
    rows += [{"request": f"b{n}", "status": "ok"} for n in range(ok)]
    meta = {"label": "simulated", "engine": {"simulated": {"step_time_label": "roofline, uncalibrated"}}}
    tables = {name: table_of(name, rows if name == "requests" else []) for name in TABLES}
    return Trace(tables, meta)


def engine(share, before, after=0):
    return Chunking(share, memory(share), before, 110, ended(before, 110 - before), ended(after, 110 - after))


def test_the_largest_step_by_hand():
    # Beside its share the engine leaves 5 % free, and what it has reserved for a step of 2,048 is there as well.
    assert engine(0.95, 10).largest == int(0.05 * TOTAL / TOKEN + 2048) == 47_551
    assert engine(0.92, 0).largest == int(0.08 * TOTAL / TOKEN + 2048) == 74_852


@pytest.mark.parametrize(
    ("engines", "outcome"),
    [
        ([(0.92, 10), (0.95, 10)], "holds"),
        ([(0.92, 0), (0.95, 10)], "holds in part"),
        ([(0.92, 0), (0.95, 0)], "does not hold here"),
        ([(0.92, 0), (0.95, 10, 1)], "does not hold here"),
    ],
)
def test_outcomes(engines, outcome):
    assert oom_rate([engine(*one) for one in engines]).outcome == outcome


def test_the_sentence_has_largest_step_and_rates():
    verdict = oom_rate([engine(0.92, 0), engine(0.95, 10)])
    assert "taking 92% of the memory the largest single step is 74,852 tokens: 0 of 110 prompts" in verdict.sentence
    assert "47,551 tokens: 10 of 110 prompts are longer, and 9.1% of the requests run out" in verdict.sentence
    assert "0.0% with chunks of 2,048" in verdict.sentence
    assert "which of 110 would be 13.75 requests" in verdict.arithmetic
    assert "uncalibrated" in verdict.origin
    with pytest.raises(InputError, match="engines"):
        oom_rate([])


def test_a_live_run_is_held_against_its_free_memory(make):
    run = make([1000, 2000, 4000], [1.0, 2.0, 4.0], peaks=[1.0, 2.0, 4.0])
    samples = [{"t_s": t, "source": "host available", "bytes": size << 30} for t, size in ((0.0, 16), (1.0, 8))]
    with_memory = Trace({**run.trace.tables, "memory": table_of("memory", samples)}, run.trace.meta)
    run.trace = with_memory
    told = oom_rate([engine(0.95, 10)], live=[run]).sentence
    # 1,024 KiB for 1,004 tokens (four chats ride along), in proportion
    assert "Measured (live CPU, tiny-long): steps of up to 4,004 tokens needed 4.0 MiB of 8.0 GiB free" in told
    assert "a step of more than 8," in told
    run.trace = Trace({**with_memory.tables, "memory": table_of("memory", [])}, with_memory.meta)
    assert "how much was free is not on record" in oom_rate([engine(0.95, 10)], live=[run]).sentence
    with pytest.raises(InputError, match="too few step sizes"):
        oom_rate([engine(0.95, 10)], live=[make([1000], [1.0], peaks=[1.0])])


def test_one_row_an_engine_and_budget():
    table = chunking_table([engine(0.92, 0), engine(0.95, 10)], [512, 2048])
    assert table["largest step"].to_dict() == {
        (0.92, 512): 73_316, (0.92, 2048): 74_852, (0.95, 512): 46_015, (0.95, 2048): 47_551,
    }  # fmt: skip


def test_vllms_scheduler_without_chunks_runs_out_where_the_memory_model_says_so():
    scenario = load_scenario("articles_c14")
    chat, document = scenario.streams
    few = [one.model_copy(update={"arrivals": one.arrivals.replace(count=2)}) for one in (chat, document)]
    small = scenario.replace(streams=tuple(few))
    roomy, tight = play_chunking(small)
    assert [(one.over, one.requests) for one in (roomy, tight)] == [(0, 4), (2, 4)]
    verdict = oom_rate([roomy, tight])
    assert verdict.outcome == "holds in part"
    assert "0.0% of the requests run out of memory without chunks" in verdict.sentence
    assert "50.0% of the requests run out of memory without chunks, 0.0% with chunks" in verdict.sentence
    errors = tight.without.requests.set_index("request")["error"]
    assert errors["document-0"].startswith("oom: a step of ")
    assert "memory for 47551" in errors["document-0"]
