"""Processes in memory: a driver of the walk for scripts, tests and trying a process without servers.

Belongs here: Monitors on an invented clock, claims and trays over dictionaries, and Tasks really called, with what
their constructors ask for. Nothing is kept and nothing survives. Does not belong here: what is due next, which is
`casework.process.walk`, and whatever is durable.
"""

from casework.process.local.calling import run_task
from casework.process.local.driver import LocalProject, MonitorEnd
from casework.process.local.store import LocalStore, StageStep, TraceRecord

__all__ = ["LocalProject", "LocalStore", "MonitorEnd", "StageStep", "TraceRecord", "run_task"]
