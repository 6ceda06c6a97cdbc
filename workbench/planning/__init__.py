"""The planner: how many requests a second some hardware serves within a promise, by playing them on the simulator.

mixes     traffic that needs no file
loads     a scenario's requests at any rate
rule      when a rate counts as met, and figures of a play
capacity  the search for the highest rate that is met
limits    what keeps a setting from more
plays     one simulator's child for all plays
asked     the question
rows      one setting and its figures
plan      all that was found
planner   finds it: budgets x chunks, the band, policies
"""

from workbench.planning.asked import Asked
from workbench.planning.mixes import mix_names, traffic_names
from workbench.planning.plan import Plan
from workbench.planning.planner import Planner, Progress, plan
from workbench.planning.rows import Band, Row
from workbench.planning.rule import Rule

__all__ = ["Asked", "Band", "Plan", "Planner", "Progress", "Row", "Rule", "mix_names", "plan", "traffic_names"]
