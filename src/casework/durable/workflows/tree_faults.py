"""What is told of an error in the code of a free tree: its reason, and the line of that code where it arose.

The reason stands in the run's row, with the place at its end; the whole traceback goes to the worker's log. Not here:
what can go wrong in a step or a visit (`failures`).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import PurePath
from types import FrameType

from temporalio import workflow
from temporalio.worker.workflow_sandbox import RestrictedWorkflowAccessError

from casework.agents import scrub
from casework.durable.workflows.failures import root_failure
from casework.tasktree import NodeFailedError

EXAMPLES = "casework.examples"
_NOT_THEIRS = frozenset({"casework", "temporalio", *sys.stdlib_module_names})
"""Packages in which nobody looks for a fault of their own; asyncio is of the standard library."""
_NAME_LIMIT = 100
_LOG_LIMIT = 100_000
"""Characters of a traceback that are logged: its end, where the error is."""
REFUSED = "{what} is refused in the code of a free tree. Use a tool for it, or asyncio.sleep to wait"
HEAVY = "; where an import led to it, import that module under workflow.unsafe.imports_passed_through()"


def told(error: Exception) -> str:
    """The reason of a failure, its path in the tree before it and its place in the user's code behind it."""
    cause = error.__cause__ or error if isinstance(error, NodeFailedError) else error
    reason, place = _reason(cause), place_of(cause)
    if isinstance(error, NodeFailedError) and not reason.startswith(error.path):
        reason = f"{error.path}: {reason}"
    return reason if place is None else f"{reason} ({place})"


def log(name: str, error: Exception) -> None:
    """Write the whole traceback to the worker's log; not again when the run is replayed."""
    cause = error.__cause__ or error if isinstance(error, NodeFailedError) else error
    lines = "".join(traceback.format_exception(cause))
    told_lines = scrub.scrubbed(lines[-_LOG_LIMIT:], {})
    workflow.logger.error("free tree %r of run %s failed\n%s", name, workflow.info().workflow_id, told_lines)


def place_of(error: BaseException) -> str | None:
    """`panel.py:12 in deeper`: the innermost frame of the user's code, of the first cause that has one."""
    for cause in reversed(list(_causes(error))):
        for frame, line in reversed(_frames(cause)):
            if _is_theirs(str(frame.f_globals.get("__name__", ""))):
                code = frame.f_code
                return f"{PurePath(code.co_filename).name[-_NAME_LIMIT:]}:{line} in {code.co_name[:_NAME_LIMIT]}"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and what caused it, through groups to their first."""
    seen: set[int] = set()
    step: BaseException | None = error
    while step is not None and id(step) not in seen:
        seen.add(id(step))
        yield step
        step = step.exceptions[0] if isinstance(step, BaseExceptionGroup) else step.__cause__


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    return list(traceback.walk_tb(error.__traceback__))


def _is_theirs(module: str) -> bool:
    return module.startswith(EXAMPLES) or module.partition(".")[0] not in _NOT_THEIRS


def _reason(error: BaseException) -> str:
    """As `root_failure`; what the engine refuses is told with what to do instead."""
    *_, cause = _causes(error)
    if isinstance(cause, RestrictedWorkflowAccessError):
        what = REFUSED.format(what=cause.qualified_name[:_NAME_LIMIT])
        return f"{type(cause).__name__}: {what}{HEAVY}"
    if isinstance(cause, NotImplementedError) and not cause.args and (frames := _frames(cause)):
        innermost = frames[-1][0]
        if str(innermost.f_globals.get("__name__")).startswith("asyncio."):
            what = REFUSED.format(what=f"asyncio's {innermost.f_code.co_name} (a thread, a process or a connection)")
            return f"{type(cause).__name__}: {what}"
    return root_failure(error)
