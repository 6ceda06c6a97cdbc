"""The code that runs inside vLLM's processes, and the messages it exchanges with ours.

``wire`` is shared by both sides; everything else here is imported by vLLM only.
"""
