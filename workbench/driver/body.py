"""What is sent for one request: body and headers, in the dialect of the server that takes them."""

from __future__ import annotations

from typing import Any

from workbench.driver.messages import Item, Target


def body_of(item: Item, target: Target) -> dict[str, Any]:
    """The body of one streamed completion.

    ``ignore_eos`` holds the output to the workload's length; only vLLM and SGLang know it, and servers that check
    their fields would refuse it. ``priority`` goes to vLLM alone: there the lower number goes first, in SGLang the
    higher one.
    """
    stream_options: dict[str, Any] = {"include_usage": True}
    body: dict[str, Any] = {
        "model": target.model,
        "max_tokens": item.output_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": stream_options,
    }
    if target.chat:
        body["messages"] = [{"role": "user", "content": item.prompt}]
    else:
        body["prompt"] = item.prompt
    if target.dialect in ("vllm", "sglang"):
        body["ignore_eos"] = True  # output lengths are the workload's, not the model's
        stream_options["continuous_usage_stats"] = True
    if target.dialect == "vllm":
        body["priority"] = item.priority
    return body


def headers_of(item: Item, target: Target) -> dict[str, str]:
    """The headers of one request; a server without a key gets none."""
    headers = {
        "X-Request-Id": item.request,
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",  # a compressor would hold tokens back
    }
    if target.api_key:
        headers["Authorization"] = f"Bearer {target.api_key}"
    return headers
