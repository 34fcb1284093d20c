"""Errors of the task tree, named by what the caller can do.

TreeError
├── NodeFailedError             a node failed; `path` names it, `__cause__` is its error
├── NodeTerminatedError         the node was terminated: it has no result and takes no work
├── NodeEndedError              the node has ended: give the child to a living one
├── NotAttachedError            the node has no place in a tree yet: submit or call it
├── AlreadyAttachedError        a node has one place: make a new object
├── NoCurrentNodeError          outside any node: name the parent
├── NotAJobError                only Jobs are submitted
├── NotACommanderError          only a Commander takes Jobs that are sent
├── NotAHandlerError            only handlers are called
├── NotAsyncError               `task` of a Job, or a handler, is not an `async def`
├── ReservedNameError           a Job class has something of its own by a name that every node uses
├── NodeNameError               a name must be a text with something in it
├── EndlessWaitError            this wait could never end
├── TimeLimitError              the node did not end within its time limit (a TimeoutError, too)
├── OptionError                 a limit or another option has no possible value
├── NotAtRestError              nothing was at rest under this path when the counters were exported
├── OtherLoopError              the node runs in another thread's event loop: wait for its Future
├── ThreadsRefusedError         the event loop takes no calls from other threads
├── StreamUseError              a stream was used in a way that cannot work; the message says how to
├── StreamOverrunError          nobody read this consumer of a stream until its buffer was full
├── ReplyCutError               a streamed reply ended in the middle of a tool call
├── IllegalTransitionError      a node that has ended was moved again: a fault of the tree itself
├── CommanderBusyError          the Commander runs already
└── CommanderNotRunningError    the Commander does not run
"""

from __future__ import annotations


class TreeError(Exception):
    """Base of the errors of the task tree. The message says what, which node, and what to do."""


class NodeFailedError(TreeError):
    """The node at `path` failed. `__cause__` is the error itself, however deep in the tree it arose."""

    def __init__(self, path: str, error: BaseException) -> None:
        super().__init__(f"node {path!r} failed: {told(error)}")
        self.path = path
        self.__cause__ = error


class NodeTerminatedError(TreeError):
    """The node was terminated: it has no result to give and can take no further work."""


class NodeEndedError(TreeError):
    """The node has ended, so it can have no further child."""


class NotAttachedError(TreeError):
    """The node has no place in a tree yet."""


class AlreadyAttachedError(TreeError):
    """The node has its place in a tree already; a node is used once."""


class NoCurrentNodeError(TreeError):
    """The code runs outside any node, so there is no parent to take the new one."""


class NotAJobError(TreeError):
    """Something was submitted that is not a Job object."""


class NotACommanderError(TreeError):
    """Something that is no Commander was to take a Job."""


class NotAHandlerError(TreeError):
    """Something was called that is not a call of a handler."""


class NotAsyncError(TreeError):
    """`task` of a Job class, or a function made a handler, is not an `async def`."""


class ReservedNameError(TreeError):
    """A class of Jobs has an attribute or method of its own by a name that every node has already."""


class NodeNameError(TreeError):
    """The name of a node is not a text, or empty."""


class EndlessWaitError(TreeError):
    """The awaited node cannot end before the one that awaits it."""


class TimeLimitError(TreeError, TimeoutError):
    """The node did not end within the time that `within` gave it, and was ended."""


class OptionError(TreeError, ValueError):
    """An option of a Commander or a node has a value that it cannot have."""


class NotAtRestError(TreeError):
    """The node is to be re-opened, but none was at rest under its path in the run whose counters were given."""


class OtherLoopError(TreeError, RuntimeError):
    """The node runs in the event loop of another thread, and only code of that loop can await it."""


class ThreadsRefusedError(TreeError):
    """The event loop takes no calls from other threads: in a durable workflow, for one, they could not be replayed."""


class StreamUseError(TreeError):
    """A split stream was used in a way that cannot work."""


class StreamOverrunError(TreeError):
    """Nobody read this consumer until its buffer was full, so the rest of the stream went past it."""


class ReplyCutError(TreeError):
    """A streamed reply ended in the middle of a tool call."""


class IllegalTransitionError(TreeError):
    """A node was to leave a final state."""


class CommanderBusyError(TreeError):
    """The Commander is running; a second run beside it is not possible."""


class CommanderNotRunningError(TreeError):
    """The Commander does not run, so it takes no work."""


def told(error: BaseException) -> str:
    """The class of `error` and what it says; one that cannot say it is told by its class alone."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - a broken `__str__` must not keep a node from ending
        return f"{type(error).__name__}: (says nothing, its __str__ fails)"
