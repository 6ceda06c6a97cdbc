"""Two settings compared fairly: in turn on one engine, with intervals, until the verdict is clear.

settings    settings as people write them
measures    what is compared, and which direction is better
rounds      plays the pairs, in random order, the same seeded workload in both
turns       whose turn it is
sides       plays one side; engines held, knobs put back
settle      warm-up of the engine, and the steady part of a round
bootstrap   block bootstrap of a ratio over pairs, and within single runs
spending    how sure each look must be, so that stopping early does not raise the error
verdict     better, no difference shown, or how many more rounds
comparison  all of it as data
exact       what two simulated runs of the same load say, in which there is no chance
recorded    what recorded runs can say, which were not played in turn
"""

from workbench.tune.compare.bootstrap import Estimate
from workbench.tune.compare.comparison import Comparison, Round
from workbench.tune.compare.measures import MEASURES, PRIMARY
from workbench.tune.compare.recorded import RecordedComparison, compare_recorded
from workbench.tune.compare.rounds import MOST_ROUNDS, RESOLVE, ROUNDS, Comparing, Playing, compare
from workbench.tune.compare.settings import setting_of
from workbench.tune.compare.verdict import Verdict

__all__ = [
    "MEASURES",
    "MOST_ROUNDS",
    "PRIMARY",
    "RESOLVE",
    "ROUNDS",
    "Comparing",
    "Comparison",
    "Estimate",
    "Playing",
    "RecordedComparison",
    "Round",
    "Verdict",
    "compare",
    "compare_recorded",
    "setting_of",
]
