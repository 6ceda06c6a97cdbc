"""The readers on the real files that some checkouts have beside them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from workbench.config import parse
from workbench.workload.build import build_workload
from workbench.workload.readers import read_trace
from workbench.workload.scenario import Scenario

TRACES = Path(__file__).parents[3] / "shared" / "data" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not beside this checkout")


def test_azure_code():
    found = read_trace(TRACES / "azure_llm_2023_code.csv")
    assert found.counts == {"rows": 8819, "failed": 0, "empty_prompt": 0, "zero_output": 0, "reordered": 0}
    assert found.prompt_tokens.sum() == 18_059_974
    assert (found.prompt_tokens.max(), found.output_tokens.min()) == (7437, 6)
    # From 18:17:03.9799600 to 19:14:19.9280160.
    assert found.times[-1] == pytest.approx(57 * 60 + 15.948056, abs=1e-9)
    assert (np.diff(found.times) >= 0).all()


def test_mooncake_conversation_keeps_its_shared_blocks(tokenizer_path):
    path = TRACES / "mooncake_conversation_head.jsonl"
    found = read_trace(path)
    assert found.counts["rows"] == 1500
    assert (found.prompt_tokens.max(), found.output_tokens.min(), found.times[-1]) == (123_192, 1, 509.999)
    mix = parse(
        Scenario,
        {
            "name": "real",
            "streams": [{"class": "chat", "arrivals": {"kind": "trace", "path": str(path), "limit": 200, "speed": 10}}],
        },
    )
    made = build_workload(mix, tokenizer_path, 131_072)
    assert [r.prompt_tokens for r in made.requests] == found.prompt_tokens[:200].tolist()
    assert made.requests[-1].arrival_s == pytest.approx(found.times[199] / 10)
    # As many different first blocks in the tokens as in the file, each as often.
    tokens = Counter(r.prompt[:512] for r in made.requests if r.prompt_tokens >= 512)
    ids = Counter(b[0] for b, n in zip(found.blocks[:200], found.prompt_tokens[:200].tolist(), strict=True) if n >= 512)
    assert sorted(tokens.values()) == sorted(ids.values())
    assert max(ids.values()) > 100
