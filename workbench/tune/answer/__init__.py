"""The answer of a study.

candidates  all plays of one setting together, who is ahead, the Pareto front
beyond      settings beyond a limit, played to their end: what the limit costs
confirm     the pick against its runner-up on fresh seeds
importance  which parameters tell the best from the rest
why         which limit binds and by how much, what the engine is busy with, why nothing fits
answer      all of it
emit        the answer as commands to paste
"""
