"""Whole workloads: scenario and tokenizer in, requests out."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.config import parse
from workbench.errors import ModelError, ScenarioError, TraceFileError
from workbench.workload.build import build_workload
from workbench.workload.scenario import Scenario, load_scenario, scenario_names

HEAD = 4  # tokens that tell pieces apart
ROOT = Path(__file__).parents[2]


def scenario(*streams, **fields):
    return parse(Scenario, {"name": "test", "streams": list(streams)} | fields)


def stream(name="chat", count=3, prompt=20, output=5, **fields):
    return {
        "class": name,
        "arrivals": {"kind": "at_once", "count": count},
        "prompt_tokens": prompt,
        "output_tokens": output,
    } | fields


def trace(tmp_path, *rows, **options):
    path = tmp_path / "trace.jsonl"
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    return {"class": "code", "arrivals": {"kind": "trace", "path": str(path), **options}}


def shared_start(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def test_requests_are_ordered_named_and_as_long_as_planned(tokenizer_path):
    made = build_workload(
        scenario(
            stream("long", 1, 300, 16, start_s=1.5, priority=2),
            stream("chat", 2, 20, 5),
            stream("chat", 1, 30, 6, start_s=9, priority="vip"),
        ),
        tokenizer_path,
        400,
    )
    rows = [(r.request, r.class_name, r.priority, r.arrival_s, r.prompt_tokens, r.output_tokens) for r in made.requests]
    assert rows == [
        ("chat-0", "chat", 1, 0, 20, 5),
        ("chat-1", "chat", 1, 0, 20, 5),
        ("long-0", "long", 2, 1.5, 300, 16),
        ("chat-2", "chat", 0, 9, 30, 6),
    ]


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    prefix=st.integers(1, 200),
    groups=st.integers(1, 4),
    count=st.integers(1, 12),
    low=st.integers(HEAD, 60),
)
def test_a_prefix_is_shared_within_a_group_and_nowhere_else(tokenizer_path, seed, prefix, groups, count, low):
    own = {"kind": "uniform", "min": low, "max": 60}
    made = build_workload(
        scenario(
            stream("chat", count, own, shared_prefix={"tokens": prefix, "groups": groups}),
            stream("other", 2, own),
        ),
        tokenizer_path,
        4096,
        seed,
    ).requests
    for i, one in enumerate(made):
        front = prefix if one.class_name == "chat" else 0
        assert front + low <= one.prompt_tokens <= front + 60
        for j, two in enumerate(made[:i]):
            same_group = one.class_name == two.class_name == "chat" and (i - j) % groups == 0
            shared = shared_start(one.prompt, two.prompt)
            assert (prefix <= shared < prefix + HEAD) if same_group else shared < HEAD


def test_a_seed_decides_everything_and_a_salt_only_the_words(tokenizer_path):
    mix = scenario(
        stream(
            "chat",
            prompt={"kind": "uniform", "min": 10, "max": 90},
            arrivals={"kind": "poisson", "rate": 1, "count": 8},
        ),
        seed=7,
    )
    base, same, other, salted = (
        build_workload(mix, tokenizer_path, 400, *more) for more in ((), (7,), (8,), (None, 1))
    )
    assert base.seed == 7
    assert base == same
    assert other.seed == 8

    def shape(workload):
        return [(r.arrival_s, r.prompt_tokens, r.output_tokens) for r in workload.requests]

    assert shape(other) != shape(base)
    assert shape(salted) == shape(base)
    assert all(a.prompt != b.prompt for a, b in zip(salted.requests, base.requests, strict=True))


def test_a_stream_more_leaves_the_others_as_they_were(tokenizer_path):
    one = stream(arrivals={"kind": "poisson", "rate": 1, "count": 8}, prompt={"kind": "uniform", "min": 9, "max": 99})
    alone = build_workload(scenario(one), tokenizer_path, 400).requests
    both = build_workload(scenario(one, stream("long", 2, 100)), tokenizer_path, 400).requests
    chats = [(r.request, r.arrival_s, r.prompt_tokens) for r in both if r.class_name == "chat"]
    assert chats == [(r.request, r.arrival_s, r.prompt_tokens) for r in alone]


def test_two_streams_alike_do_not_move_in_step(tokenizer_path):
    lengths = {"kind": "uniform", "min": 9, "max": 99}
    arrivals = {"kind": "poisson", "rate": 1, "count": 8}
    one, two = (stream(name, arrivals=arrivals, prompt=lengths) for name in ("one", "two"))
    made = build_workload(scenario(one, two), tokenizer_path, 400).requests
    of = {n: [(r.arrival_s, r.prompt_tokens) for r in made if r.class_name == n] for n in ("one", "two")}
    assert not {arrival for arrival, _ in of["one"]} & {arrival for arrival, _ in of["two"]}
    assert [n for _, n in of["one"]] != [n for _, n in of["two"]]


def test_a_trace_starts_when_its_stream_does(tokenizer_path, tmp_path):
    late = trace(tmp_path, (500, 10, 5, []), (1500, 10, 5, []), speed=2) | {"start_s": 30}
    made = build_workload(scenario(late), tokenizer_path, 400).requests
    assert [r.arrival_s for r in made] == [30, 30.5]


def test_fixed_concurrency_is_passed_on(tokenizer_path):
    closed = stream(arrivals={"kind": "concurrency", "in_flight": 2, "count": 5}, start_s=3)
    made = build_workload(scenario(closed), tokenizer_path, 400)
    assert made.concurrency == {"chat": 2}
    assert [r.arrival_s for r in made.requests] == [3] * 5


def test_a_request_that_fits_exactly_is_made_and_one_token_more_is_refused(tokenizer_path):
    mix = scenario(stream(), stream("long", 1, 20, 12, shared_prefix={"tokens": 32}))
    assert build_workload(mix, tokenizer_path, 64).requests[-1].prompt_tokens == 52
    with pytest.raises(ScenarioError) as bad:
        build_workload(mix, tokenizer_path, 63)
    assert str(bad.value).startswith(
        "streams.1 (class long): got 'up to 32 shared + 20 prompt + 12 output = 64 tokens', "
        "expected at most 63 (max_model_len)"
    )


def test_equal_blocks_of_a_trace_are_equal_tokens(tokenizer_path, tmp_path):
    rows = ((0, 1100, 5, [0, 1, 2]), (10, 1536, 5, [0, 1, 2]), (20, 1030, 5, [0, 3, 2]), (30, 700, 5, [9]))
    made = build_workload(scenario(trace(tmp_path, *rows)), tokenizer_path, 4096).requests
    a, b, c, d = (r.prompt for r in made)
    assert [len(p) for p in (a, b, c, d)] == [1100, 1536, 1030, 700]
    assert b[:1100] == a
    assert c[:512] == a[:512]
    assert shared_start(c[512:], a[512:]) < HEAD
    assert c[1024:] == a[1024:1030]
    assert shared_start(d, a) < HEAD


def test_what_exceeds_the_context_is_clipped_and_counted(tokenizer_path, tmp_path):
    rows = ((0, 600, 100, [0, 1]), (1, 10, 900, [2]), (2, 900, 900, [0, 3]), (3, 490, 10, [4]))
    made = build_workload(scenario(trace(tmp_path, *rows)), tokenizer_path, 500)
    assert [(r.prompt_tokens, r.output_tokens) for r in made.requests] == [(400, 100), (10, 490), (250, 250), (490, 10)]
    assert made.requests[2].prompt == made.requests[0].prompt[:250]
    (counts,) = made.source["traces"].values()
    assert (counts["rows"], counts["clipped"], counts["dropped"]) == (4, 3, 0)


def test_what_exceeds_the_context_is_dropped_and_counted(tokenizer_path, tmp_path):
    rows = ((0, 600, 100, []), (1, 490, 10, []), (2, 490, 11, []))
    made = build_workload(scenario(trace(tmp_path, *rows, too_long="drop")), tokenizer_path, 500)
    assert [(r.request, r.prompt_tokens, r.output_tokens) for r in made.requests] == [("code-0", 490, 10)]
    (counts,) = made.source["traces"].values()
    assert (counts["clipped"], counts["dropped"]) == (0, 2)
    with pytest.raises(TraceFileError, match="3 requests that are all too long"):
        build_workload(scenario(trace(tmp_path, *rows, too_long="drop")), tokenizer_path, 100)


def test_documents_are_cut_from_the_text_and_too_little_text_is_refused(tokenizer_path, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the old river and the window\n" * 40)
    mix = scenario(stream("doc", 3, 200, documents=str(path)))
    made = build_workload(mix, tokenizer_path, 4096).requests
    assert len({r.prompt[0] for r in made}) == 3
    assert len({r.prompt[HEAD:] for r in made}) == 1  # every line is the same
    path.write_text("the old river\n")
    with pytest.raises(
        ScenarioError, match=r"streams.0 \(class doc\): documents .*, the longest piece of a prompt; add"
    ):
        build_workload(mix, tokenizer_path, 4096)


def test_too_many_tokens_in_all_are_refused(tokenizer_path):
    with pytest.raises(ScenarioError, match="100000128 prompt tokens in all"):
        build_workload(scenario(stream("chat", 781_251, 128)), tokenizer_path, 4096)


def test_bad_seeds_and_missing_tokenizers_are_refused(tokenizer_path, tmp_path):
    for seed in (-1, 2**32):
        with pytest.raises(ScenarioError, match="seed"):
            build_workload(scenario(stream()), tokenizer_path, 400, seed)
    with pytest.raises(ModelError):
        build_workload(scenario(stream()), tmp_path, 400)


def test_the_source_is_plain_and_complete(tokenizer_path):
    mix = load_scenario("shared_prefix")
    source = json.loads(json.dumps(build_workload(mix, tokenizer_path, 2048, 9).source))
    assert parse(Scenario, source["scenario"]) == mix
    assert (source["seed"], source["salt"], source["max_model_len"], source["traces"]) == (9, 0, 2048, {})


ENDLESS = {"interactive"}  # played until a person stops it


SIMULATED = {name for name in scenario_names() if load_scenario(name).engine.get("engine") == "simulated"}


@pytest.mark.parametrize("name", sorted(set(scenario_names()) - ENDLESS - SIMULATED))
def test_named_scenarios_fit_their_engine_and_a_minute_on_a_laptop(tokenizer_path, name):
    mix = load_scenario(name)
    made = build_workload(mix, tokenizer_path, mix.engine_config.max_model_len).requests
    # Measured on one core: prefill tokens/s, and seconds a decode step (tiny-long: a prompt of 32,768; 50 streams).
    prefill_rate, step_s = {"smollm2": (400, 0.031), "tiny-long": (900, 0.025)}[mix.engine_config.model]
    prefill_s = sum(r.prompt_tokens for r in made) / prefill_rate
    longest_output_s = max(r.output_tokens for r in made) * step_s
    assert max(made[-1].arrival_s, prefill_s) + longest_output_s < 60


@pytest.mark.parametrize("name", sorted(ENDLESS))
def test_an_endless_load_leaves_a_laptop_room_for_dropped_prompts(tokenizer_path, name):
    mix = load_scenario(name)
    made = build_workload(mix, tokenizer_path, mix.engine_config.max_model_len).requests
    seconds = made[-1].arrival_s
    assert seconds > 300
    documents = sum(r.prompt_tokens for r in made if r.class_name not in mix.concurrency)
    assert documents / 400 < 0.5 * seconds, "at 400 prefill tokens/s documents take less than half of the time"


PRINT_DIGEST = """
import sys
from pathlib import Path
from workbench.workload.build import build_workload
from workbench.workload.scenario import load_scenario, scenario_names
for name in scenario_names():
    mix = load_scenario(name)
    print(name, build_workload(mix, Path(sys.argv[1]), mix.engine_config.max_model_len).requests)
"""


def test_every_process_and_hash_seed_makes_the_same_workload(tokenizer_path):
    digests = {
        hashlib.sha256(
            subprocess.run(
                [sys.executable, "-c", PRINT_DIGEST, str(tokenizer_path)],
                env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
                check=True,
                capture_output=True,
            ).stdout
        ).hexdigest()
        for hash_seed in ("0", "1", "4242")
    }
    assert len(digests) == 1
    assert digests != {hashlib.sha256(b"").hexdigest()}
