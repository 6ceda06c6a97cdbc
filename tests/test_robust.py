"""Huber's weights against numbers by hand."""

import numpy as np
import pytest

from workbench.robust import huber_weights


def test_usual_residuals_count_whole_and_far_ones_by_their_distance():
    # The median of |-1, 1, -1, 1, 100| is 1, so a standard deviation is 1.4826, and 1.345 of these are 1.99409...
    weights = huber_weights(np.array([-1.0, 1.0, -1.0, 1.0, 100.0]))
    assert weights == pytest.approx([1, 1, 1, 1, 1.345 * 1.4826 / 100])


def test_an_exact_fit_needs_no_further_round():
    assert huber_weights(np.zeros(5)) is None
    assert huber_weights(np.array([0.0, 0.0, 0.0, 7.0])) is None  # most of it is exact
