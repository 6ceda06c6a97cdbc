"""The workshop's learning parts: predict and reveal, exercises that check themselves, a closing quiz.

No widgets in here: :mod:`workbench.ui.learn` draws them where there is a page. What is asked stands in
``data/workshop``, one file a notebook, so that it can be reviewed and translated without code.

lesson.py    one notebook's parts by number; what notebooks call
content.py   the files' fields
rights.py    right answers by name, computed from runs
curves.py    a trace as one value a column: what a guess is drawn over
compare.py   a guess against what was measured, in words
predict.py   a guess, and its reveal
checks.py    an answer against the right one: what is wrong, and by how much
exercise.py  prompt, check, hints, solution
quiz.py      questions with choices, and a score
places.py    a place in a list, as people type it
shown.py     what all parts are in a notebook: a widget, or text
"""

from workbench.learn.exercise import Exercise
from workbench.learn.lesson import Lesson
from workbench.learn.predict import Prediction, Reveal
from workbench.learn.quiz import Quiz

__all__ = ["Exercise", "Lesson", "Prediction", "Quiz", "Reveal"]
