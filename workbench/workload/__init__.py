"""Workloads: lengths, arrivals, request traces, prompts, and the scenario files that put them together."""
