"""data/README.md against what lies beside it: sizes, every number of a scenario's row, and every run's row."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.metrics import prefill_steps
from workbench.workload.scenario import load_scenario, scenario_names
from workbench.workload.stream import plan

DATA = Path(__file__).parents[2] / "data"
TEXT = (DATA / "README.md").read_text(encoding="utf-8")
WORDS = {"two": 2, "four": 4, "ten": 10}
_NUMBER = re.compile(r"(?<![\w.,-])(\d[\d,]*(?:\.\d+)?)(K?)(?![\w])(?!\.\d)")


def table(heading):
    """The rows of the first table below a heading, each as its cells."""
    part = re.split(r"^## ", TEXT.split(f"## {heading}\n")[1], flags=re.MULTILINE)[0]
    lines = [line for line in part.split("\n") if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return rows[2 : next((n for n, row in enumerate(rows) if n > 1 and set(row[0]) == {"-"}), len(rows) + 1) - 1]


def numbers(text):
    return {float(n.replace(",", "")) * (1024 if k else 1) for n, k in _NUMBER.findall(text)}


def leaves(node):
    """All numbers of a scenario's data."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list | tuple):
        return set().union(*map(leaves, node))
    return {float(node)} if isinstance(node, int | float) and not isinstance(node, bool) else set()


SCENARIOS = {name: row for row in table("Scenarios") for name in re.findall(r"`(\w+)`", row[0])}
MADE_ON = {"A": ("2026-12-01", "float32"), "B": ("2026-11-30", "float32"), "C": ("2026-12-01", "auto")}
RUNS = {row[0].strip("`"): row for row in table("Recorded runs")}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ("scenarios/*.yaml", r"`scenarios/\*\.yaml` \(about (\d+) KB"),
        ("workshop/*.yaml", r"`workshop/\*\.yaml` \(about (\d+) KB"),
        ("hardware.yaml", r"`hardware\.yaml` \(about (\d+) KB"),
        ("calibrations/*.json", r"`calibrations/\*\.json` \(about (\d+) KB each"),
        ("runs/*/*", r"`runs/` \(some ([\d,]+) KB"),
    ],
)
def test_sizes(files, said):
    sizes = [file.stat().st_size / 1000 for file in DATA.glob(files)]
    size = max(sizes) if "each" in said else sum(sizes)
    assert int(re.search(said, TEXT)[1].replace(",", "")) == pytest.approx(size, rel=0.15)


def test_every_scenario_and_every_run_has_its_row():
    assert sorted(SCENARIOS) == scenario_names()
    assert sorted(RUNS) == sorted(path.parent.name for path in DATA.glob("runs/*/run.json"))


def known(name):
    """The numbers that a scenario's row may have."""
    scenario = load_scenario(name)
    length = scenario.engine_config.max_model_len
    planned = [plan(stream, place, scenario.seed, length)[0] for place, stream in enumerate(scenario.streams)]
    found = leaves(scenario.model_dump(mode="json")) | {float(len(requests)) for requests in planned}
    found |= {float(sum(map(len, planned)))}
    if name == "thrash":  # blocks of 32 tokens: those that eight requests want, and those that there are
        tokens = [one.prompt_tokens + one.output_tokens - 1 for requests in planned for one in requests]
        found |= {float(sum(math.ceil(n / scenario.engine["block_size"]) for n in tokens)), 34.0 - 1}
    return found


@pytest.mark.parametrize("name", scenario_names())
def test_the_numbers_of_a_scenarios_row_are_those_of_its_file(name):
    names, _, made_from = SCENARIOS[name]
    made_from = made_from.rpartition("scaled to ")[2]  # what stands before it is the article's
    assert numbers(made_from) <= set().union(*map(known, re.findall(r"`(\w+)`", names)))
    if (counted := re.search(r"(\w+) (?:settings|policies)\b", made_from)) is not None:
        assert WORDS[counted[1]] == len(load_scenario(name).settings)


def test_numbers_are_found_in_a_row():
    assert numbers("57 chats, 6/s on average, 4 of 12,000 tokens, 8 x H100, Llama-3.1-70B, 0.8 s and 64K.") == {
        57, 6, 4, 12_000, 8, 0.8, 65_536}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_runs_row_is_what_the_run_holds(name):
    _, made_on, usual, shows = RUNS[name]
    run = Workbench.open(DATA / "runs" / name)
    assert usual == f"{run.kpis.loc['gap_p50_ms', 'value']:.0f} ms"
    assert (made_on in MADE_ON) == (run.meta["label"] == "live CPU")
    if made_on in MADE_ON:
        assert (run.meta["created"][:10], run.meta["engine"]["config"]["dtype"]) == MADE_ON[made_on]
        assert run.meta["machine"]["usable_cores"] == 2
        tiny = name.startswith(("one_long_prompt", "claims_"))
        assert run.meta["engine"]["config"]["model"] == ("tiny-long" if tiny else "smollm2")
    else:
        assert "uncalibrated" in run.meta["engine"]["simulated"]["step_time_label"]
    asked = run.requests.sort_values("planned_s")
    if (
        chats := re.search(r"(\w+) chats of (\d+) tokens and a prompt of ([\d,]+) tokens at ([\d.]+) s", shows)
    ) is not None:
        found = asked[asked["class"] == "chat"]
        assert (len(found), *set(found["output_tokens"])) == (WORDS[chats[1]], int(chats[2]))
        (long,) = asked[asked["class"] == "long"].to_dict("records")
        assert (long["prompt_tokens"], long["planned_s"]) == (int(chats[3].replace(",", "")), float(chats[4]))
    if (steps := re.search(r"in (\d+) steps?\b", shows)) is not None:
        assert prefill_steps(run.trace).set_index("request").loc["long-0", "prefill_steps"] == int(steps[1])
    if (seed := re.search(r"seed (\d+)", shows)) is not None:
        assert run.meta["seed"] == int(seed[1])
    if (preempted := re.search(r"(\d+) preemptions", shows)) is not None:
        assert len(run.preemptions) == int(preempted[1])
    if (pool := re.search(r"pool of (\d+) blocks", shows)) is not None:
        assert run.meta["engine"]["resolved"]["kv_blocks"] - 1 == int(pool[1]), "one block is vLLM's own"
    named = re.search(r"the scenario `(\w+)`", shows)
    if named is not None:
        ours = load_scenario(named[1]).model_dump(mode="json", by_alias=True, exclude_none=True)
        kept = run.meta["workload"]["scenario"]
        assert kept["streams"] == ours["streams"]
