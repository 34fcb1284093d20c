"""How a tree moves: taking children in, ending nodes, carrying errors up and termination down.

Every node counts what holds it open: its own body (one) and each child that has not ended. Whatever ends takes one
away from its holder (`release`); a node that nothing holds ends, and takes one away from its parent, in a loop, so
a tree of any depth ends on a flat stack and no task waits for children.

A node ends in this order: its state becomes final, the listener and its callbacks are told, its awaiters are woken,
an error that no awaiter took is handed to the parent, and only then is the parent released.
"""

from __future__ import annotations

import asyncio
from asyncio import _get_running_loop
from collections.abc import Iterator
from typing import TYPE_CHECKING

from casework.tasktree.callbacks import Pending, await_stages, notify, report, run_stages
from casework.tasktree.counters import take_place
from casework.tasktree.errors import (
    AlreadyAttachedError,
    CommanderNotRunningError,
    IllegalTransitionError,
    NodeEndedError,
    NodeFailedError,
    NodeTerminatedError,
    TreeError,
    told,
)
from casework.tasktree.keeping import let_go
from casework.tasktree.paths import path_of
from casework.tasktree.states import (
    BODY_OVER,
    CLOSED,
    CONTINUED,
    DOOMED,
    FAILED,
    HOLDS,
    ISOLATES,
    LEGAL,
    RECEIVED,
    REFUSES,
    SEALED,
    SPARED,
    STARTED,
    STRAY,
    NodeState,
    Stage,
)

if TYPE_CHECKING:
    from casework.tasktree.node import TaskNode

_PENDING = NodeState.PENDING
_ACTIVE = NodeState.ACTIVE
_COMPLETED = NodeState.COMPLETED
_ENDED_PLAINLY = STARTED | BODY_OVER | CLOSED  # one integer for all such nodes
UNRECEIVED = 100
"""How many failed children wait for the end of a body; the first of them is what fails it."""
NOTES = 20
"""Notes of a node after which errors beside the one that counts are told no more."""


def move(node: TaskNode, state: NodeState) -> None:
    """Take `node` to `state`.

    Raises:
        IllegalTransitionError: there is no such way from where it is.
    """
    if state not in LEGAL[node._state_]:
        raise IllegalTransitionError(f"{node!r} cannot become {state}. This is a fault of the tree; please report it.")
    node._state_ = state


def adopt(parent: TaskNode, node: TaskNode) -> None:
    """Make `node` the next child of `parent`, ACTIVE.

    Raises:
        AlreadyAttachedError: `node` was used before.
        TreeError: `parent` takes no child; the subclass tells why.
    """
    if node._state_ is not _PENDING or node._flags_:
        raise AlreadyAttachedError(f"{node!r} was used before. A node has one place in one tree: make a new one.")
    if parent._state_ is not _ACTIVE or parent._flags_ & REFUSES or parent._commander_._flags_ & REFUSES:
        raise refusal(parent, node)
    commander = parent._commander_
    if _get_running_loop() is not commander._loop:
        commander._check_loop(node)
    if commander._is_unwinding is not None:
        commander._stop_if_dropped()
    if parent._children_ is None or parent._counters_ is None:
        parent._children_ = []
        parent._counters_ = parent._counters_ or {}
        parent._gone_ = 0
    if node._rare_ is not None and (node._rare_.ordinal or node._rare_.isolates):
        take_place(parent, node, node._rare_)
    else:
        name = node._name_
        node._ordinal_ = parent._counters_[name] = parent._counters_.get(name, 0) + 1
    parent._children_.append(node)
    node._parent_ = parent
    node._commander_ = commander
    node._open_ = 1
    node._state_ = _ACTIVE
    parent._open_ += 1
    if node._callbacks_ is not None:
        commander._note_ender(node)


def disown(node: TaskNode) -> None:
    """Undo `adopt` for a child that could not be started. It calls nothing: there may be no stack left to call with."""
    parent = node._parent_
    if parent is not None and parent._children_ and parent._counters_ is not None:
        parent._children_.pop()
        parent._open_ -= 1
        parent._counters_[node._name_] -= 1
        if not parent._counters_[node._name_]:
            del parent._counters_[node._name_]
    node._parent_ = None
    node._flags_ = 0
    node._state_ = _PENDING


