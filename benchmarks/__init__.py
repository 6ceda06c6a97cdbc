"""Benchmarks: ``make bench NAME=...`` runs one of them; each prints one JSON line on stdout."""
