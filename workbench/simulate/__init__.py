"""Hardware you lack: vLLM's own scheduler in virtual time, and what its steps would take.

``bare``, ``loop``, ``playing``, ``scheduler`` and ``swap`` load vLLM, for child processes and tests only. Step-time
models, calibration, memory and floors are plain numbers, for the notebook's kernel too.
"""
