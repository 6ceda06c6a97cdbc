"""How much of a live run lies beyond what a calibration was fitted to: there its prices are extrapolated."""

from __future__ import annotations

import numpy as np

from workbench.simulate.calibration import Calibration
from workbench.simulate.measured import measured_steps
from workbench.simulate.steptime.base import StepShape
from workbench.simulate.steptime.calibrated import Calibrated
from workbench.trace import Trace


def extrapolated(trace: Trace, calibration: Calibration) -> str:
    """Which share of a run's steps no measured step was like, with one of them; empty where there is none.

    Args:
        trace: a live run with step records.
        calibration: that its steps are held against.
    """
    model = Calibrated(calibration)
    design, _, _ = measured_steps(trace)
    columns = design[:, 1:6].astype(np.int64).tolist()  # in the order of prices.FEATURES
    shapes = [StepShape(tokens, pairs, decodes, seen, prompts) for tokens, pairs, decodes, seen, prompts in columns]
    found = [said for said in map(model.outside, shapes) if said]
    if not found:
        return ""
    return f"{len(found) / len(shapes):.0%} of the steps are beyond those that were calibrated, such as {found[-1]}"
