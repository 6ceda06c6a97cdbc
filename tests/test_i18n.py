"""Languages: which one is spoken, and a catalogue that is whole."""

import gettext
import importlib.util
import string
import threading
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from workbench.errors import InputError
from workbench.i18n import counted, language, marked, speaking, spoken, translate

ROOT = Path(__file__).resolve().parent.parent
_SPEC = importlib.util.spec_from_file_location("messages", ROOT / "tools" / "messages.py")
messages = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(messages)


@pytest.fixture(autouse=True)
def _no_language_asked(monkeypatch):
    monkeypatch.delenv("WORKBENCH_LANG", raising=False)


@pytest.fixture(scope="module")
def catalogue():
    with messages.PO.open("rb") as file:
        return read_po(file, locale="zh_CN", domain="workbench")


@pytest.mark.parametrize("name", ["zh", "zh-CN", "zh_CN.UTF-8", " ZH ", "Chinese", "中文"])
def test_chinese_has_several_names(name):
    assert language(name) == "zh"


def test_without_a_word_english_is_spoken():
    assert (language(), spoken()) == ("en", "en")
    assert translate("Start engine") == "Start engine"


def test_another_language_is_refused_in_one_line_that_names_those_there_are():
    with pytest.raises(InputError) as error:
        language("de")
    assert "got 'de'" in str(error.value)
    assert "en (English), zh (简体中文)" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_environment_names_the_language_and_the_innermost_word_counts(monkeypatch):
    monkeypatch.setenv("WORKBENCH_LANG", "zh")
    assert translate("Start engine") == "启动引擎"
    with speaking("en"):
        assert translate("Start engine") == "Start engine"
        with speaking("zh"):
            assert translate("Start engine") == "启动引擎"
        assert spoken() == "en"
    assert spoken() == "zh"
    monkeypatch.setenv("WORKBENCH_LANG", "klingon")
    with pytest.raises(InputError):
        spoken()


def test_a_thread_begins_without_its_makers_language():
    heard = []
    with speaking("zh"):
        thread = threading.Thread(target=lambda: heard.append(spoken()))
        thread.start()
        thread.join()
    assert heard == ["en"]


def test_values_go_into_a_message_and_without_any_braces_are_nothing_special():
    with speaking("zh"):
        assert translate("max {gap:,.0f} ms", gap=1234.4) == "最长 1,234 ms"
        assert translate("not in it {here}") == "not in it {here}"
        assert translate("") == ""


@pytest.mark.parametrize(("n", "english"), [(1, "1 stall"), (2, "2 stalls"), (0, "0 stalls"), (1200, "1,200 stalls")])
def test_a_number_chooses_the_form(n, english):
    assert counted("{n:,} stall", "{n:,} stalls", n) == english
    with speaking("zh"):
        assert counted("{n:,} stall", "{n:,} stalls", n) == f"{n:,} 次卡顿"


def test_marked_is_the_text_itself():
    with speaking("zh"):
        assert marked("Start engine") == "Start engine"


def test_the_catalogue_has_every_message_of_the_code_and_no_other(catalogue):
    """What `make messages` would write is what is there."""
    assert messages.PO.read_bytes() == messages.as_text(messages.updated())
    assert not catalogue.obsolete
    ids = {message.id for message in catalogue}
    assert {"Start engine", "Token gaps", "How to reproduce", "kv wait", "running cap"} <= ids


def test_every_message_is_translated(catalogue):
    lacking = [one.id for one in catalogue if one.id and (one.fuzzy or not all(_forms(one.string)))]
    assert lacking == []


def test_translations_have_the_places_of_their_messages(catalogue):
    """And their formats, but for words that only English has two of."""
    wrong = []
    for one in catalogue:
        if one.id:
            said = {place for text in _forms(one.id) for place in _places(text)}
            wrong += [one.id for text in _forms(one.string) if _places(text) != said]
    assert wrong == []


def test_what_is_shipped_is_compiled_from_the_catalogue(catalogue):
    with messages.MO.open("rb") as file:
        shipped = gettext.GNUTranslations(file)
    for one in catalogue:
        if isinstance(one.id, tuple):
            assert shipped.ngettext(*one.id, 2) == one.string[0]
        elif one.id:
            assert shipped.gettext(one.id) == one.string


def test_a_message_that_is_new_is_found(tmp_path):
    code = tmp_path / "new.py"
    code.write_text(
        'translate("one " "text")\nButton("id", "on it", hint)\ncounted("{n} a", "{n} b", 3)\nother("no")\n'
    )
    assert list(messages._said(code)) == ["one text", "on it", ("{n} a", "{n} b")]


def _forms(texts):
    return texts if isinstance(texts, tuple | list) else (texts,)


def _places(text):
    return {(name, spec) for _, name, spec, _ in string.Formatter().parse(text) if name is not None}
