"""Frames: what goes in comes out, and a torn one is the end."""

import io

from jobs import ask, job

from workbench.simulate.job import Ended, Swap, frame, order_of, read_frame, report_of


def test_an_order_and_a_report_come_out_as_they_went_in():
    one = job([ask("a", tokens=b"\x01\x00\x00\x00")], swap=Swap(3, 0.1, 0.2, overlap=True), concurrency={"chat": 2})
    stream = io.BytesIO(frame(one) + frame(Ended(3, 1.5, faults=["x"], facts={"steps": 2})))
    assert order_of(read_frame(stream.read)) == one
    assert report_of(read_frame(stream.read)) == Ended(3, 1.5, faults=["x"], facts={"steps": 2})
    assert read_frame(stream.read) is None


def test_a_torn_frame_is_the_end():
    data = frame(Ended(3, 1.5))
    for size in (0, 2, 4, len(data) - 1):
        assert read_frame(io.BytesIO(data[:size]).read) is None
    assert read_frame(io.BytesIO(b"\xff\xff\xff\xff" + data).read) is None, "no frame is that long"
