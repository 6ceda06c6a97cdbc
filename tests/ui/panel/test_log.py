"""The log drawer and the line above it."""

from workbench.errors import EngineError
from workbench.ui.panel.log import LogDrawer


def text(log):
    return log.drawer.parts[0].markup


def test_an_error_stands_above_the_drawer_until_it_is_dismissed_and_in_it_for_good():
    log = LogDrawer()
    assert log.alert.hidden
    log.tell(EngineError("engine: <b>died</b>"))
    message, dismiss = log.alert.parts
    assert not log.alert.hidden
    assert (message.text, message.tree()["kind"]) == ("engine: <b>died</b>", "alert")
    dismiss.press()
    assert log.alert.hidden
    assert "&lt;b&gt;died" in text(log)
    assert "<b>died" not in text(log)
    assert log.drawer.title == "Log · 1 error"


def test_the_engines_last_lines_are_shown_as_text():
    log = LogDrawer()
    assert "has said nothing yet" in text(log)
    log.show(("INFO <script>", "ready"))
    assert "INFO &lt;script&gt;\nready" in text(log)


def test_the_same_lines_again_send_nothing():
    log = LogDrawer()
    log.show(("a",))
    before = log.drawer.tree()
    log.show(("a",))
    assert log.drawer.tree() == before
    log.show(("b",))
    assert log.drawer.tree() != before, "the page sees that there is something new"


def test_it_keeps_the_last_errors_only():
    log = LogDrawer()
    for n in range(80):
        log.tell(ValueError(f"no {n}"))
    assert len(log.errors) == 50
    assert log.errors[-1].endswith("ValueError: no 79")
    assert log.drawer.title == "Log · 80 errors"
