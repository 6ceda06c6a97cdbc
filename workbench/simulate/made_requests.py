"""Requests of a job as vLLM's scheduler takes them, and which of them can never be computed."""

from __future__ import annotations

import numpy as np
from vllm.sampling_params import SamplingParams
from vllm.v1.request import Request

from workbench.simulate.bare import block_hasher
from workbench.simulate.job import Ask, SimJob


class RequestMaker:
    """Makes requests; called with one that is asked for.

    Args:
        job: that they belong to.
    """

    def __init__(self, job: SimJob) -> None:
        self._hasher = block_hasher(job.block_size) if job.prefix_cache else None
        self._parameters: dict[int, SamplingParams] = {}

    def __call__(self, ask: Ask) -> Request:
        """The request; where its prompt has no tokens, all are 0."""
        ids = np.frombuffer(ask.prompt, "<i4").tolist() if ask.prompt else [0] * ask.prompt_tokens
        parameters = self._parameters.get(ask.output_tokens)
        if parameters is None:  # 30 µs each, and vLLM never changes them
            parameters = SamplingParams(max_tokens=ask.output_tokens, ignore_eos=True)
            self._parameters[ask.output_tokens] = parameters
        return Request(
            request_id=ask.request,
            prompt_token_ids=ids,
            sampling_params=parameters,
            pooling_params=None,
            arrival_time=ask.arrival_time,
            priority=ask.priority,
            block_hasher=self._hasher,
        )


def refusal(ask: Ask, job: SimJob) -> str:
    """Why a request can never be computed; empty when it can."""
    tokens = ask.prompt_tokens + ask.output_tokens
    if tokens > job.max_model_len:
        return f"too long: {ask.prompt_tokens} + {ask.output_tokens} tokens, max_model_len is {job.max_model_len}"
    needed, there = -(-(tokens - 1) // job.block_size), job.blocks - 1  # the last token's KV is never written
    if needed > there:
        return f"oom: {tokens} tokens need {needed} KV blocks of {job.block_size}, the pool has {there}"
    return ""
