"""Frozen configurations; the text of each field is its tooltip, its CLI help and its documentation.

``EngineConfig`` needs a restart for every change, ``Knobs`` act on the next scheduler step, ``Envelope``
is what a running engine allows its knobs, and ``SLO`` is the promise that stalls and goodput are held against.
"""

from __future__ import annotations

import difflib
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from workbench.errors import ConfigError, EnvelopeError, InputError

PolicyName = Literal["chunked", "monolithic", "decode_first", "priority", "qos", "target_gap"]
POLICIES: tuple[PolicyName, ...] = ("chunked", "monolithic", "decode_first", "priority", "qos", "target_gap")

M = TypeVar("M", bound=BaseModel)


class Frozen(BaseModel):
    """Base of all configurations: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; the copy is checked as if it was built anew."""
        return parse(type(self), self.model_dump(by_alias=True) | changes)


def _flag(name: str | None, unit: str = "") -> dict[str, Any]:
    return {"flag": name, "unit": unit}


class EngineConfig(Frozen):
    """Start-up fields of a live engine; each one maps to one flag of ``vllm serve``."""

    model: str = Field(
        "smollm2",
        description="Preset name (smollm2, tiny-long), a local folder, or a hub id.",
        json_schema_extra=_flag("--model"),
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="What the engine runs on; auto takes what the installed vLLM was built for.",
        json_schema_extra=_flag(None),
    )
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = Field(
        "bfloat16", description="Data type of weights and activations.", json_schema_extra=_flag("--dtype")
    )
    quantization: str | None = Field(
        None,
        description="Weight quantisation method, or none to follow the model's own config.",
        json_schema_extra=_flag("--quantization"),
    )
    max_model_len: int = Field(
        4096,
        ge=16,
        description="Longest prompt plus output of one request; also the largest chunk.",
        json_schema_extra=_flag("--max-model-len", "tokens"),
    )
    max_num_batched_tokens: int = Field(
        8192,
        ge=1,
        description="Token budget ceiling: most tokens in one step. The hot budget moves below it.",
        json_schema_extra=_flag("--max-num-batched-tokens", "tokens"),
    )
    max_num_seqs: int = Field(
        32,
        ge=1,
        description="Most requests running at once. The hot running cap moves below it.",
        json_schema_extra=_flag("--max-num-seqs", "requests"),
    )
    tensor_parallel_size: int = Field(
        1, ge=1, description="Devices that share each layer.", json_schema_extra=_flag("--tensor-parallel-size")
    )
    pipeline_parallel_size: int = Field(
        1,
        ge=1,
        description="Devices that share the stack of layers.",
        json_schema_extra=_flag("--pipeline-parallel-size"),
    )
    block_size: int | None = Field(
        None,
        description="Tokens in one KV block; none leaves it to vLLM (16 on CUDA, 128 on CPU).",
        json_schema_extra=_flag("--block-size", "tokens"),
    )
    gpu_memory_utilization: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Share of device memory for weights, activation and KV pool; not used when the KV pool has a size.",
        json_schema_extra=_flag("--gpu-memory-utilization"),
    )
    kv_cache_mib: int | None = Field(
        1024,
        ge=1,
        description="Size of the KV pool; none lets vLLM take what its memory share leaves.",
        json_schema_extra=_flag("--kv-cache-memory-bytes", "MiB"),
    )
    kv_offloading_gib: float | None = Field(
        None,
        gt=0,
        description="Host memory for swapped-out KV blocks (CUDA only).",
        json_schema_extra=_flag("--kv-offloading-size", "GiB"),
    )
    enable_prefix_caching: bool = Field(
        False,
        description="Keep the KV blocks of finished prompts for later prompts with the same start.",
        json_schema_extra=_flag("--enable-prefix-caching"),
    )
    attention_backend: str | None = Field(
        None,
        description="Attention kernels (FLASH_ATTN, FLASHINFER, ...); none leaves it to vLLM.",
        json_schema_extra=_flag("--attention-backend"),
    )
    async_scheduling: bool | None = Field(
        None,
        description="Schedule the next step while one runs (two in flight); none leaves it to vLLM, off on CPU.",
        json_schema_extra=_flag("--async-scheduling"),
    )
    enforce_eager: bool = Field(
        True,
        description="Skip compilation and CUDA graphs: a CPU start takes a quarter of the time, a step a little more.",
        json_schema_extra=_flag("--enforce-eager"),
    )
    scheduling_policy: Literal["fcfs", "priority"] = Field(
        "fcfs", description="Order of vLLM's own waiting queue.", json_schema_extra=_flag("--scheduling-policy")
    )
    distributed_executor_backend: Literal["mp", "ray"] | None = Field(
        None,
        description="How workers are started; ray spreads one engine over several machines.",
        json_schema_extra=_flag("--distributed-executor-backend"),
    )
    port: int | None = Field(
        None, ge=1, le=65535, description="Port on 127.0.0.1; none takes a free one.", json_schema_extra=_flag("--port")
    )
    start_timeout_s: float = Field(
        600.0, gt=0, description="How long a start may take.", json_schema_extra=_flag(None, "s")
    )
    extra_args: tuple[str, ...] = Field(
        (), description="More flags of vllm serve, passed through as they are.", json_schema_extra=_flag(None)
    )

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError(
                "max_num_batched_tokens and max_num_seqs",
                f"{self.max_num_batched_tokens} < {self.max_num_seqs}",
                "a budget of at least one token per sequence",
                f"raise max_num_batched_tokens to {self.max_num_seqs} or lower max_num_seqs",
            )
        return self

    @property
    def envelope(self) -> Envelope:
        """What the hot knobs of an engine started with this configuration may be set to."""
        return Envelope(
            max_budget=self.max_num_batched_tokens, max_chunk=self.max_model_len, max_running=self.max_num_seqs
        )


