"""What ipywidgets leaves out: tooltips that show, and for screen readers also names and values of sliders."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

FORM, FIELD = "wb-form", "wb-field"  # classes of a form's box and of a control in it

_ESM = """
function set(part, name, value) {
  if (value && part.getAttribute(name) !== value) part.setAttribute(name, value);
}

// With a label before it, a control of ipywidgets 8.1 drops its tooltip; a slider says neither its name nor the text
// of its stop.
function speak(form, hints) {
  for (const field of form.querySelectorAll(".wb-field")) {
    const labels = [...field.querySelectorAll(".widget-label, .widget-label-basic > span")];  // a check box has both
    const name = labels.map((label) => label.textContent).find((text) => hints[text]);
    set(field, "title", hints[name]);
    for (const part of field.querySelectorAll("input, select, [role=slider]")) {
      set(part, "aria-description", hints[name]);
      if (part.getAttribute("role") !== "slider") continue;
      set(part, "aria-label", name);
      set(part, "aria-valuetext", field.querySelector(".widget-readout")?.textContent);
      set(part, "aria-disabled", String(field.querySelector("[disabled]") !== null));
    }
  }
}

export default {
  render({ model, el }) {
    let stop = () => {};
    // The box may take this view in later than it is drawn.
    const timer = setInterval(() => {
      const form = el.closest(".wb-form");
      if (!form) return;
      clearInterval(timer);
      const now = () => speak(form, model.get("hints"));
      const observer = new MutationObserver(now);
      const attributeFilter = ["aria-valuenow", "aria-valuetext", "disabled"];
      observer.observe(form, { subtree: true, childList: true, characterData: true, attributeFilter });
      model.on("change:hints", now);
      stop = () => { observer.disconnect(); model.off("change:hints", now); };
      now();
    }, 50);
    return () => { clearInterval(timer); stop(); };
  },
};
"""


# A label that is longer than its place goes on in a second line instead of being cut.
_CSS = """
.wb-field > .widget-label { white-space: normal; height: auto; line-height: 1.2; align-self: center; }
"""


class Spoken(anywidget.AnyWidget):
    """Invisible; belongs into the box of a form, next to its controls.

    Attributes:
        hints: tooltips by label.
    """

    _esm, _css = _ESM, _CSS
    hints = traitlets.Dict(key_trait=traitlets.Unicode(), value_trait=traitlets.Unicode()).tag(sync=True)

    def __init__(self, controls: Iterable[Any]) -> None:
        super().__init__(layout=widgets.Layout(display="none"))
        self._controls = tuple(controls)
        for one in self._controls:
            one.observe(lambda _: self._collect(), names="tooltip")
        self._collect()

    def _collect(self) -> None:
        self.hints = {one.description: one.tooltip or "" for one in self._controls}


def form(children: Iterable[Any]) -> Any:
    """A box of controls that can be heard as well as seen."""
    box = widgets.VBox(tuple(children))
    box.children = (Spoken(_fields(box)), *box.children)
    box.add_class(FORM)
    return box


def _fields(box: Any) -> list[Any]:
    """The controls in a box and in the boxes in it."""
    inside = [found for child in getattr(box, "children", ()) for found in _fields(child)]
    return [box, *inside] if FIELD in box._dom_classes else inside
