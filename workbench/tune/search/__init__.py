"""The search.

study       Optuna's ask and tell over a storage that outlives the process (storage, samplers, parameters, resuming)
best        which trial is ahead
prior       what a simulation says before anything is measured
sequential  the test that stops hopeless trials early
tuning      asks for trials, has them played, and ends (workers: by whom)
"""