class Envelope(Frozen):
    """Bounds of the hot knobs, fixed when the engine starts."""

    max_budget: int = Field(ge=1, description="Start-up max_num_batched_tokens.")
    max_chunk: int = Field(ge=1, description="Start-up max_model_len.")
    max_running: int = Field(ge=1, description="Start-up max_num_seqs.")
    policies: tuple[PolicyName, ...] = Field(POLICIES, description="Policies that the engine knows.")

    @property
    def defaults(self) -> Knobs:
        """The knobs that a freshly started engine has: everything at its ceiling, stock chunked prefill."""
        return Knobs(budget=self.max_budget, chunk=0, max_running=self.max_running)

    def check(self, knobs: Knobs) -> Knobs:
        """Return ``knobs`` if they fit.

        Raises:
            EnvelopeError: a knob is above its bound, or two knobs clash; the message carries the envelope.
        """
        rules = (
            ("budget", knobs.budget, self.max_budget, "the start-up max_num_batched_tokens"),
            ("chunk", knobs.chunk, self.max_chunk, "the start-up max_model_len"),
            ("max_running", knobs.max_running, self.max_running, "the start-up max_num_seqs"),
        )
        for name, value, bound, source in rules:
            if value > bound:
                raise EnvelopeError(
                    name,
                    value,
                    f"at most {bound} ({source})",
                    f"choose {bound} or less, or restart with a larger ceiling",
                )
        if knobs.policy not in self.policies:
            raise EnvelopeError("policy", knobs.policy, f"one of {', '.join(self.policies)}", "choose one of these")
        if knobs.budget < knobs.max_running:
            raise EnvelopeError(
                "budget and max_running",
                f"{knobs.budget} < {knobs.max_running}",
                "a budget of at least one token per running request",
                f"raise budget to {knobs.max_running} or lower max_running",
            )
        if knobs.policy == "monolithic" and knobs.budget < self.max_chunk:
            raise EnvelopeError(
                "policy and budget",
                f"monolithic with budget {knobs.budget}",
                f"a budget of at least {self.max_chunk} (max_model_len), since a longer prompt would wait for ever",
                "raise budget, restart with a smaller max_model_len, or use chunked",
            )
        return knobs


