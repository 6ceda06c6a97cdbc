"""The articles' claims, C1 to C16: what each says, what it needs to be judged, and how it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.claims import judging
from workbench.claims.evidence import Evidence
from workbench.claims.judging import Judged
from workbench.i18n import marked, phrase


@dataclass(frozen=True)
class Claim:
    """One of the articles' claims.

    Attributes:
        id: C1 to C16.
        text: what it says, in a sentence.
        needs: what it cannot be judged without.
        judge: does it; raises InputError where the evidence does not have that.
    """

    id: str
    text: str
    needs: str
    judge: Callable[[Evidence], Judged]


def _prompt(what: str) -> str:
    return phrase("runs of claims_prompt, or others with {what}", what=phrase(what))


_VLLM = phrase("vLLM itself, to be asked what it resolves a command line to")

CLAIMS = (
    Claim(
        "C1",
        "A monolithic 32K prefill holds the GPU for seconds and freezes every running stream",
        _prompt("a long prompt in one step beside streams"),
        judging.c1,
    ),
    Claim("C2", "A prompt of L tokens becomes ⌈L/C⌉ steps", _prompt("a long prompt in chunks"), judging.c2),
    Claim(
        "C3",
        "Chunked, the stall goes away: token gaps stay flat while the long prompt's TTFT grows step by step",
        _prompt("one load in one step and in chunks"),
        judging.c3,
    ),
    Claim(
        "C4",
        "The activation memory peak falls by 80 % with 1K chunks against one 32K prefill",
        _prompt("one prompt in one step and in chunks, with measured peaks"),
        judging.c4,
    ),
    Claim(
        "C5",
        "Temporary memory goes with C² instead of L²",
        _prompt("a prompt in equal chunks and other step sizes, with measured peaks"),
        judging.c5,
    ),
    Claim("C6", marked("--enable-chunked-prefill must be set by hand"), _VLLM, judging.c6),
    Claim(
        "C7",
        "Budget 512 is too small, 8,192 too large, 2,048 to 4,096 golden; chunk 128 is too small",
        _prompt("one load under each of these budgets and the chunk"),
        judging.c7,
    ),
    Claim(
        "C8",
        "The reference command: TP 4, memory 0.90, length 32,768, budget 2,048, 128 sequences, blocks of 16",
        _VLLM,
        judging.c8,
    ),
    Claim(
        "C9",
        "Decode alone leaves compute under 15 % used; prefill riding along raises MFU",
        _prompt("steps of decodes alone and mixed ones, and a known peak"),
        judging.c9,
    ),
    Claim(
        "C10",
        "When KV memory passes 95 % the scheduler must preempt: recompute frees at once but costs prefill again",
        phrase("runs of claims_pool, or others in which requests were preempted for KV blocks"),
        judging.c10,
    ),
    Claim(
        "C11",
        "Under 2K tokens recompute, over 16K swap",
        phrase("a run in which prompts were prefilled in four steps or more"),
        judging.c11,
    ),
    Claim(
        "C12",
        "VIP (0) is never preempted, offline (2) is the cushion; victims: lowest class, least work done, then the head "
        "of the queue",
        phrase("runs of claims_pool, or others under policy qos with VIPs and preemptions"),
        judging.c12,
    ),
    Claim(
        "C13",
        "Order inside a step: decodes first (1 token each), then preempt if blocks run out, then prefill chunks",
        phrase("a run with prefill beside decodes, and its step records"),
        judging.c13,
    ),
    Claim(
        "C14",
        "8 x H100, Llama-3.1-70B, 100 chats of 1K and 10 documents of 64K: chunked with priority has the gaps of "
        "decode-first, nearly FCFS's TTFT and twice its MFU",
        phrase(
            "a simulation of articles_c14 with its band (--simulated, for which vLLM's scheduler must be installed)"
        ),
        judging.c14,
    ),
    Claim(
        "C15",
        "Look up the longest cached prefix first and chunk only what missed",
        phrase("runs of claims_prefix, or others of one load of shared prefixes without the cache and with it"),
        judging.c15,
    ),
    Claim(
        "C16",
        "With chunking the OOM rate goes from 12.5 % to 0",
        phrase("a simulation of articles_c14 (--simulated, for which vLLM's scheduler must be installed)"),
        judging.c16,
    ),
)
