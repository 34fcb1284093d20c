"""What most nodes never have: made for a node when the first of it is needed."""

from __future__ import annotations

import asyncio
import contextvars
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casework.tasktree.limits import Timer
    from casework.tasktree.node import TaskNode


class Rare:
    """Errors, notes, data, and what a node was told before it was attached."""

    __slots__ = (
        "bystanders",
        "context",
        "data",
        "error",
        "isolates",
        "limit",
        "notes",
        "ordinal",
        "origin",
        "seen_errors",
        "timers",
        "traceback",
        "unreceived",
    )

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.notes: list[str] = []
        self.error: BaseException | None = None
        self.traceback: TracebackType | None = None  # as it was when the error left the body; awaiters lengthen it
        self.origin: TaskNode | None = None  # where the error arose, if elsewhere
        self.unreceived: list[TaskNode] = []  # failed children whose errors wait for the body to end
        self.seen_errors: list[TaskNode] = []  # nodes whose errors the body was handed, the last few
        self.bystanders: dict[asyncio.Future[None], TaskNode] = {}  # nodes that wait for its end and take no error
        self.limit: float | None = None  # seconds
        self.timers: list[Timer] = []  # what will fail it unless it ends before
        self.isolates = False
        self.ordinal = 0  # of the place that is re-opened; 0 where a new one is taken
        self.context: contextvars.Context | None = None  # for a handler that waits for a slot
