"""From the name and version of a free tree to its code: only what this worker's application has registered."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio import workflow
from temporalio.workflow import SandboxImportNotificationPolicy

from casework.errors import FatalError
from casework.trees.definition import FreeTree

FIRST_TASK = 3
"""Events of a history when a run's first task is worked on: it was started, the task was scheduled and begun."""
PLACES = "casework_free_trees"
"""The worker's function that says where its trees are."""
Places = Mapping[tuple[str, int], tuple[str, str]]
"""By name and version: module and attribute."""


def load_tree(name: str, version: int) -> FreeTree:
    """The tree, its module loaded in the sandbox, unless that is shared with the worker as a whole.

    Raises:
        FatalError: this worker has no such tree, and the run has just been started.
        NondeterminismError: it has none, and the run is under way: another worker began it, and one with the tree's
            code goes on.
        Exception: whatever its module raises when it is loaded.
    """
    known = workflow.extern_functions().get(PLACES, dict)()
    place = known.get((name, version))
    if place is None:
        there_are = ", ".join(f"{one} version {number}" for one, number in sorted(known)) or "none"
        missing = (
            f"this worker has no free tree {name!r} version {version}; it has: {there_are}. Register it in the App's "
            "trees, and keep old versions there until their runs have ended"
        )
        if workflow.info().get_current_history_length() > FIRST_TASK:
            raise workflow.NondeterminismError(missing)
        raise FatalError(missing)
    module, attribute = place
    with workflow.unsafe.sandbox_import_notification_policy(SandboxImportNotificationPolicy.SILENT):
        # Not importlib: the sandbox has its own `__import__`, under which the module is loaded anew for this run.
        found = getattr(__import__(module, fromlist=[attribute]), attribute, None)
    if not isinstance(found, FreeTree) or (found.name, found.version) != (name, version):
        raise FatalError(f"{module}:{attribute} is another thing in a run than free tree {name!r} version {version}")
    return found
