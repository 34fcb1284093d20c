"""Paths: `name.ordinal` from the root down, joined by `/`. The identity of a node."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from casework.tasktree.errors import NodeNameError, NotAttachedError, OptionError

if TYPE_CHECKING:
    from casework.tasktree.node import TaskNode

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def encoded(name: str) -> str:
    """`name` with every character outside `[A-Za-z0-9_-]` as the percent-encoded bytes of its UTF-8 form.

    Lone surrogates are encoded as the three bytes they would take, so that two names never share a path.
    """
    if _PLAIN.fullmatch(name):
        return name
    return _OTHER.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass")), name)


def checked_name(name: object) -> str:
    """`name` if it can name a node.

    Raises:
        NodeNameError: it is not a text, or empty.
    """
    if not isinstance(name, str) or not name:
        raise NodeNameError(f"{name!r} cannot name a node. Pass a text with at least one character.")
    return name


def checked_ordinal(ordinal: object) -> int:
    """`ordinal` if a place can have it.

    Raises:
        OptionError: it is no whole number above zero.
    """
    if not isinstance(ordinal, int) or isinstance(ordinal, bool) or ordinal < 1:
        raise OptionError(f"{ordinal!r} is no ordinal. Give the whole number at the end of the path, from 1.")
    return ordinal


def last_step(node: TaskNode) -> str:
    """The last part of the path of `node`, which has an ordinal: `name.ordinal`."""
    return f"{encoded(node._name_)}.{node._ordinal_}"


def path_of(node: TaskNode) -> str:
    """The path of `node`; the root's is empty.

    Raises:
        NotAttachedError: the node has no place in a tree yet.
    """
    steps: list[str] = []
    step = node
    while (parent := step._parent_) is not None:
        steps.append(last_step(step))
        step = parent
    if not step._is_root_:
        raise NotAttachedError(f"{node!r} has no path before it is submitted or called.")
    steps.reverse()
    return "/".join(steps)
