"""Tuning under a latency promise: search, answer, fair comparison, more than one machine.

trial       a place of the search space, what is asked of a player, what came of it
goal        objectives, limits, and what a trace says about them
space       the values of each dimension, and which of them count together
question    scenario, goal, space and allowance: all that a study is asked
tune        a question from its first trial to its answer

study       Optuna's ask and tell over a storage that outlives the process
tuning      the search: asks for trials, has them played, and ends
sequential  the test that stops hopeless trials early
prior       what a simulation says before anything is measured
players     trials on one engine, live or simulated; virtual: without run folders; ray_player: on a cluster

candidates  all plays of one setting together, who is ahead, the Pareto front
beyond      settings beyond a limit, played to their end: what the limit costs
confirm     the pick against its runner-up on fresh seeds
importance  which parameters tell the best from the rest
why         which limit binds and by how much, what the engine is busy with, why nothing fits
answer      all of it
emit        the answer as commands to paste

compare     two settings, A/B/A/B on one engine, with a verdict
"""
