"""What people read in Chinese has no English sentence left, and what programs read has no Chinese."""

import copy
import csv
import json
import re

import pytest
import vl_convert

from workbench.claims.sheet import Row, Sheet, check_claims
from workbench.claims.table import CLAIMS
from workbench.config import SLO
from workbench.i18n import counted, phrase, phrase_counted, phrases, speaking, translate
from workbench.learn.content import content, folder
from workbench.learn.exercise import Exercise
from workbench.learn.predict import Prediction
from workbench.metrics import CAUSES, stalls
from workbench.planning.capacity import Capacity
from workbench.planning.limits import limiting
from workbench.planning.rule import Rule, Verdict
from workbench.report.sheet import verify_sheet, write_sheet
from workbench.report.sheet_charts import PICTURES, claim_chart
from workbench.ui.charts.localise import localise
from workbench.ui.charts.theme import VEGA_LITE
from workbench.ui.learn.cards import exercise_cards
from workbench.ui.learn.widgets import PredictionWidget

_SENTENCE = re.compile(r"\b[A-Za-z][a-z'’]+(?:,? [a-z][a-z'’]+){2,}")  # three words of prose in a row
_HAN = re.compile(r"[\u3400-\u9fff]")


def left(text):
    """English sentences in a text."""
    return _SENTENCE.findall(text)


@pytest.fixture(scope="module")
def sheet():
    """Of data/runs, without the claims that they cannot judge."""
    return check_claims(["recorded"])


def test_the_pattern_finds_a_sentence():
    assert left("前缀缓存 prompt tokens were computed 个")
    assert not left("max_num_batched_tokens 为 2,048：AMD EPYC，P99 token 间隔")


def test_a_phrase_is_english_until_it_is_told():
    made = phrase(
        "{tokens} tokens computed again, after {away:,.0f} ms without KV blocks", tokens=phrase("its"), away=5.0
    )
    assert made == "its tokens computed again, after 5 ms without KV blocks"
    assert json.loads(json.dumps({"why": made})) == {"why": str(made)}
    with speaking("zh"):
        assert made == "its tokens computed again, after 5 ms without KV blocks"
        told = translate(made)
        assert translate(copy.deepcopy(made)) == told
        assert translate("a " + made + "!") == f"a {told}!"
        assert translate(phrases(", ", [made, "chat-0"])) == f"{told}、chat-0"
        assert translate(phrase_counted("{n:,} stall", "{n:,} stalls", 2)) == counted("{n:,} stall", "{n:,} stalls", 2)
    assert _HAN.search(told)
    assert not left(told)
    assert translate(made) == made
    assert phrase_counted("{n:,} stall", "{n:,} stalls", 1) == "1 stall"
    assert phrases(", ", ["a", made]) + "." == f"a, {made}."


def test_the_claims_sheet_is_chinese_and_its_data_are_english(sheet):
    judged = [row for row in sheet.rows if row.verdict]
    assert len(judged) > 3
    with speaking("zh"):
        shown = str(Sheet([*judged, Row(CLAIMS[6], None, why_not=phrase("needs {what}", what=CLAIMS[6].needs))]))
        page = Sheet(judged)._repr_html_()
        table = sheet.table.to_csv()
    lines = [line.replace("recorded, ", "") for line in shown.splitlines()]
    assert [left(line) for line in lines if left(line)] == []
    assert "提示词" in page
    assert not _HAN.search(table)
    assert table == sheet.table.to_csv()


def test_the_pictures_of_the_claims_are_chinese(sheet):
    judged = [row for row in sheet.rows if row.verdict and row.claim.id in PICTURES]
    assert len(judged) > 10
    with speaking("zh"):
        drawn = {row.claim.id: localise(claim_chart(row).to_dict()) for row in judged}
    said = {name: [one for one in _drawn_texts(spec) if left(one)] for name, spec in drawn.items()}
    assert {name: texts for name, texts in said.items() if texts} == {}
    assert all(_HAN.search(spec["description"]) for spec in drawn.values())


def _drawn_texts(spec):
    """What a chart says: the texts of its drawing, and its description."""
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[])
    return [*re.findall(r"<text[^>]*>([^<]*)</text>", svg), spec["description"]]


def test_a_page_of_the_sheet_in_chinese_is_true_to_its_data(sheet, tmp_path):
    with speaking("zh"):
        path = write_sheet(tmp_path / "zh.html", Sheet([sheet["C2"], sheet["C10"]]))
    text = path.read_text(encoding="utf-8")
    assert verify_sheet(path) == []
    assert '<html lang="zh-CN">' in text
    assert "36 次抢占（vip 23、offline 13）" in text
    assert "36 preemptions (vip 23, offline 13)" in text, "the data inside"
    changed = tmp_path / "changed.html"
    changed.write_text(text.replace("36 次抢占", "37 次抢占", 1), encoding="utf-8")
    assert any("C10" in problem for problem in verify_sheet(changed))


