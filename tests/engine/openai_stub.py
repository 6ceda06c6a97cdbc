"""A stub of somebody else's server for tests of attaching: vLLM's, SGLang's or any other's pages, over HTTP or TLS.

``python openai_stub.py SETTINGS_JSON`` prints its port and ends when stdin closes. Settings: ``kind`` (vllm, sglang or
plain), ``key``, ``prefix`` (base path before /v1), ``per_word`` (tokens it counts for a word), ``usage``, ``chat``,
``cert`` and ``keyfile``, ``models`` (a status or a text in place of the list), ``redirect`` (where /v1/models points),
``metrics``, ``die_after`` (requests after which it ends at once), ``sick_after`` (tokens after which a stream ends with
an error, and /health with 503, as vLLM's do for the seconds between its engine's end and its own), ``port`` (to
listen on again), ``streams`` (a status in place of any stream).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import sys

from aiohttp import web

GAP_S = 0.01


class Stub:
    def __init__(self, settings):
        self.settings = {"kind": "vllm", "per_word": 1.0, "usage": True, "metrics": True} | settings
        self.sick = False
        self.seen, self.prompt_tokens, self.output_tokens, self.ended = [], 0, 0, 0

    def refused(self, request):
        key = self.settings.get("key")
        if key and request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"error": {"message": "Unauthorized"}}, status=401)
        return None

    async def models(self, request):
        if "redirect" in self.settings:
            raise web.HTTPTemporaryRedirect(self.settings["redirect"])
        if refused := self.refused(request):
            return refused
        strange = self.settings.get("models")
        if isinstance(strange, int):
            return web.Response(status=strange, text="no such page")
        if isinstance(strange, str):
            return web.Response(text=strange, content_type="text/html")
        kind = self.settings["kind"]
        card = {
            "id": "served",
            "object": "model",
            "owned_by": {"plain": "acme"}.get(kind, kind),
            "root": "/no/such/folder",
        }
        if kind != "plain":
            card["max_model_len"] = 4096
        return web.json_response({"object": "list", "data": [card, {"id": "second", "object": "model"}]})

    async def health(self, request):
        return web.Response(status=503 if self.sick else 200)

    async def version(self, request):
        return web.json_response({"version": "9.9.9"})

    async def server_info(self, request):
        info = {"version": "0.5.23", "chunked_prefill_size": 2048, "api_key": "do-not-keep", "schedule_policy": "lpm"}
        return web.json_response(info)

    async def metrics(self, request):
        prefix = self.settings["kind"]
        lines = [
            f"# TYPE {prefix}:prompt_tokens_total counter",
            f'{prefix}:prompt_tokens_total{{model_name="served"}} {1000 + self.prompt_tokens}',
            f'{prefix}:generation_tokens_total{{model_name="served"}} {500 + self.output_tokens}.0',
            f'{prefix}:time_to_first_token_seconds_bucket{{le="0.1",model_name="served"}} {7 + self.ended}',
            f'{prefix}:time_to_first_token_seconds_bucket{{le="+Inf",model_name="served"}} {7 + self.ended}',
            f'{prefix}:inter_token_latency_seconds_bucket{{le="0.01",model_name="served"}} {self.output_tokens // 2}',
            f'{prefix}:inter_token_latency_seconds_bucket{{le="0.05",model_name="served"}} {self.output_tokens}',
            f'{prefix}:inter_token_latency_seconds_bucket{{le="+Inf",model_name="served"}} {self.output_tokens}',
            "process_resident_memory_bytes 1.5e8",
        ]
        lines += (
            [
                'vllm:num_requests_running{model_name="served"} 2',
                'vllm:kv_cache_usage_perc{model_name="served"} 0.25',
            ]
            if prefix == "vllm"
            else ["sglang:num_running_reqs 2", "sglang:token_usage 0.25"]
        )
        return web.Response(text="\n".join(lines) + "\n")

    def count(self, prompt):
        return (
            len(prompt)
            if isinstance(prompt, list)
            else round(len(re.findall(r"\w+|[^\w\s]", prompt)) * self.settings["per_word"])
        )

    async def completions(self, request):
        return await self.answer(request, chat=False)

    async def chats(self, request):
        return await self.answer(request, chat=True)

    async def answer(self, request, chat):
        if refused := self.refused(request):
            return refused
        if chat != bool(self.settings.get("chat")):
            return web.Response(status=404, text="not here")
        body = await request.json()
        self.seen.append({"body": body, "headers": dict(request.headers)})
        if len(self.seen) > self.settings.get("die_after", 1 << 30):
            os._exit(9)
        prompt = body["messages"][0]["content"] if chat else body["prompt"]
        tokens, n = self.count(prompt), body["max_tokens"]
        usage = {"prompt_tokens": tokens, "completion_tokens": n, "total_tokens": tokens + n}
        if not body.get("stream"):
            return web.json_response(
                {
                    "choices": [{"text": "x", "message": {"content": "x"}}],
                    "usage": usage if self.settings["usage"] else None,
                }
            )
        if "streams" in self.settings:
            return web.json_response({"error": {"message": "no streams here"}}, status=self.settings["streams"])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self.prompt_tokens += tokens
        if chat:
            await response.write(_event({"delta": {"role": "assistant", "content": ""}}))
        for i in range(n):
            await asyncio.sleep(GAP_S)
            if i == self.settings.get("sick_after"):
                self.sick = True
                await response.write(b'data: {"error": {"message": "EngineCore encountered an issue."}}\n\n')
                return response
            last = "length" if i == n - 1 else None
            self.output_tokens += 1
            await response.write(
                _event(
                    {"delta": {"content": "x"}, "finish_reason": last} if chat else {"text": "x", "finish_reason": last}
                )
            )
        if self.settings["usage"]:
            await response.write(b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        self.ended += 1
        return response

    async def told(self, request):
        return web.json_response(self.seen)


def _event(choice):
    return b"data: " + json.dumps({"choices": [{"index": 0, **choice}]}).encode() + b"\n\n"


async def main():
    settings = json.loads(sys.argv[1])
    stub, app, prefix = Stub(settings), web.Application(), settings.get("prefix", "")
    app.router.add_get(f"{prefix}/v1/models", stub.models)
    app.router.add_post(f"{prefix}/v1/completions", stub.completions)
    app.router.add_post(f"{prefix}/v1/chat/completions", stub.chats)
    app.router.add_get(f"{prefix}/health", stub.health)
    app.router.add_get("/told", stub.told)
    if stub.settings["metrics"]:
        app.router.add_get(f"{prefix}/metrics", stub.metrics)
    page = {"vllm": "/version", "sglang": "/server_info"}.get(stub.settings["kind"])
    if page:
        app.router.add_get(f"{prefix}{page}", stub.version if page == "/version" else stub.server_info)
    context = None
    if "cert" in settings:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(settings["cert"], settings["keyfile"])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", settings.get("port", 0), ssl_context=context).start()
    print(runner.addresses[0][1], flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
