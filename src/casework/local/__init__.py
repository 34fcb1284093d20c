"""Runs in memory: the local driver of the graph engine, for scripts, tests and `casework runs start --local`.

Belongs here: carrying out the engine's commands by asking models and calling tools directly, as Jobs and handlers of
the task tree, so that paths are those of a durable run. Nothing is kept, nothing is tried twice, nothing survives the
process. Does not belong here: the engine itself, admission, and whatever is durable.
"""
