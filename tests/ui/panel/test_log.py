"""The log drawer and the line above it."""

from workbench.errors import EngineError
from workbench.ui.panel.log import LogDrawer


def text(log):
    return log.drawer.content.value


def test_an_error_stands_above_the_drawer_until_it_is_dismissed_and_in_it_for_good():
    log = LogDrawer()
    assert log.alert.layout.display == "none"
    log.tell(EngineError("engine: <b>died</b>"))
    message, dismiss = log.alert.children
    assert log.alert.layout.display == "flex"
    assert "engine: &lt;b&gt;died&lt;/b&gt;" in message.value
    assert 'role="alert"' in message.value
    dismiss.click()
    assert log.alert.layout.display == "none"
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
    sent = []
    log.drawer.content.observe(sent.append, names="value")
    log.show(("a",))
    assert sent == []


def test_it_keeps_the_last_errors_only():
    log = LogDrawer()
    for n in range(80):
        log.tell(ValueError(f"no {n}"))
    assert len(log.errors) == 50
    assert log.errors[-1].endswith("ValueError: no 79")
    assert log.drawer.title == "Log · 80 errors"
