"""Which node the running code belongs to."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from casework.tasktree.errors import NoCurrentNodeError

if TYPE_CHECKING:
    from casework.tasktree.node import TaskNode

HERE: ContextVar[TaskNode | None] = ContextVar("casework_tasktree_node", default=None)
"""The node whose body or callback is running; asyncio tasks made by a body inherit it."""


def current_node() -> TaskNode:
    """The node whose body or callback is running.

    Raises:
        NoCurrentNodeError: the code runs outside any node.
    """
    node = HERE.get()
    if node is None:
        raise NoCurrentNodeError("no node is running here. Call this from a Job, a handler or a callback.")
    return node