def test_stalls_are_stored_in_english_and_told_in_chinese(sheet, tmp_path):
    run = sheet["C10"].judged.runs["preempted"]
    with speaking("zh"):
        found = stalls(run.trace, SLO(gap_ms=100))
        told = [translate(detail) for detail in found["detail"]]
        found.to_csv(tmp_path / "stalls.csv")
        found.to_json(tmp_path / "stalls.json")
        found.to_parquet(tmp_path / "stalls.parquet")
    assert len(found) > 5
    assert set(found["cause"]) <= set(CAUSES)
    assert not _HAN.search((tmp_path / "stalls.csv").read_text(encoding="utf-8"))
    assert not re.search(r"\\u[3-9]", (tmp_path / "stalls.json").read_text(encoding="utf-8"))
    with (tmp_path / "stalls.csv").open(encoding="utf-8") as file:
        assert [row["detail"] for row in csv.DictReader(file)] == found["detail"].tolist()
    assert found["detail"].tolist() == stalls(run.trace, SLO(gap_ms=100))["detail"].tolist()
    assert all(_HAN.search(one) for one in told)
    assert [one for one in told if left(one)] == []


def test_a_plan_says_in_chinese_what_limits_it():
    facts = {
        "preemptions": 0.0,
        "kv_max": 0.4,
        "waiting_mean": 0.0,
        "running_max": 9.0,
        "at_cap": 0.0,
        "prefill_time": 0.8,
    }
    over = Verdict(2.0, False, 0.6, 0.4, 0.1, 0.0, 100, 1.0, True, 0.2, ("document", 0.0), facts, cut_s=3.0)
    none = Capacity(0.0, 2.0, 3, "", None, over)
    some = Capacity(1.5, 2.0, 3, "", over, over)
    with speaking("zh"):
        words = [Rule().words, over.misses, none.reason, limiting(none, 8), limiting(some, 8), limiting(some, 16)]
        told = [translate(one) for one in words]
    assert words[-1] == "TTFT: steps with prefill"
    assert not any(_HAN.search(one) for one in words)
    assert all(_HAN.search(one) for one in told)
    assert [one for one in told if left(one)] == []
    assert told[-1] == "TTFT：含预填充的步"


@pytest.mark.parametrize("name", sorted(file.stem for file in folder().glob("*.yaml")))
def test_a_lesson_in_chinese_asks_the_same_and_has_no_english_left(name):
    english = content(name).model_dump()
    with speaking("zh"):
        chinese = content(name)
        said = [*_texts(chinese.model_dump())]
    assert _same(english, chinese.model_dump()) == []
    assert [one for one in said if left(_code_out(one))] == []
    assert chinese.predict.prompt != english["predict"]["prompt"]


def test_the_cards_of_a_lesson_are_chinese():
    with speaking("zh"):
        asked = content("00")
        exercise = Exercise(1, asked.exercises[0], {"run": None})
        guess = PredictionWidget(Prediction(asked.predict))
        texts = [exercise.text, exercise.hint(), *_strings(exercise_cards(exercise)), *_strings(guess.now())]
        script = guess._esm
    assert [one for one in texts if left(_code_out(one))] == []
    assert json.dumps("在图上拖动，或使用方向键。") in script
    assert not _HAN.search(PredictionWidget(Prediction(content("00").predict))._esm)


_TEXTS = {"prompt", "label", "unit", "title", "hints", "solution", "words", "text", "why"}


def _same(one, other, key=""):
    """Where two contents differ in more than their texts."""
    if key in _TEXTS:
        return [] if _holes(one) == _holes(other) else [key]
    if isinstance(one, dict):
        return [place for name in one for place in _same(one[name], other[name], name)]
    if isinstance(one, list | tuple):
        short = [key] if len(one) != len(other) else []
        return short + [place for a, b in zip(one, other, strict=True) for place in _same(a, b, key)]
    return [] if one == other else [key]


def _holes(text):
    return sorted(re.findall(r"\{(?:value|because)\}", json.dumps(text)))


def _texts(plain, key=""):
    if isinstance(plain, dict):
        for name, one in plain.items():
            yield from _texts(one, name)
    elif isinstance(plain, list | tuple):
        for one in plain:
            yield from _texts(one, key)
    elif isinstance(plain, str) and key in _TEXTS:
        yield plain


def _strings(plain):
    if isinstance(plain, dict | list | tuple):
        for one in plain.values() if isinstance(plain, dict) else plain:
            yield from _strings(one)
    elif isinstance(plain, str):
        yield plain


def _code_out(text):
    return re.sub(r"\w+(?:\.\w+)*\([^)]*\)", "", text)
