"""vLLM's own scheduler without a model, in virtual time. Imports vllm: for child processes and tests only."""
