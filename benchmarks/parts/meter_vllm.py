"""``vllm bench serve`` against a server: what it found, and the processor time that its streams took.

Run as a module it is that benchmark, with one clock read when the first request begins and when each ends: importing
vLLM takes many times longer than the streams, and must not be counted with them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.parts.meter_rivals import Load, Said, call, tokenizer
from benchmarks.parts.shim import make_shim
from workbench.meter.stub import Stub

_CPU = "METER_CPU"  # the file for the processor time


def play(stub: Stub, load: Load, folder: Path) -> Said:
    """One run against the stub."""
    return serve(f"http://127.0.0.1:{stub.port}", "stub", load, folder, input_tokens=8)


def serve(
    url: str,
    model: str,
    load: Load,
    folder: Path,
    *,
    input_tokens: int,
    more: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Said:
    """One run of it against any server; ``cpu_us_an_event`` is among what it said."""
    shim = make_shim(folder / "shim")
    argv = [sys.executable, "-m", "benchmarks.parts.meter_vllm", "--backend", "openai", "--base-url", url]
    argv += ["--model", model, "--tokenizer", tokenizer(), "--dataset-name", "random", "--ignore-eos", "--seed", "1"]
    argv += ["--random-input-len", str(input_tokens), "--random-output-len", str(load.tokens)]
    argv += ["--num-prompts", str(load.streams), "--num-warmups", "0", "--disable-tqdm", "--save-result"]
    argv += ["--save-detailed", "--result-dir", str(folder), "--result-filename", "result.json", *more]
    here = os.pathsep.join(filter(None, [str(Path.cwd()), shim.env["PYTHONPATH"]]))
    call(argv, folder / "log", {**shim.env, "PYTHONPATH": here, _CPU: str(folder / "cpu.json"), **(env or {})})
    found = json.loads((folder / "result.json").read_text())
    events = sum(len(one) + 1 for one in found["itls"])
    cpu_s = json.loads((folder / "cpu.json").read_text())
    return Said(
        [1e3 * one for one in found["ttfts"]],
        [1e3 * gap for one in found["itls"] for gap in one],
        found["total_output_tokens"],
        {"cpu_us_an_event": 1e6 * cpu_s / events, "failed": found["failed"]},
    )


def main() -> None:
    """The benchmark itself, in a process of its own."""
    from vllm.benchmarks import serve as bench  # only here: it takes a minute
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    request, began = bench.ASYNC_REQUEST_FUNCS["openai"], []

    async def timed(*given: Any, **named: Any) -> Any:
        began.append(time.process_time())
        try:
            return await request(*given, **named)
        finally:
            ended.append(time.process_time())

    ended: list[float] = []
    bench.ASYNC_REQUEST_FUNCS["openai"] = timed
    parser = FlexibleArgumentParser()
    bench.add_cli_args(parser)
    asyncio.run(bench.main_async(parser.parse_args()))
    Path(os.environ[_CPU]).write_text(json.dumps(ended[-1] - began[0]))


if __name__ == "__main__":
    main()
