"""Tuning under a latency promise: search, answer, fair comparison, more than one machine.

trial       a place of the search space, what is asked of a player, what came of it
goal        objectives, limits, and what a trace says about them
"""
