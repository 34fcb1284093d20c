"""Handlers: async functions that run as nodes of the tree, at once and beside everything else."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, ParamSpec, TypeVar

from casework.tasktree.callbacks import await_stages, notify, run_stages
from casework.tasktree.context import HERE
from casework.tasktree.errors import (
    AlreadyAttachedError,
    NoCurrentNodeError,
    NotAHandlerError,
    NotAsyncError,
    OptionError,
)
from casework.tasktree.limits import arm
from casework.tasktree.mechanics import adopt, body_failed, body_over, disown, refusal
from casework.tasktree.node import TaskNode
from casework.tasktree.states import ABSORBED, DOOMED, REFUSES, SPARED, STARTED, NodeState, Stage

_NONE_NAMED: dict[str, Any] = {}
"""The keyword arguments of most calls; a node is kept for long, and a dictionary is a third of one."""
HANDLER_MARK = "_makes_handler_nodes_"
"""The attribute by which a function under @handler is known."""
_PENDING = NodeState.PENDING
P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound="HandlerNode[Any]")


class HandlerNode(TaskNode, Generic[R]):
    """One call of a handler. PENDING until `call` attaches it, or awaiting it inside a node does."""

    __slots__ = ("_args_", "_function_", "_kwargs_")

    def __init__(
        self, function: Callable[..., Coroutine[Any, Any, R]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        # As `_prepare`, in place: a call of it costs a fortieth of a node.
        self._name_ = getattr(function, "__name__", None) or type(function).__name__
        self._state_ = _PENDING
        self._flags_ = 0
        self._parent_ = self._children_ = self._counters_ = self._result_ = self._task_ = None
        self._waiters_ = self._awaits_ = self._callbacks_ = self._rare_ = None
        self._function_ = function
        self._args_ = args
        self._kwargs_ = kwargs or _NONE_NAMED

    def __await__(self) -> Generator[Any, None, R]:
        return super().__await__()

    def _start_for_(self, here: TaskNode | None) -> None:
        if here is None:
            raise NoCurrentNodeError(f"{self!r} is awaited outside any node. Await it in a Job or handler.")
        if self._flags_ & ABSORBED:
            raise AlreadyAttachedError(f"{self!r} was returned by a Job and continues it. Await the Job.")
        call(self)

    async def _drive_(self) -> None:
        """The asyncio task of the node: its body, from start stage to outcome."""
        self._flags_ |= STARTED
        HERE.set(self)
        commander = self._commander_
        self._began_ = commander._time()
        try:
            if self._rare_ is not None and self._rare_.limit is not None:
                arm(self, self._rare_.limit)
            if self._callbacks_ is not None:
                await await_stages(self, run_stages(self, (Stage.AT_HANDLER_START,)))
            elif commander._listener is not None:
                notify(self, Stage.AT_HANDLER_START)
            self._result_ = await self._function_(*self._args_, **self._kwargs_)
        except BaseException as error:  # noqa: BLE001 - every way a body can end is recorded
            if commander._lets_go(error):
                return
            commander._mended(body_failed, self, error)
        if commander._is_unwinding is None or not commander._drops():
            try:
                body_over(self)
            except BaseException as fault:  # noqa: BLE001 - see _wreck
                commander._wreck(fault)


def handler(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, HandlerNode[R]]:
    """Make an `async def` function or method a handler: calling it gives a PENDING node instead of a coroutine.

    Raises:
        NotAsyncError: `function` is not an `async def`.
    """
    if not inspect.iscoroutinefunction(function):
        name = getattr(function, "__qualname__", repr(function))
        raise NotAsyncError(f"{name} cannot be a handler: it is not an `async def` function. Write `async def`.")

    @functools.wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> HandlerNode[R]:
        return HandlerNode(function, args, kwargs)

    setattr(make, HANDLER_MARK, True)
    return make


def check_handler(node: object) -> None:
    """That `node` can be called as far as its kind goes.

    Raises:
        NotAHandlerError: it is not what calling a `@handler` function gives.
    """
    if not isinstance(node, HandlerNode):
        raise NotAHandlerError(f"{node!r} is not a call of a handler. Pass what a function under @handler returns.")


def call(node: H, parent: TaskNode | None = None) -> H:
    """Start the handler call `node` at once as a child of the running node, or of `parent`, and return it.

    Raises:
        NotAHandlerError: `node` is not what calling a `@handler` function gives.
        NoCurrentNodeError: no node is running and no parent was given.
        AlreadyAttachedError: `node` was called before.
        TreeError: the parent, or the caller, has ended or is being ended; the subclass says which.
    """
    check_handler(node)
    here = HERE.get()
    usual = parent is None and here is not None and not here._flags_ & REFUSES
    adopt(here if usual else placed_under(node, parent), node)  # type: ignore[arg-type]  # usual: it is not None
    commander = node._commander_
    if commander._slots is not None:
        commander._slots.start(node)
        return node
    body = node._drive_()
    try:
        node._task_ = commander._create_task(body, name=node._name_)
    except BaseException:
        body.close()
        disown(node)  # no more stack or memory: as if it had not been called
        raise
    return node


def placed_under(node: TaskNode, parent: TaskNode | None) -> TaskNode:
    """The parent for `node`: the one named, else the running node, which may not be one that is being ended."""
    here = HERE.get()
    if here is not None:
        if here._flags_ & REFUSES and (parent is None or here._flags_ & (DOOMED | SPARED)):
            raise refusal(here, node)  # one that failed may still give work to others, from its callbacks
        if parent is None:
            return here
    if parent is None:
        raise NoCurrentNodeError(f"{node!r} has no parent: no node is running here. Name one with parent=.")
    if not isinstance(parent, TaskNode):
        raise OptionError(f"parent={parent!r} is no node. Give a Job, a handler call or a Commander that runs.")
    return parent
