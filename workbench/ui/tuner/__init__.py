"""The tuner in a notebook: ``Tuner()`` as a cell's last line, or ``wb.tuner()`` on an engine that runs already.

form        what is asked, how far it is, and what was found, as parts; nothing in it is a widget
fields      the controls that ask
drawn       charts, table and commands of an answer, as markup
widget      the widget; what takes time runs in a thread
"""

from workbench.ui.tuner.widget import Tuner

__all__ = ["Tuner"]
