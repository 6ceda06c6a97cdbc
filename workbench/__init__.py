"""Interactive tuning workbench for chunked prefill on vLLM."""

__version__ = "0.1.0"
