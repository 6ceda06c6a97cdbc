"""Step shapes, against sums by hand."""

import subprocess
import sys

import pytest

from workbench.engine.probe.wire import Part
from workbench.errors import InputError
from workbench.simulate.steptime import KINDS, Chunk, StepShape, StepTime, from_spec
from workbench.simulate.steptime.roofline import Roofline


def part(tokens, context, prefill):
    return Part(request="r", tokens=tokens, context=context, prefill=prefill)


def test_a_shape_sums_decodes_and_keeps_prompts_apart():
    shape = StepShape.of([part(1, 100, False), part(3, 10, True), part(1, 50, False), part(2, 0, True)])
    # 3 tokens over 10: 11 + 12 + 13 = 36 pairs; 2 over none: 1 + 2 = 3
    assert shape == StepShape(5, 39, 2, 150, 2, (Chunk(3, 10), Chunk(2, 0)))
    assert (shape.tokens, shape.requests, shape.kind) == (7, 4, "mixed")


def test_requests_that_decode_several_tokens_look_at_their_context_with_each():
    shape = StepShape.of([part(3, 100, False), part(1, 7, False)])
    assert (shape.decodes, shape.decode_context) == (4, 307)


def test_kinds():
    assert StepShape.of([part(1, 5, False)]).kind == "decode"
    assert StepShape.of([part(4, 0, True)]).kind == "prefill"
    assert StepShape.made([(4, 0)], decodes=2, context=9) == StepShape(4, 10, 2, 18, 1, (Chunk(4, 0),))
    assert {StepShape.made([(4, 0)], 1, 1).kind, "decode", "prefill"} == set(KINDS)


def test_models_follow_the_protocol():
    for name in ("name", "calibrated", "seconds", "interval", "outside", "band", "describe", "spec"):
        assert hasattr(Roofline, name)
        assert name in dir(StepTime)


def test_an_unknown_model_is_named():
    with pytest.raises(InputError, match="step-time model: got 'crystal ball', expected one of calibrated, roofline"):
        from_spec({"kind": "crystal ball"})


def test_no_vllm_and_no_torch_are_imported():
    modules = "steptime.roofline, steptime.calibrated, steptime.tables, steptime.varied, memory, floors, calibration"
    code = "; ".join(f"import workbench.simulate.{one}" for one in modules.split(", "))
    code += "; import sys; print(sorted({'vllm', 'torch', 'aiconfigurator_core'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
