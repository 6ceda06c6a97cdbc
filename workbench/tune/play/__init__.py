"""Who plays trials.

players  hold an engine, live or simulated, and start it anew where a trial asks for that
virtual  plays in virtual time without run folders
judging  from a run to a trial's result
"""
