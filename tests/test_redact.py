"""Secrets stay out of metadata, reports and commands."""

import pytest

from workbench.redact import redact


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["--api-key=abc", "--max-num-batched-tokens", "64"], ["--api-key=HIDDEN", "--max-num-batched-tokens", "64"]),
        ({"env": {"VLLM_API_KEY": "abc", "HOME": "x"}}, {"env": {"VLLM_API_KEY": "HIDDEN", "HOME": "x"}}),
        ("vllm serve m --api-key abc --max-model-len 9", "vllm serve m --api-key HIDDEN --max-model-len 9"),
        (["--api-key", "a", "b", "--seed", "7"], ["--api-key", "HIDDEN", "HIDDEN", "--seed", "7"]),
        (["env", "VLLM_API_KEY=abc", "vllm"], ["env", "VLLM_API_KEY=HIDDEN", "vllm"]),
        ({"HF_TOKEN": "abc", "max_tokens": 5}, {"HF_TOKEN": "HIDDEN", "max_tokens": 5}),
    ],
)  # fmt: skip
def test_redact(value, expected):
    assert redact(value) == expected
