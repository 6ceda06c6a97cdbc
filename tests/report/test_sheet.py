"""The verdict sheet as a page: whole, without scripts and addresses, and true to its data."""

import pytest

from workbench.claims.sheet import Row, Sheet, check_claims
from workbench.claims.table import CLAIMS
from workbench.errors import RunNotFoundError
from workbench.report.parsed import outside
from workbench.report.sheet import verify_sheet, write_sheet
from workbench.report.verify import is_sheet


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A sheet of two claims from data/runs, and one that was not judged."""
    every = check_claims(["recorded"])
    odd = Row(CLAIMS[6], None, why_not="needs <script>alert(1)</script> & runs")
    path = tmp_path_factory.mktemp("sheet") / "claims.html"
    return write_sheet(path, Sheet([every["C2"], every["C10"], odd], trouble=["a <b>line</b>"]))


def test_it_is_whole_and_asks_for_nothing(page):
    text = page.read_text()
    assert verify_sheet(page) == []
    assert outside(text) == []
    assert is_sheet(page)
    assert text.count("<svg") == 2
    assert "36 preemptions (vip 23, offline 13)" in text
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert" not in text
    assert "<b>line" not in text


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (">holds in part<", ">holds<", "C2: the table is not what the data say"),
        ("36 preemptions", "37 preemptions", "C10: the table"),
        ("What articles say", "What some say", "not as it was written"),
        ("<main>", '<main><img src="http://example.org/x.png">', "points outside"),
        ("<main>", "<main><script>1</script>", "scripts in the page"),
        ("default-src", "other-src", "no content security policy"),
        ('id="sheet-data"', 'id="other"', "no data inside"),
    ],
)
def test_a_page_that_was_changed_is_found_out(page, tmp_path, old, new, says):
    changed = tmp_path / "changed.html"
    changed.write_text(page.read_text().replace(old, new, 1))
    assert any(says in problem for problem in verify_sheet(changed))


def test_a_sheet_that_is_not_there(tmp_path):
    with pytest.raises(RunNotFoundError):
        verify_sheet(tmp_path / "no.html")
