"""Tuning under a latency promise: search, answer, fair comparison, more than one machine.

trial       a place of the search space, what is asked of a player, what came of it
goal        objectives, limits, and what a trace says about them (figures)
space       the values of each dimension, and which of them count together (choices: where nobody says; neighbours)
question    scenario, goal, space and allowance: all that a study is asked
tune        a question from its first trial to its answer (foretelling: simulated first; kept: beside the trials)

search      asks for trials: study, sampler, simulated prior, the test that stops hopeless ones early
play        has them played on one engine, live or simulated
ray         has them played side by side on a cluster
answer      what came of it: the pick with its evidence, what limits it, commands to paste

compare     two settings, A/B/A/B on one engine, with a verdict
"""
