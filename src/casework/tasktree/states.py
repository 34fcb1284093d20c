"""The states of a node, the stages at which others are told of it, and the marks the mechanics keep on it."""

from __future__ import annotations

from enum import StrEnum


class NodeState(StrEnum):
    """Where a node is in its life. The last three are final."""

    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    EXCEPTION = "EXCEPTION"
    TERMINATED = "TERMINATED"

    @property
    def final(self) -> bool:
        """Whether the node has ended for good."""
        return self not in (NodeState.PENDING, NodeState.ACTIVE)


class Stage(StrEnum):
    """A moment in the life of a node at which callbacks and the listener are called."""

    AT_JOB_START = "at_job_start"
    AT_HANDLER_START = "at_handler_start"
    AT_EXCEPTION = "at_exception"
    AT_TERMINATE = "at_terminate"
    AT_HANDLER_END = "at_handler_end"
    AT_JOB_END = "at_job_end"
    AT_COMMANDER_END = "at_commander_end"


LEGAL: dict[NodeState, tuple[NodeState, ...]] = {
    NodeState.PENDING: (NodeState.ACTIVE, NodeState.TERMINATED),
    NodeState.ACTIVE: (NodeState.COMPLETED, NodeState.EXCEPTION, NodeState.TERMINATED),
    NodeState.COMPLETED: (),
    NodeState.EXCEPTION: (),
    NodeState.TERMINATED: (),
}
"""From each state, where a node may go. Two exceptions are made by name elsewhere: a Commander that runs again, and
a strict callback that fails a completed node before anyone was told of its result."""

# Marks on a node. They are bits of one integer because every node carries them and most are never set.
STARTED = 1 << 0  # the first step of the body was taken, so a cancel reaches code of ours
BODY_OVER = 1 << 1  # the body has returned, raised, or will never start
SEALED = 1 << 2  # takes no more children
DOOMED = 1 << 3  # was told to terminate
SPARED = 1 << 4  # called exit: cancelled, but may return in its own way
FAILED = 1 << 5  # ends, or has ended, EXCEPTION
STRAY = 1 << 6  # cancelled by someone who did not ask the tree
RECEIVED = 1 << 7  # its error was handed to an awaiter in the tree
CLOSED = 1 << 8  # its end callbacks are over and its awaiters were told
ABSORBED = 1 << 9  # a handler that continues a Job's node and has no place of its own
CONTINUED = 1 << 10  # a Job that went on as a handler with callbacks of its own
ISOLATES = 1 << 11  # errors of children that nobody received do not fail it
HOLDS = 1 << 12  # its body has one of the Commander's handler slots
LENT = 1 << 13  # it gave its slot back while it waits for a node, and takes one again before it goes on
RELEASED = 1 << 14  # ended, and no longer among its parent's children
REFUSES = SEALED | DOOMED | SPARED
