"""Callbacks: what runs at the stages of one node, and what becomes of their errors.

The stages of a node are one generator (`run_stages`) that yields only where a callback is asynchronous. Most nodes
have no such callback, so most stages run to their end where they stand and cost no task.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from casework.tasktree.context import HERE
from casework.tasktree.errors import NodeFailedError, OptionError, told
from casework.tasktree.paths import path_of
from casework.tasktree.states import FAILED, NodeState, Stage

if TYPE_CHECKING:
    from casework.tasktree.node import TaskNode

Pending = tuple[Stage, Awaitable[object]]
_OF_HANDLERS = (Stage.AT_HANDLER_START, Stage.AT_HANDLER_END)
_log = logging.getLogger("casework.tasktree")


@dataclass(frozen=True)
class _Entry:
    function: Callable[..., object]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    with_node: bool

    def __call__(self, node: TaskNode) -> object:
        if self.with_node:
            return self.function(node, *self.args, **self.kwargs)
        return self.function(*self.args, **self.kwargs)


class Callbacks:
    """Functions to run at the stages of a node, sync or async, in the order they were added.

    `Callbacks().on(Stage.AT_EXCEPTION, warn, "ops", with_node=True)` calls `warn(node, "ops")`. Two are merged by `|`.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[Stage, tuple[_Entry, ...]] = {}

    def on(
        self, stage: Stage, function: Callable[..., object], /, *args: Any, with_node: bool = False, **kwargs: Any
    ) -> Callbacks:
        """Add `function` to `stage`, with its arguments bound; `with_node` passes the node before them.

        Raises:
            OptionError: `function` cannot be called.
            ValueError: there is no such stage.
        """
        if not callable(function):
            raise OptionError(f"on({stage!r}, {function!r}): give a function, sync or async.")
        stage = Stage(stage)
        self._entries[stage] = (*self.at(stage), _Entry(function, args, kwargs, with_node))
        return self

    def at(self, stage: Stage) -> tuple[_Entry, ...]:
        """What runs at `stage`, in order."""
        return self._entries.get(stage, ())

    @property
    def only_at_commander_end(self) -> bool:
        """Whether they are all for the end of the Commander."""
        return set(self._entries) <= {Stage.AT_COMMANDER_END}

    def __or__(self, other: Callbacks) -> Callbacks:
        merged = Callbacks()
        for stage in Stage:
            if entries := self.at(stage) + other.at(stage):
                merged._entries[stage] = entries
        return merged


def run_stages(node: TaskNode, stages: Iterable[Stage], *, tell: bool = True) -> Iterator[Pending]:
    """Tell the listener and run the callbacks of `node` for each stage, yielding what has to be awaited."""
    for stage in stages:
        if tell and (stage not in _OF_HANDLERS or node._end_stage_ is Stage.AT_HANDLER_END):
            notify(node, stage)
        yield from _run_callbacks(node, stage)


def _run_callbacks(node: TaskNode, stage: Stage) -> Iterator[Pending]:
    callbacks = node._callbacks_
    for entry in callbacks.at(stage) if callbacks is not None else ():
        token = HERE.set(node)
        outcome: object = None
        try:
            outcome = entry(node)
        except BaseException as error:  # noqa: BLE001 - sorted by callback_failed
            callback_failed(node, stage, error)
        finally:
            HERE.reset(token)
        if inspect.isawaitable(outcome):
            yield stage, outcome


async def await_stages(
    node: TaskNode, steps: Iterator[Pending], first: Pending | None = None
) -> asyncio.CancelledError | None:
    """Run `steps` to their end, `first` before them. The calling task belongs to `node`.

    A node whose body is still to start ends where it is cancelled. The callbacks of an ended node go on (unless the
    engine drops the tree), and the last cancellation is returned.
    """
    cancelled: asyncio.CancelledError | None = None
    pending = first if first is not None else next(steps, None)
    if pending is not None:
        HERE.set(node)  # the calling task is the node's own, or the Commander's, which sets it back
    while pending is not None:
        stage, awaitable = pending
        try:
            await awaitable
        except BaseException as error:
            if node._commander_._lets_go(error):
                raise
            if isinstance(error, asyncio.CancelledError):
                cancelled = error
            callback_failed(node, stage, error)
        node._commander_._stop_if_dropped()
        pending = next(steps, None)
    return cancelled


def notify(node: TaskNode, stage: Stage) -> None:
    """Tell the Commander's listener, if there is one."""
    listener = node._commander_._listener
    if listener is None:
        return
    try:
        listener(node, stage)
    except BaseException as error:  # noqa: BLE001 - sorted by callback_failed
        callback_failed(node, stage, error)


def callback_failed(node: TaskNode, stage: Stage, error: BaseException) -> None:
    """An error in a callback is noted and reported, and the tree goes on; unless it is not ours to keep.

    An error of the engine, and in a strict tree any error, fails the node: raised where its body is still to run.
    """
    commander = node._commander_
    foreign = isinstance(error, commander._passing)
    if not node._state_.final and (foreign or commander._strict or isinstance(error, asyncio.CancelledError)):
        raise error
    if foreign:
        commander._abort(error)
        return
    node._add_note_(f"{stage} callback failed: {told(error)}")
    report(node, stage, error)
    if not commander._strict:
        return
    at_end = stage is Stage.AT_COMMANDER_END and node is not commander  # that node ended long before: the run fails
    failing, failure = (commander, NodeFailedError(path_of(node), error)) if at_end else (node, error)
    if failing._state_ is NodeState.COMPLETED:
        failing._flags_ |= FAILED
        failing._set_failure_(failure, node)
        failing._state_ = NodeState.EXCEPTION
        notify(failing, Stage.AT_EXCEPTION)


def report(node: TaskNode, stage: Stage, error: BaseException) -> None:
    """Hand an error that stops nothing to the Commander's hook; without one it is logged."""
    hook = node._commander_._on_callback_error
    try:
        if hook is not None:
            hook(node, stage, error)
            return
    except BaseException as broken:  # noqa: BLE001 - a broken hook must not hang the tree; both errors are logged
        _log.error("the error hook failed at %s of %r", stage, node, exc_info=broken)
        if isinstance(broken, node._commander_._passing):
            node._commander_._abort(broken)
    _log.error("%s of %r failed", stage, node, exc_info=error)