def refusal(parent: TaskNode, node: TaskNode) -> TreeError:
    """Why `parent` does not take `node`."""
    if parent._state_ is _PENDING and not parent._is_root_:
        return NodeEndedError(f"{parent!r} is in no tree yet, so it cannot have the child {node!r}. Attach it first.")
    if parent._is_root_ and parent._state_ is not _ACTIVE:
        return CommanderNotRunningError(f"{parent!r} does not run, so {node!r} cannot start. Use run() or async with.")
    if parent._state_.final:
        return NodeEndedError(f"{parent!r} has ended and takes no child {node!r}. Give it to a living ancestor.")
    return NodeTerminatedError(f"{parent!r} is being ended and takes no child {node!r}.")


# ---- ending


def body_over(node: TaskNode) -> None:
    """The body of `node` will do nothing more: its children's errors reach it now, and it no longer holds itself."""
    parent = node._parent_
    if (
        node._flags_ == STARTED
        and node._open_ == 1
        and node._commander_._plain
        and node._rare_ is None
        and node._waiters_ is None
        and node._callbacks_ is None
        and parent is not None
    ):
        # The short way for most nodes: a body that returned, with nothing below it, and nobody to tell of it.
        node._task_ = None
        node._open_ = 0
        node._flags_ = _ENDED_PLAINLY
        node._state_ = _COMPLETED
        node._ended_ = node._commander_._time()
        if parent._open_ > 1:
            parent._open_ -= 1
        else:
            release(parent)
        return
    flags = node._flags_ = node._flags_ | BODY_OVER
    node._task_ = None
    if flags & HOLDS:
        node._commander_._give_back(node)
    if node._rare_ is not None and node._rare_.unreceived:
        _take_children_errors(node)
    if node._flags_ & (FAILED | DOOMED):
        node._flags_ |= SEALED
        doom_children(node)
    release(node)


def body_failed(node: TaskNode, error: BaseException) -> None:
    """Record how the body of `node` ended, when it did not return. `body_over` follows."""
    if isinstance(error, asyncio.CancelledError):
        if not node._flags_ & (DOOMED | SPARED):
            node._flags_ |= STRAY
            node._set_failure_(error)
        node._flags_ |= DOOMED
        return
    if node._flags_ & SPARED and isinstance(error, NodeTerminatedError):
        node._flags_ |= DOOMED  # it ended the run, then wanted more of it: that is no failure, and the result stands
        return
    if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
        # Our own frame says nothing, and would hold the node. Not by assignment, which a class may refuse.
        BaseException.with_traceback(error, error.__traceback__.tb_next)
    node._set_failure_(error)
    if node._flags_ & DOOMED:
        # Terminated it stays; but what went wrong on the way is not swallowed.
        node._add_note_(f"failed while it was terminated: {told(error)}")
        if not node._commander_._is_cancellation(error):
            report(node, Stage.AT_TERMINATE, error)
        return
    node._flags_ |= FAILED
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        node._commander_._abort(error)


def release(node: TaskNode) -> None:
    """Take away one of the things that hold `node` open; end it, and its parents in turn, where it was the last."""
    while True:
        node._open_ -= 1
        if node._open_:
            return
        parent = node._parent_
        if parent is None:
            node._commander_._all_ended()
            return
        if not _end(node):
            return
        node = parent


def _end(node: TaskNode) -> bool:
    """End `node`, which nothing holds. False: asynchronous callbacks run first, and release the parent when done."""
    flags = node._flags_
    if node._state_ is not _ACTIVE:
        raise IllegalTransitionError(f"{node!r} was to end twice. This is a fault of the tree; please report it.")
    node._ended_ = node._commander_._time()
    if node._rare_ is not None:
        for timer in node._rare_.timers:
            timer.cancel()
    if not flags & (FAILED | DOOMED):
        node._state_ = _COMPLETED
    else:
        node._state_ = NodeState.EXCEPTION if flags & FAILED else NodeState.TERMINATED
    if node._callbacks_ is not None:
        steps = run_stages(node, end_stages(node))
        first = next(steps, None)
        if first is not None:
            node._task_ = node._commander_._create_task(_end_later(node, steps, first))
            return False
    elif node._commander_._listener is not None:
        for stage in end_stages(node):
            notify(node, stage)
    _close(node)
    return True


async def _end_later(node: TaskNode, steps: Iterator[Pending], first: Pending) -> None:
    try:
        await await_stages(node, steps, first)
        node._task_ = None
        _close(node)
        if node._parent_ is not None:
            release(node._parent_)
    except BaseException as fault:
        if node._commander_._lets_go(fault):
            raise
        node._commander_._wreck(fault)


def end_stages(node: TaskNode) -> tuple[Stage, ...]:
    """The stages that follow from the final state of `node`."""
    if node._state_ is NodeState.TERMINATED:
        return (Stage.AT_TERMINATE,)
    if node._state_ is NodeState.EXCEPTION:
        return (Stage.AT_EXCEPTION, *_ends(node))
    return _ends(node)


