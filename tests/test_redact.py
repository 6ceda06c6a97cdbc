"""Secrets stay out of metadata, logs, errors, reports and commands."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import redact as module
from workbench.redact import Stripper, arguments, know, redact, secrets_of, text


@pytest.fixture
def known():
    """What a test makes known is forgotten after it."""
    before = dict(module._known)
    yield know
    module._known.clear()
    module._known.update(before)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["--api-key=abc", "--max-num-batched-tokens", "64"], ["--api-key=HIDDEN", "--max-num-batched-tokens", "64"]),
        ({"env": {"VLLM_API_KEY": "abc", "HOME": "x"}}, {"env": {"VLLM_API_KEY": "HIDDEN", "HOME": "x"}}),
        ("vllm serve m --api-key abc --max-model-len 9", "vllm serve m --api-key HIDDEN --max-model-len 9"),
        (["--api-key", "a", "b", "--seed", "7"], ["--api-key", "HIDDEN", "HIDDEN", "--seed", "7"]),
        (["env", "VLLM_API_KEY=abc", "vllm"], ["env", "VLLM_API_KEY=HIDDEN", "vllm"]),
        ({"HF_TOKEN": "abc", "max_tokens": 5}, {"HF_TOKEN": "HIDDEN", "max_tokens": 5}),
        ({"JUPYTER_TOKEN": "abc", "bos_token": "<s>"}, {"JUPYTER_TOKEN": "HIDDEN", "bos_token": "<s>"}),
        ({"a": [{"password": "x"}, ("--token", "y")]}, {"a": [{"password": "HIDDEN"}, ("--token", "HIDDEN")]}),
        ({"api_key": None, "secret": "", "use_secret": True}, {"api_key": None, "secret": "", "use_secret": True}),
        ({"password": 1234, "token": "abc", "tokens": 7}, {"password": "HIDDEN", "token": "HIDDEN", "tokens": 7}),
        ({"model": "https://me:pw@host/m"}, {"model": "https://HIDDEN@host/m"}),
        (["--model", "https://me:pw@host/m"], ["--model", "https://HIDDEN@host/m"]),
    ],
)  # fmt: skip
def test_redact(value, expected):
    assert redact(value) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("postgresql://me:pw@host/db is locked", "postgresql://HIDDEN@host/db is locked"),
        ("GET https://host/v1?api_key=abc&n=3 failed", "GET https://host/v1?api_key=HIDDEN&n=3 failed"),
        ("https://s3/x?X-Amz-Signature=ab12&X-Amz-Expires=9", "https://s3/x?X-Amz-Signature=HIDDEN&X-Amz-Expires=9"),
        ("Authorization: Bearer abcdef", "Authorization: Bearer HIDDEN"),
        ("headers={'Authorization': 'Bearer abcdef'}", "headers={'Authorization': 'HIDDEN'}"),
        ("VLLM_API_KEY=abc vllm serve m", "VLLM_API_KEY=HIDDEN vllm serve m"),
        ('{"api_key": "a b", "n": 1}', '{"api_key": "HIDDEN", "n": 1}'),
        ("non-default args: {'api_key': ['abc'], 'port': 1}", "non-default args: {'api_key': ['HIDDEN'], 'port': 1}"),
        ("Namespace(api_key='abc', port=1)", "Namespace(api_key='HIDDEN', port=1)"),
        ("no access to hf_abcdefghijklmnopqrst", "no access to HIDDEN"),
        ("Incorrect API key provided: sk-proj-abcdefghijklmnop.", "Incorrect API key provided: HIDDEN."),
    ],
)  # fmt: skip
def test_text(words, expected):
    assert text(words) == expected
    assert text(expected) == expected


@pytest.mark.parametrize(
    "words",
    [
        "name its key with --api-key-env NAME",
        "api_key_env: got 'MY_KEY', expected an environment variable that is set; export MY_KEY=…",
        "1,024 tokens: prefill of doc-2; max_tokens=5, token: 3",
        "author: somebody; the prefix cache's keys; key=value; --knob name=value",
        "http://127.0.0.1:8000/v1/completions",
        "PWD=/srv/here, tokenizer='a', token: 3",
        "workbench run chat_and_long --seed 3 --knob budget=256 --set max_model_len=8192",
        "Namespace(api_key=None, hf_token=None)",
        "mail me@host.example about it",
    ],
)
def test_what_is_no_secret_stays(words):
    assert text(words) == words


def test_a_key_that_was_used_is_hidden_wherever_it_stands(known):
    known("correct-horse")
    assert redact({"error": "no: correct-horse!", "n": 1}) == {"error": "no: HIDDEN!", "n": 1}
    assert arguments(["correct-horse"]) == ["HIDDEN"]


def test_a_short_key_is_no_reason_to_change_words(known):
    known("a")
    assert text("a cat") == "a cat"


def test_what_a_command_and_its_environment_hold():
    argv = ["vllm", "--api-key", "first-key-1", "--hf-token=second-key", "--seed", "12345678"]
    assert secrets_of(argv, {"VLLM_API_KEY": "third-key-3", "HOME": "/home/me-and-you", "HF_TOKEN": "short"}) == [
        "third-key-3", "first-key-1", "second-key",
    ]  # fmt: skip


@given(st.lists(st.integers(0, 60), max_size=6), st.sampled_from(["sesame-open", "aaaaaaab"]))
def test_a_stream_shows_no_value_however_it_is_cut(cuts, value):
    whole = f"aaaa{value}, then {value}{value} and sesame-ope".encode()
    at = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    stripper = Stripper([value])
    out = b"".join(stripper.feed(whole[a:b]) for a, b in itertools.pairwise(at)) + stripper.close()
    assert out == whole.replace(value.encode(), b"HIDDEN")


def test_a_key_is_hidden_as_it_stands_in_an_address_and_in_json(known):
    known('pa/ss+wo"rd')
    assert text('GET /v1?x=pa%2Fss%2Bwo%22rd and "pa/ss+wo\\"rd"') == 'GET /v1?x=HIDDEN and "HIDDEN"'
