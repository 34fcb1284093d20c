"""Which nodes stay in the tree when they have ended, and how the others are let go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from casework.tasktree.errors import OptionError
from casework.tasktree.states import FAILED, RELEASED

if TYPE_CHECKING:
    from casework.tasktree.node import TaskNode

Keep = Literal["all", "failed", "none"]
UNSWEPT = 8
"""Released children that a list of children may hold before it is made anew, if they are more than half of it."""


def checked_keep(keep: object) -> Keep:
    """`keep` if a Commander can have it.

    Raises:
        OptionError: it is something else.
    """
    for choice in get_args(Keep):
        if keep == choice:
            return choice  # type: ignore[no-any-return]  # get_args has no types
    raise OptionError(f"keep={keep!r}: give one of {', '.join(get_args(Keep))}.")


def let_go(node: TaskNode, parent: TaskNode | None) -> None:
    """Take an ended node from its parent's children, unless it failed, or has one that did, and such are kept."""
    if parent is None:
        return
    if node._commander_._keep == "failed" and (
        node._flags_ & FAILED or any(not child._flags_ & RELEASED for child in node._children_ or ())
    ):
        return
    node._flags_ |= RELEASED
    parent._gone_ += 1
    children = parent._children_
    if children is not None and parent._gone_ > UNSWEPT and parent._gone_ * 2 > len(children):
        parent._children_ = [child for child in children if not child._flags_ & RELEASED]
        parent._gone_ = 0
