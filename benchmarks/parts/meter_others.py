"""GuideLLM and AIPerf against a server, each from an environment of its own, and what their result files say."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.parts.meter_rivals import Load, Said, call, environment, tokenizer
from workbench.meter.stub import Stub

GUIDELLM, AIPERF = "0.8.1", "0.13.0"


def guidellm(stub: Stub, load: Load, folder: Path) -> Said:
    """It keeps one mean of the gaps for each request."""
    command = environment("guidellm", GUIDELLM, "torch==2.13.0+cpu") / "guidellm"  # else it brings CUDA's
    target = f"kind=openai_http,target=http://127.0.0.1:{stub.port},model=stub,request_format=/v1/completions"
    argv = [str(command), "run", "--backend", f"{target},http2=false"]
    argv += ["--profile", f"kind=concurrent,streams={load.streams}"]
    argv += ["--constraint", f"kind=max_requests,count={load.streams}", "--disable-console"]
    argv += ["--data", f"kind=synthetic_text,prompt_tokens=8,output_tokens={load.tokens}"]
    argv += ["--tokenizer", f"kind=huggingface_auto,model={tokenizer()}"]
    argv += ["--output", f"kind=json,path={folder / 'result.json'}"]
    call(argv, folder / "log")
    (bench,) = json.loads((folder / "result.json").read_text())["benchmarks"]
    rows = bench["requests"]["successful"]
    return Said(
        [row["time_to_first_token_ms"] for row in rows],
        [row["inter_token_latency_ms"] for row in rows],
        sum(row["output_tokens"] for row in rows),
        {"failed": load.streams - len(rows)},
    )


def aiperf(stub: Stub, load: Load, folder: Path) -> Said:
    """It has both: a mean of the gaps for each request (ITL), and the gaps between chunks (ICL), which are taken."""
    command = environment("aiperf", AIPERF) / "aiperf"
    argv = [str(command), "profile", "--model", "stub", "--url", f"http://127.0.0.1:{stub.port}"]
    argv += ["--endpoint-type", "completions", "--streaming", "--concurrency", str(load.streams)]
    argv += ["--request-count", str(load.streams), "--synthetic-input-tokens-mean", "8"]
    argv += ["--output-tokens-mean", str(load.tokens), "--tokenizer", tokenizer(), "--ui", "none"]
    argv += ["--artifact-dir", str(folder / "out"), "--use-server-token-count"]
    # Offline, whatever the value, it takes the tokenizer's folder for a hub id.
    call(argv, folder / "log", {"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": ""})
    (path,) = (folder / "out").rglob("profile_export.jsonl")
    rows = [json.loads(line)["metrics"] for line in path.read_text().splitlines()]
    rows = [row for row in rows if "time_to_first_token" in row]
    return Said(
        [row["time_to_first_token"]["value"] for row in rows],
        [gap for row in rows for gap in row.get("inter_chunk_latency", {}).get("value", [])],
        sum(int(row["output_sequence_length"]["value"]) for row in rows),
        {"failed": load.streams - len(rows)},
    )
