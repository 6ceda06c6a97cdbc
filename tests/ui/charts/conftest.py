"""How the tests of charts look into a chart, and a long run for those that have to thin."""

from __future__ import annotations

import pytest
import vl_convert

from workbench.trace import TABLES, Trace, table_of


@pytest.fixture(scope="session")
def rows():
    """All rows of data in a chart, as one list."""
    return lambda chart: [row for data in chart.to_dict()["datasets"].values() for row in data]


@pytest.fixture(scope="session")
def subtitle():
    """What stands below a chart's heading, line by line."""

    def read(chart):
        text = chart.to_dict()["title"]["subtitle"]
        return text if isinstance(text, str) else "\n".join(text)

    return read


@pytest.fixture(scope="session")
def svg():
    """A chart as it is drawn."""
    return lambda chart: vl_convert.vegalite_to_svg(chart.to_dict(), vl_version="6.4")


@pytest.fixture(scope="session")
def with_rows():
    """The same trace with other rows in some tables."""

    def change(trace, **tables):
        return Trace(dict(trace.tables) | {name: table_of(name, data) for name, data in tables.items()}, trace.meta)

    return change


@pytest.fixture(scope="session")
def with_memory(with_rows):
    """The same trace with memory samples (s, source, bytes) and a split of what the memory is made of."""

    def change(trace, samples, split=None):
        memory = [{"t_s": at, "source": source, "bytes": size} for at, source, size in samples]
        return Trace(with_rows(trace, memory=memory).tables, {**trace.meta, "engine": {"memory_split": split}})

    return change


@pytest.fixture(scope="session")
def find():
    """All values under a key of a spec, at any depth."""

    def look(node, key):
        if isinstance(node, dict):
            return [v for k, v in node.items() if k == key] + [hit for v in node.values() for hit in look(v, key)]
        return [hit for v in node for hit in look(v, key)] if isinstance(node, list) else []

    return look


@pytest.fixture(scope="session")
def trace(make_trace):
    """Four chats and a long prompt; the knobs change once. SYNTHETIC."""
    return make_trace(second_revision=True)


@pytest.fixture(scope="session")
def crowded(make_crowded):
    """Three classes in a KV pool that is too small for them, with what the model and the device do. SYNTHETIC."""
    return make_crowded(compute=True)


@pytest.fixture(scope="session")
def long_trace():
    """SYNTHETIC: one stream for long, every step 10 ms and 4 tokens, but one of 9 s, 5,000 tokens and 80 MiB."""
    step, token, now = [], [], 0.0
    for n in range(20_000):
        took = 9.0 if n == 12_345 else 0.01
        spike = n == 12_345
        step.append(
            {
                "step": n, "start_s": now, "end_s": now + took, "prefill_tokens": 5000 if spike else 0,
                "decode_tokens": 4, "running": 40 if spike else 4, "waiting": 0, "preempted": [],
                "kv_use": 0.99 if spike else 0.2, "activation_bytes": (80 if spike else 1) * 2**20,
            }
        )  # fmt: skip
        now += took
        token.append({"request": "a", "index": n, "n": 1, "client_s": now})
    tables = {"steps": step, "tokens": token}
    return Trace({name: table_of(name, tables.get(name, [])) for name in TABLES}, {"label": "live CPU"})
