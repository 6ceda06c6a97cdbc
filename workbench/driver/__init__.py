"""Plays a workload against an OpenAI-compatible server, from a process of its own.

The client has its own interpreter so that nothing the notebook does delays the stamp of a token.
"""
