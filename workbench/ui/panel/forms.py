"""The forms of a panel, together: each is asked and set, and what they have in common is in their parts."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.ui.panel.buttons import Buttons
from workbench.ui.panel.knobs import KnobForm
from workbench.ui.panel.load import LoadForm
from workbench.ui.panel.policies import PolicyForm
from workbench.ui.panel.startup import StartUpForm


@dataclass(frozen=True)
class Forms:
    """What stands in a panel beside its charts.

    Attributes:
        start: what an engine is started with.
        knobs: what the next step uses.
        load: what is played.
        policies: what is compared.
        buttons: of all of them.
    """

    start: StartUpForm = field(default_factory=StartUpForm)
    knobs: KnobForm = field(default_factory=KnobForm)
    load: LoadForm = field(default_factory=LoadForm)
    policies: PolicyForm = field(default_factory=PolicyForm)
    buttons: Buttons = field(default_factory=Buttons)
