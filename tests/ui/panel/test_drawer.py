"""A drawer shows and hides, and works with a keyboard, being a button."""

import ipywidgets

from workbench.ui.panel.drawer import Drawer


def test_it_is_closed_until_it_is_opened_and_its_button_says_which():
    drawer = Drawer("Log", ipywidgets.HTML("text"))
    assert (drawer.opened, drawer.content.layout.display, drawer.button.description) == (False, "none", "▸ Log")
    drawer.button.value = True
    assert (drawer.opened, drawer.content.layout.display, drawer.button.description) == (True, None, "▾ Log")
    drawer.button.value = False
    assert drawer.content.layout.display == "none"


def test_its_title_can_change():
    drawer = Drawer("Log", ipywidgets.HTML())
    drawer.title = "Log · 1 error"
    assert (drawer.title, drawer.button.description) == ("Log · 1 error", "▸ Log · 1 error")
