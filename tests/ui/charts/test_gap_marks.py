"""Marks of the gap chart that have to make room for each other."""

from workbench.ui.charts.gap_marks import readable


def test_names_of_prefills_never_lie_on_each_other():
    name = "doc-0: 2,048 tokens in 1 step"  # 157 of 720 px: 6.5 s of 30
    assert readable([(1.0, 3.0, name), (8.0, 10.0, name)], 0.0, 30.0) == {0: 0, 1: 0}
    assert readable([(1.0, 3.0, name), (4.0, 10.0, name)], 0.0, 30.0) == {0: 1, 1: 0}, "the longer span is below"
    assert readable([(16.0, 18.0, name), (20.0, 28.0, name)], 0.0, 30.0) == {0: 0, 1: 0}, "late names end there"
    assert readable([(1.0, 3.0, name), (8.0, 10.0, name)], 0.0, 30.0, 400) == {0: 0, 1: 1}, "11 s of 30 in a small plot"
    three = [(1.0, 4.0, name), (2.0, 4.0, name), (3.0, 4.0, name)]
    assert readable(three, 0.0, 30.0) == {0: 0, 1: 1}, "the third has no room"
    assert len(readable([(float(n), n + 0.1, "x") for n in range(30)], 0.0, 30.0)) == 8
    assert readable([], 0.0, 30.0) == {}
