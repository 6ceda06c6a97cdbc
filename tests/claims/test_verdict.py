"""A verdict is one line with its numbers, and HTML that is escaped."""

from workbench.claims.verdict import Verdict, on_gpu, origin_of

WHOLE = Verdict("C9", "A < B", "holds in part", "3 of 4 <b>.", "live CPU, x", "B is 2.", "1 + 1 = 2.", "a GPU.")


def test_one_line_names_outcome_numbers_origin_and_what_is_missing():
    assert str(WHOLE) == (
        "C9 holds in part: 3 of 4 <b>. [live CPU, x] · The article says: B is 2. · Arithmetic: 1 + 1 = 2. "
        "· Not tested here: a GPU."
    )
    assert repr(WHOLE) == str(WHOLE)


def test_what_is_empty_is_left_out():
    assert str(Verdict("C1", "t", "holds", "s.", "live GPU")) == "C1 holds: s. [live GPU]"


def test_html_is_escaped_and_says_the_outcome_in_words():
    html = WHOLE._repr_html_()
    assert "A &lt; B" in html
    assert "3 of 4 &lt;b&gt;." in html
    assert "◐ holds in part" in html
    assert "<b>" not in html


def test_origins_are_named_once_each(make):
    cpu, gpu = make([2000], [1.0]), make([2000], [1.0], label="live GPU", model="big")
    assert origin_of([cpu, cpu]) == "live CPU, tiny-long"
    assert origin_of([cpu, gpu]) == "live CPU, tiny-long and live GPU, big"
    assert (on_gpu([gpu]), on_gpu([cpu, gpu])) == (True, False)
