"""Is the client to be trusted on this machine? Streams whose token times are known, and what the client made of them.

A stub server in a process of its own notes when it handed each event to its socket; the client plays against it as it
does against an engine, and both are compared, token by token, on one clock (CLOCK_MONOTONIC).
"""
