"""TaskNode: what a Commander, a Job and a handler have in common, as others see it.

How nodes move belongs to `mechanics`; here is the place of a node in its tree, its outcome, and waiting for it.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, ClassVar, Self

from casework.tasktree import drawing
from casework.tasktree.callbacks import Callbacks
from casework.tasktree.context import HERE
from casework.tasktree.errors import (
    AlreadyAttachedError,
    EndlessWaitError,
    NodeEndedError,
    NodeTerminatedError,
    NotAttachedError,
    OptionError,
)
from casework.tasktree.limits import checked_seconds
from casework.tasktree.mechanics import doom, hand_to_parent, move
from casework.tasktree.paths import checked_name, checked_ordinal, path_of
from casework.tasktree.rare import Rare
from casework.tasktree.states import (
    CLOSED,
    DOOMED,
    FAILED,
    RECEIVED,
    RELEASED,
    SPARED,
    STRAY,
    NodeState,
    Stage,
)
from casework.tasktree.waits import check_wait, wait_as

if TYPE_CHECKING:
    from casework.tasktree.commander import Commander

_PENDING = NodeState.PENDING
ERRORS_REMEMBERED = 32
"""How many of the errors that a body was handed it is known for where they arose, should it raise one of them on."""


class TaskNode:
    """A node of a task tree: one parent (none at the root), any number of children in order, one final state.

    Awaiting it gives its result when it and all its descendants have ended, or raises its error.
    """

    __slots__ = (
        "__weakref__",
        "_awaits_",
        "_began_",
        "_callbacks_",
        "_children_",
        "_commander_",
        "_counters_",
        "_ended_",
        "_flags_",
        "_gone_",
        "_name_",
        "_open_",
        "_ordinal_",
        "_parent_",
        "_rare_",
        "_result_",
        "_state_",
        "_task_",
        "_waiters_",
    )

    _is_root_: ClassVar[bool] = False
    _queues_: ClassVar[bool] = False  # whether its body waits for its turn
    _end_stage_: ClassVar[Stage] = Stage.AT_HANDLER_END

    _commander_: Commander  # set when the node is attached, like the two below
    _ordinal_: int
    _open_: int  # how many things hold it open: its body, and each child that has not ended
    _began_: float | None  # set when the body starts
    _ended_: float | None  # set when the state is final
    _gone_: int  # children that were released but are still in the list; set with the first child

    def _prepare_(self, name: str) -> None:
        """Give every slot its first value."""
        self._name_ = name
        self._state_ = _PENDING
        self._flags_ = 0
        self._parent_: TaskNode | None = None
        self._children_: list[TaskNode] | None = None
        self._counters_: dict[str, int] | None = None
        self._result_: Any = None
        self._task_: asyncio.Task[None] | asyncio.Handle | None = None
        self._waiters_: dict[asyncio.Future[None], TaskNode | None] | None = None  # None: somebody outside the tree
        self._awaits_: dict[asyncio.Future[None], TaskNode] | None = None  # what the body waits for
        self._callbacks_: Callbacks | None = None
        self._rare_: Rare | None = None

    # ---- place

    @property
    def name(self) -> str:
        """What the node is called among its parent's children; need not be unique."""
        return self._name_

    @property
    def path(self) -> str:
        """The node's identity: `name.ordinal` from below the Commander down, joined by `/`. The Commander's is empty.

        Raises:
            NotAttachedError: the node has no place in a tree yet.
        """
        return path_of(self)

    @property
    def parent(self) -> TaskNode | None:
        """The node above; None for a Commander and for a node without a place."""
        return self._parent_

    @property
    def children(self) -> tuple[TaskNode, ...]:
        """The nodes right below, in the order in which they were attached; without those that were released."""
        if self._children_ is None:
            return ()
        return tuple(child for child in self._children_ if not child._flags_ & RELEASED)

    @property
    def ancestor_chain(self) -> tuple[TaskNode, ...]:
        """The node itself, its parent, and so on; the Commander last."""
        chain = [self]
        while (parent := chain[-1]._parent_) is not None:
            chain.append(parent)
        return tuple(chain)

    @property
    def commander(self) -> Commander:
        """The root of the tree.

        Raises:
            NotAttachedError: the node has no place in a tree yet.
        """
        if self._parent_ is None and not self._is_root_:
            raise NotAttachedError(f"{self!r} has no Commander before it is submitted or called.")
        return self._commander_

    # ---- outcome

    @property
    def state(self) -> NodeState:
        """PENDING, ACTIVE, or one of the three final states."""
        return self._state_

    @property
    def result(self) -> Any:
        """What the body returned; None before that and where it did not."""
        return self._result_

    @property
    def exception(self) -> BaseException | None:
        """The error that ended the node, or that its body raised while it was terminated."""
        return None if self._rare_ is None else self._rare_.error

    @property
    def terminating(self) -> bool:
        """Whether the node was told to end and has not yet: code that may have swallowed its cancellation can ask."""
        return self._state_ is NodeState.ACTIVE and bool(self._flags_ & (DOOMED | SPARED))

    @property
    def began(self) -> float | None:
        """When the body started, in seconds on the Commander's clock; None before that."""
        return getattr(self, "_began_", None)

    @property
    def ended(self) -> float | None:
        """When the state became final, in seconds on the Commander's clock; None before that."""
        return getattr(self, "_ended_", None)

    @property
    def data(self) -> dict[str, Any]:
        """A dictionary for whoever wants to keep something with the node."""
        return self._rarely_().data

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong at the node without ending it, such as errors of callbacks."""
        return () if self._rare_ is None else tuple(self._rare_.notes)

    def snapshot(self) -> list[dict[str, Any]]:
        """The tree from here down as plain data; see `drawing.snapshot` for the shape of an entry."""
        return drawing.snapshot(self)

    def render(self) -> str:
        """The tree from here down as text, a line for each node."""
        return drawing.render(self)

    # ---- before it starts

    def named(self, name: str) -> Self:
        """Call the node `name`; only before it is attached.

        Raises:
            NodeNameError: not a text, or empty.
            AlreadyAttachedError: the node has its place, and so its path, already.
        """
        self._check_unplaced_("Name it")
        self._name_ = checked_name(name)
        return self

    def within(self, seconds: float) -> Self:
        """Give the node, with all below it, `seconds` from the start of its body; only before it is attached.

        When they are over it fails by a TimeLimitError: its body is cancelled, all below it is terminated.

        Raises:
            OptionError: not a finite number above zero.
            AlreadyAttachedError: the node has its place already.
        """
        self._check_unplaced_("Limit it")
        self._rarely_().limit = checked_seconds(seconds)
        return self

    def isolate(self) -> Self:
        """Do not fail by errors of children that nobody received: the node goes on and sees them in `children`.

        Raises:
            AlreadyAttachedError: the node has its place already.
        """
        self._check_unplaced_("Say so")
        self._rarely_().isolates = True
        return self

    def reopen(self, ordinal: int) -> Self:
        """Take the place `name.ordinal` of a node that was at rest when the Commander's counters were exported.

        Raises:
            OptionError: `ordinal` is no whole number above zero.
            AlreadyAttachedError: the node has its place already.
        """
        self._check_unplaced_("Re-open it")
        self._rarely_().ordinal = checked_ordinal(ordinal)
        return self

    def on(
        self, stage: Stage, function: Callable[..., object], /, *args: Any, with_node: bool = False, **kwargs: Any
    ) -> Self:
        """Run `function`, sync or async, with these arguments at `stage`; `with_node` passes the node before them."""
        return self.merge(Callbacks().on(stage, function, *args, with_node=with_node, **kwargs))

    def merge(self, callbacks: Callbacks) -> Self:
        """Add `callbacks` to those that the node has.

        Raises:
            NodeEndedError: the node has ended, and they are not all for the end of the Commander.
            OptionError: they are no Callbacks.
        """
        if not isinstance(callbacks, Callbacks):
            raise OptionError(f"merge({callbacks!r}): give Callbacks.")
        if self._state_.final and not callbacks.only_at_commander_end:
            raise NodeEndedError(f"{self!r} has ended. Of its callbacks only those at the Commander's end still run.")
        self._callbacks_ = callbacks if self._callbacks_ is None else self._callbacks_ | callbacks
        if self._state_ is not _PENDING and self._commander_._state_ is NodeState.ACTIVE:
            self._commander_._note_ender(self)
        return self

    # ---- waiting and ending

    def __await__(self) -> Generator[Any, None, Any]:
        here = HERE.get()
        if not self._flags_ & CLOSED:
            if self._state_ is NodeState.PENDING:
                self._start_for_(here)
            if not self._is_above_(here):
                yield from self._until_closed_(here)
            elif not self._state_.final:
                raise EndlessWaitError(f"{here!r} cannot await {self!r}, which ends only after it.")
        return self._outcome_(here)

    async def terminate(self) -> None:
        """End the node and all below it: cancel what runs, drop what is queued, wait until all have ended.

        Called from inside that part of the tree it does not wait: the caller itself is being cancelled.

        Raises:
            EndlessWaitError: it was told to end, but a callback of it, or of one below it, waits for the caller.
        """
        if self._state_ is NodeState.PENDING:
            move(self, NodeState.TERMINATED)
            self._flags_ |= CLOSED
            return
        self._commander_._stop_if_dropped()
        self._commander_._check_loop(self)
        self._doom_()
        if self._is_above_(HERE.get()):
            await asyncio.sleep(0)  # where the caller's own body was cancelled, it leaves here
        elif not self._flags_ & CLOSED:
            await self._until_closed_(HERE.get(), receives=False)

    def __repr__(self) -> str:
        where = path_of(self) if self._parent_ is not None else self._name_
        return f"<{type(self).__name__} {where} {self._state_}>"

    # ---- for the mechanics

    def _start_for_(self, here: TaskNode | None) -> None:
        """Start a node that is awaited before it was attached, where its kind allows it."""
        raise NotAttachedError(f"{self!r} cannot be awaited yet. Submit it first. (awaited in {here!r})")

    def _doom_(self) -> None:
        if self._state_ is NodeState.ACTIVE:
            doom([self])

    def _never_started_(self) -> None:
        """The node was terminated before its body took a step."""

    def _is_above_(self, here: TaskNode | None) -> bool:
        """Whether this node is `here` or one of its ancestors. Quick where a node looks at its own child."""
        if here is None or self._parent_ is here:
            return False
        step: TaskNode | None = here
        while step is not None and step is not self:
            step = step._parent_
        return step is self

    @types.coroutine
    def _until_closed_(self, waiter: TaskNode | None, *, receives: bool = True) -> Generator[Any, None, None]:
        """Wait until the node has ended and its end callbacks are over, as `waiter` or as somebody outside."""
        self._commander_._stop_if_dropped()
        if waiter is None or waiter._commander_ is not self._commander_:
            self._commander_._check_loop(self)
        if self._waiters_ is None:
            self._waiters_ = {}
        if waiter is not None:
            check_wait(waiter, self)
        future = self._commander_._create_future()
        self._waiters_[future] = receiver = waiter if receives else None
        try:
            yield from (future if waiter is None else wait_as(waiter, self, future, receives=receives))
        except BaseException:
            del self._waiters_[future]
            if receiver is not None and self._flags_ & CLOSED and self._flags_ & (FAILED | STRAY):
                self._look_for_receiver_()
            raise
        del self._waiters_[future]

    def _look_for_receiver_(self) -> None:
        """An awaiter was cancelled between being woken and looking: without another the error goes to the parent."""
        if not any(waiter is not None for waiter in (self._waiters_ or {}).values()):
            hand_to_parent(self)

    def _when_closed_(self, act: Callable[[], object], waiter: TaskNode | None) -> None:
        """Call `act` soon after the node has ended, on behalf of `waiter`, or of somebody outside the tree."""
        if self._waiters_ is None:
            self._waiters_ = {}
        future = self._commander_._create_future()
        self._waiters_[future] = waiter
        future.add_done_callback(lambda _: act())

    def _check_unplaced_(self, remedy: str) -> None:
        if self._state_ is not NodeState.PENDING or self._flags_:
            raise AlreadyAttachedError(f"{self!r} has its path already. {remedy} before it is submitted or called.")

    def _outcome_(self, here: TaskNode | None) -> Any:
        if self._state_ is NodeState.COMPLETED:
            return self._result_
        if here is not None:
            self._flags_ |= RECEIVED
            seen = here._rarely_().seen_errors
            seen.append(self)
            del seen[:-ERRORS_REMEMBERED]
        error = None if self._rare_ is None else self._rare_.error
        if error is None or self._state_ is NodeState.TERMINATED:
            raise NodeTerminatedError(f"{self!r} was terminated and has no result.") from error
        raise error.with_traceback(self._rarely_().traceback)

    def _rarely_(self) -> Rare:
        if self._rare_ is None:
            self._rare_ = Rare()
        return self._rare_

    def _set_failure_(self, error: BaseException, origin: TaskNode | None = None) -> None:
        """Keep `error`, and where it arose: in this node, unless it came out of another one that was awaited here."""
        rare = self._rarely_()
        for seen in rare.seen_errors:
            if seen._rare_ is not None and seen._rare_.error is error:
                origin = seen._origin_()
        rare.seen_errors.clear()
        rare.error, rare.traceback, rare.origin = error, error.__traceback__, origin

    def _origin_(self) -> TaskNode:
        """The node in which this node's error arose."""
        return self if self._rare_ is None or self._rare_.origin is None else self._rare_.origin

    def _add_note_(self, note: str) -> None:
        self._rarely_().notes.append(note)