def _ends(node: TaskNode) -> tuple[Stage, ...]:
    """The end stage of `node`; a Job that went on as a handler runs what was meant for that one's end, too."""
    return (Stage.AT_HANDLER_END, node._end_stage_) if node._flags_ & CONTINUED else (node._end_stage_,)


def _close(node: TaskNode) -> None:
    """Wake the awaiters of `node` and hand its error to the parent if none of them takes it."""
    node._flags_ |= CLOSED
    promised = False
    if node._waiters_ is not None:
        for future, waiter in node._waiters_.items():
            promised = promised or waiter is not None
            if not future.done():
                future.set_result(None)
    if node._flags_ & (FAILED | STRAY) and not promised:
        hand_to_parent(node)
    if node._commander_._keep != "all":
        let_go(node, node._parent_)


# ---- errors upward


def hand_to_parent(node: TaskNode) -> None:
    """The error of `node` reaches its parent: at once if the parent's body is over, else when it is."""
    parent = node._parent_
    if parent is None or node._flags_ & RECEIVED or parent._state_ is not _ACTIVE:
        return
    if parent._flags_ & ISOLATES and not isinstance(_error(node), parent._commander_._passing):
        return  # it would not count, and an open Commander would gather such nodes for ever
    unreceived = parent._rarely_().unreceived
    if len(unreceived) >= UNRECEIVED:
        unreceived[:] = [child for child in unreceived if not child._flags_ & RECEIVED][:UNRECEIVED]
    unreceived.append(node)
    if parent._flags_ & BODY_OVER:
        _take_children_errors(parent)
        if parent._flags_ & FAILED:
            parent._flags_ |= SEALED
            doom_children(parent)


def _take_children_errors(parent: TaskNode) -> None:
    """Fail `parent` by the first error of a child that nobody received, unless it fails or terminates anyhow."""
    rare = parent._rarely_()
    children, rare.unreceived = rare.unreceived, []
    for child in children:
        if child._flags_ & RECEIVED:
            continue
        if parent._flags_ & ISOLATES and not isinstance(_error(child), parent._commander_._passing):
            continue
        error, origin = _carried(child)
        if not parent._flags_ & (FAILED | DOOMED):
            parent._flags_ |= FAILED
            parent._set_failure_(error, origin)
        elif len(rare.notes) < NOTES:
            parent._add_note_(f"failed as well: {told(error)}")


def _error(node: TaskNode) -> BaseException | None:
    """The error of `node`, whatever its class makes of the name `exception`."""
    return None if node._rare_ is None else node._rare_.error


def _carried(child: TaskNode) -> tuple[BaseException, TaskNode]:
    """What goes up from `child`, and where it arose: one error that names the place, however far it travels."""
    origin = child._origin_()
    error = _error(child)
    if error is None:
        raise IllegalTransitionError(f"{child!r} has not failed. This is a fault of the tree; please report it.")
    if isinstance(error, child._commander_._passing) or (isinstance(error, NodeFailedError) and origin is not child):
        return error, origin
    return NodeFailedError(path_of(origin), error), origin


# ---- termination downward


def doom_children(node: TaskNode) -> None:
    """Terminate everything below `node`."""
    if node._children_:
        doom(node._children_)


def doom(roots: list[TaskNode]) -> None:
    """Tell `roots` and all below them to terminate, parents before children, in order.

    Bodies that run are cancelled and end in their own time; those that never started end here.
    """
    never_started: list[TaskNode] = []
    stack = roots[::-1]
    while stack:
        node = stack.pop()
        flags = node._flags_
        if node._state_ is not _ACTIVE or flags & DOOMED:
            continue  # all below it has ended, or was told before
        if not flags & SPARED:
            node._flags_ |= DOOMED
        if not flags & BODY_OVER:
            if not flags & STARTED:
                node._flags_ |= BODY_OVER
                never_started.append(node)
            node._awaits_ = None  # it is torn out of these waits
            if node._task_ is not None:
                node._task_.cancel()
        if node._children_:
            stack.extend(reversed(node._children_))
    for node in never_started:
        node._task_ = None
        if node._flags_ & HOLDS:
            node._commander_._give_back(node)
        node._never_started_()
        release(node)


def cancel_again(roots: list[TaskNode]) -> None:
    """Cancel once more the bodies below `roots` that have not ended since they were told to."""
    stack = roots[::-1]
    while stack:
        node = stack.pop()
        if node._state_ is _ACTIVE:
            if node._task_ is not None and not node._flags_ & BODY_OVER:
                node._task_.cancel()
            stack.extend(reversed(node._children_ or ()))
