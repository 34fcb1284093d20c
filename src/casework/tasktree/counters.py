"""Ordinals that go from one run to the next, so that a successor gives no path twice.

What is exported: the counters of the Commander, and of each node that is open. A node that has ended takes no child
any more, so nothing is lost with it. A successor that was given the counters goes on counting where they stand, and may
re-open a node that was open then, under its own path and with its own counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from casework.tasktree.errors import NotAtRestError, OptionError
from casework.tasktree.paths import last_step, path_of
from casework.tasktree.states import ISOLATES, NodeState

if TYPE_CHECKING:
    from casework.tasktree.commander import Commander
    from casework.tasktree.node import TaskNode
    from casework.tasktree.rare import Rare

Counters = dict[str, dict[str, int]]
"""By the path of a node (empty for the Commander): the last ordinal of each name among its children."""


def exported(commander: Commander) -> Counters:
    """The counters of `commander`, of every open node below it, and of those given to it that nobody re-opened."""
    found: Counters = {path: dict(counters) for path, counters in commander._carried.items()}
    stack: list[tuple[TaskNode, str]] = [(commander, "")]
    while stack:
        node, path = stack.pop()
        found[path] = dict(node._counters_ or {})
        stack.extend(
            (child, f"{path}/{last_step(child)}" if path else last_step(child))
            for child in node._children_ or ()
            if child._state_ is NodeState.ACTIVE
        )
    return dict(sorted(found.items()))


def take_place(parent: TaskNode, node: TaskNode, rare: Rare) -> None:
    """Give `node` its ordinal below `parent`: the one it re-opens, else the next.

    Raises:
        NotAtRestError: nothing was at rest there, or it was re-opened before.
    """
    assert parent._counters_ is not None, "made by adopt"
    name = node._name_
    if rare.isolates:
        node._flags_ |= ISOLATES
    if not rare.ordinal:
        node._ordinal_ = parent._counters_[name] = parent._counters_.get(name, 0) + 1
        return
    node._ordinal_ = rare.ordinal
    path = f"{path_of(parent)}/{last_step(node)}" if not parent._is_root_ else last_step(node)
    try:
        node._counters_ = parent._commander_._carried.pop(path)
    except KeyError:
        node._flags_ = 0
        raise NotAtRestError(
            f"{path!r} cannot be re-opened: the counters that the Commander was given have no node at rest there, or "
            "it was re-opened before. Leave reopen() out to take a new place."
        ) from None
    parent._counters_[name] = max(rare.ordinal, parent._counters_.get(name, 0))


def checked(counters: object) -> Counters:
    """A copy of `counters`.

    Raises:
        OptionError: not what `export_counters` gives.
    """
    if not isinstance(counters, Mapping):
        raise OptionError(f"counters={counters!r:.80}: give what export_counters() gave, a mapping by path.")
    made: Counters = {}
    for path, names in counters.items():
        if not isinstance(path, str) or not isinstance(names, Mapping):
            raise OptionError(f"counters: {path!r:.80} has {names!r:.80}, not a mapping of names to ordinals.")
        for name, last in names.items():
            if not isinstance(name, str) or not isinstance(last, int) or isinstance(last, bool) or last < 1:
                raise OptionError(f"counters: {path!r:.80} has {name!r:.80}: {last!r:.80}, not a whole number from 1.")
        made[path] = dict(names)
    return made
