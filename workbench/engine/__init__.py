"""Engines: one protocol, with live, attached and simulated implementations."""