class Knobs(Frozen):
    """Hot knobs: a change acts on the next scheduler step of the running engine."""

    budget: int = Field(
        ge=1,
        description="Token budget: most tokens in one step.",
        json_schema_extra={"unit": "tokens", "label": "budget"},
    )
    chunk: int = Field(
        0,
        ge=0,
        description="Most prefill tokens of one request in one step while other requests are there; 0 is off.",
        json_schema_extra={"unit": "tokens", "label": "chunk"},
    )
    max_running: int = Field(
        ge=1,
        description="Most requests running at once.",
        json_schema_extra={"unit": "requests", "label": "running cap"},
    )
    policy: PolicyName = Field(
        "chunked",
        description="chunked: stock chunked prefill. monolithic: whole prompts only. "
        "decode_first: prefill waits while any decode runs. priority: vLLM's own priority order. "
        "qos: classes 0 VIP, 1 normal, 2 offline; a VIP overtakes and is never preempted. "
        "target_gap: sizes each step's prefill so that the predicted step stays under a target.",
        json_schema_extra={"label": "policy"},
    )
    prefill_every: int = Field(
        0,
        ge=0,
        description="decode_first only: let prefill in on every N-th step; 0 never does while a decode runs.",
        json_schema_extra={"unit": "steps", "label": "prefill every"},
    )
    target_gap_ms: float = Field(
        200.0,
        gt=0,
        description="target_gap only: longest predicted step.",
        json_schema_extra={"unit": "ms", "label": "target gap"},
    )
    aging_s: float = Field(
        30.0,
        ge=0,
        description="qos only: an offline request that has waited this long counts as normal; 0 never does.",
        json_schema_extra={"unit": "s", "label": "aging"},
    )
    watermark: float = Field(
        0.0,
        ge=0,
        le=0.5,
        description="Share of KV blocks kept free when a waiting request is let in, for those that run to grow into.",
        json_schema_extra={"label": "watermark"},
    )
    reserve_full: bool = Field(
        True,
        description="Let a request in only when KV blocks for its whole prompt are free; off lets it in for its first "
        "chunk, and the pool may thrash.",
        json_schema_extra={"label": "reserve whole prompt"},
    )
    prefix_cache: bool = Field(
        True,
        description="New requests look up the prefix cache; needs an engine started with prefix caching.",
        json_schema_extra={"label": "prefix cache"},
    )


class SLO(Frozen):
    """The latency promise that goodput and stalls are held against."""

    ttft_ms: float = Field(2000.0, gt=0, description="Longest time to first token.", json_schema_extra={"unit": "ms"})
    gap_ms: float = Field(
        200.0, gt=0, description="Longest token gap; a gap above it is a stall.", json_schema_extra={"unit": "ms"}
    )
    gap_percentile: float = Field(
        100.0,
        gt=0,
        le=100,
        description="Which percentile of a request's gaps must meet gap_ms; 100 is the worst gap.",
        json_schema_extra={"unit": "%"},
    )


def parse(model: type[M], data: Any, *, where: str = "", error: type[InputError] = ConfigError) -> M:
    """Build a configuration from plain data.

    Args:
        model: the configuration class.
        data: a mapping, such as a loaded YAML document.
        where: prefix of the field's name in an error, such as a file's name.
        error: the class of error to raise.

    Raises:
        InputError: one line that names the first bad field, its value, what was expected and what to do.
    """
    try:
        return model.model_validate(data)
    except ValidationError as bad:
        raise _explain(model, bad, where, error) from None
    except InputError as clash:  # of a rule about several fields
        what = f"{where}: {clash.what}" if where else clash.what
        raise error(what, clash.value, clash.expected, clash.fix) from None


def _explain(model: type[BaseModel], bad: ValidationError, where: str, error: type[InputError]) -> InputError:
    # A name that is not known explains one that is missing, so it goes first.
    first = min(bad.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    path = ".".join(str(part) for part in first["loc"]) or model.__name__
    what = f"{where}: {path}" if where else path
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        known = sorted(_fields_at(model, first["loc"][:-1]))
        near = difflib.get_close_matches(name, known, 1)
        fix = f"did you mean {near[0]}?" if near else "remove it"
        return error(what, name, f"a known field ({', '.join(known)})", fix)
    if first["type"] == "missing":
        return error(what, "nothing", "a value", f"add {first['loc'][-1]}")
    expected = first["msg"].replace("Input should be ", "").replace("Value error, ", "")
    return error(what, first["input"], expected, "correct it")


def _fields_at(model: type[BaseModel], path: tuple[int | str, ...]) -> set[str]:
    """Names of the fields of the model that ``path`` leads to, as a file would spell them."""
    here: Any = model.model_json_schema(by_alias=True)
    root = here
    for part in path:
        here = _resolve(root, here)
        if isinstance(part, int):
            here = here.get("items", {})
        elif part in here.get("properties", {}):
            here = here["properties"][part]
        else:  # a tag of a discriminated union
            options = here.get("oneOf") or here.get("anyOf") or []
            named = [_resolve(root, o) for o in options]
            here = next((o for o in named if o.get("properties", {}).get("kind", {}).get("const") == part), here)
    return set(_resolve(root, here).get("properties", {}))


def _resolve(root: Any, node: Any) -> Any:
    """Follow ``$ref`` and single-member ``allOf``/``anyOf`` down to a schema with properties."""
    while True:
        if "$ref" in node:
            node = root["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        elif len([o for o in node.get("anyOf", []) if o.get("type") != "null"]) == 1:
            node = next(o for o in node["anyOf"] if o.get("type") != "null")
        else:
            return node
