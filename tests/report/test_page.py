"""The headings of a report's charts: a drawing is as wide as its widest line, and is shrunk to fit the page."""

import pytest

from workbench.report.page import wrap_heading

SOURCE = "share of the peak, 7,916 TFLOP/s: NVIDIA H100 Tensor Core GPU datasheet, column H100 SXM, times 8 devices"


@pytest.mark.parametrize(
    ("subtitle", "lines"),
    [
        ("a · b", ["a · b"]),
        (["live CPU", "P50 32"], ["live CPU", "P50 32"]),
        (
            f"simulated · {SOURCE}",
            [
                "simulated",
                "share of the peak, 7,916 TFLOP/s: NVIDIA H100 Tensor Core GPU",
                "datasheet, column H100 SXM, times 8 devices",
            ],
        ),
        (SOURCE.replace(" ", "-"), [SOURCE.replace(" ", "-")]),  # one word is not cut
    ],
)
def test_lines_are_no_wider_than_the_plot(subtitle, lines):
    spec = {"width": 340, "title": {"text": "MFU", "subtitle": subtitle}}  # 64 letters
    wrap_heading(spec)
    assert spec["title"]["subtitle"] == lines
