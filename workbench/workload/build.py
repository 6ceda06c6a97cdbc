"""The requests of a scenario, with the words of their prompts."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path

from workbench.errors import ScenarioError
from workbench.workload.prompts import Pool, Prompts, load_tokenizer
from workbench.workload.request import Request, Workload
from workbench.workload.scenario import MAX_SEED, Scenario
from workbench.workload.stream import Planned, plan

_MOST_PROMPT_TOKENS = 100_000_000  # 8 bytes each


def build_workload(
    scenario: Scenario, tokenizer_path: Path, max_model_len: int, seed: int | None = None, salt: int = 0
) -> Workload:
    """Make the requests of a scenario.

    Args:
        scenario: what to play.
        tokenizer_path: the model's ``tokenizer.json`` or the folder that holds it.
        max_model_len: the engine's context.
        seed: replaces the scenario's.
        salt: other words in the prompts, all else equal; for a second play on an engine whose prefix cache still
            holds the first.

    Raises:
        ScenarioError: a request that is too long, documents with too little text, too many tokens in all.
        TraceFileError: a trace file cannot be used.
        ModelError: the tokenizer is missing or damaged.
    """
    seed = scenario.seed if seed is None else seed
    if not (0 <= seed <= MAX_SEED and 0 <= salt <= MAX_SEED):
        raise ScenarioError("seed", seed, f"a number from 0 to {MAX_SEED}", "choose another seed")
    planned: list[Planned] = []
    traces: dict[str, dict[str, int]] = {}
    for place, stream in enumerate(scenario.streams):
        requests, counts = plan(stream, place, seed, max_model_len)
        planned += requests
        if counts:
            traces[f"streams.{place} ({stream.class_name})"] = counts
    total = sum(request.prompt_tokens for request in planned)
    if total > _MOST_PROMPT_TOKENS:
        raise ScenarioError(
            f"scenario {scenario.name}",
            f"{total} prompt tokens in all",
            f"at most {_MOST_PROMPT_TOKENS}",
            "lower a count, or set a limit on the trace",
        )
    planned.sort(key=lambda request: request.arrival_s)
    prompts = Prompts(load_tokenizer(tokenizer_path), seed, salt)
    pools = _pools(scenario, prompts, planned)
    numbers: Counter[str] = Counter()
    made = []
    for request in planned:
        stream = scenario.streams[request.stream]
        pool = pools.get(request.stream)
        made.append(
            Request(
                request=f"{stream.class_name}-{numbers[stream.class_name]}",
                class_name=stream.class_name,
                priority=stream.priority,
                arrival_s=request.arrival_s,
                prompt=tuple(chain.from_iterable(prompts.piece(n, key, pool) for key, n in request.parts)),
                output_tokens=request.output_tokens,
            )
        )
        numbers[stream.class_name] += 1
    source = {
        "scenario": scenario.model_dump(mode="json", by_alias=True, exclude_none=True),
        "seed": seed,
        "salt": salt,
        "max_model_len": max_model_len,
        "traces": traces,
    }
    return Workload(requests=tuple(made), concurrency=scenario.concurrency, seed=seed, source=source)


def _pools(scenario: Scenario, prompts: Prompts, planned: list[Planned]) -> dict[int, Pool]:
    """The documents of each stream that has some."""
    read: dict[Path, Pool] = {}
    pools: dict[int, Pool] = {}
    for place, stream in enumerate(scenario.streams):
        if stream.documents is None:
            continue
        if stream.documents not in read:
            read[stream.documents] = prompts.documents(stream.documents)
        pool = pools[place] = read[stream.documents]
        longest = max((n for request in planned if request.stream == place for _, n in request.parts), default=0)
        if longest > len(pool.tokens):
            raise ScenarioError(
                f"streams.{place} (class {stream.class_name}): documents {stream.documents}",
                f"{len(pool.tokens)} tokens of text",
                f"at least {longest}, the longest piece of a prompt",
                "add text or shorten prompt_tokens",
            )
    return pools
