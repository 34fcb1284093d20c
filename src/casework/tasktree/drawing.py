"""A tree as plain data and as text, with states and times. Both walk without recursion and stay small however deep
the tree is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from casework.tasktree.errors import told
from casework.tasktree.paths import encoded
from casework.tasktree.states import NodeState

if TYPE_CHECKING:
    from casework.tasktree.node import TaskNode

INDENT_LIMIT = 40
"""Levels that are shown by indentation; deeper ones say their level, else a deep tree would be drawn as blanks."""
TEXT_LIMIT = 200
"""Characters of a step, an error or a note that `render` shows; `snapshot` keeps them whole."""


def walk(top: TaskNode) -> Iterator[tuple[TaskNode, int]]:
    """`top` and all below it with their levels below `top`, parents before children, children in order."""
    stack = [(top, 0)]
    while stack:
        node, level = stack.pop()
        yield node, level
        stack.extend((child, level + 1) for child in reversed(node._children_ or ()))


def snapshot(top: TaskNode) -> list[dict[str, Any]]:
    """The tree from `top` down as a list that `json.dumps` takes, parents before children.

    Each entry has `kind` (the class), `step` (the last part of the path; empty at the root), `name`, `state`, `parent`
    (the place of the parent in this list; None for `top`), `began` and `ended` (seconds on the Commander's clock; None
    where it has not), `error` (text or None) and `notes`.
    """
    entries: list[dict[str, Any]] = []
    places: dict[int, int] = {}
    for place, (node, level) in enumerate(walk(top)):
        places[level] = place
        error = node.exception
        entries.append(
            {
                "kind": type(node).__name__,
                "step": step_of(node),
                "name": node.name,
                "state": node.state.value,
                "parent": places[level - 1] if level else None,
                "began": node.began,
                "ended": node.ended,
                "error": None if error is None else told(error),
                "notes": list(node.notes),
            }
        )
    return entries


def render(top: TaskNode) -> str:
    """The tree from `top` down as text: a line for each node, with its state, how long it took, and its error.

    `top.1 COMPLETED 1.204 s`; one that runs says `ACTIVE 1.204 s so far`, one that waits for its turn or for a limit
    says for what. Notes stand below their node, each in a line that begins with `!`.
    """
    lines = []
    clock = now(top)
    for node, level in walk(top):
        indent = "  " * min(level, INDENT_LIMIT)
        shown = indent if level <= INDENT_LIMIT else f"{indent}(level {level}) "
        words = [_cut(step_of(node) or node.name), node.state.value, *_time_words(node, clock)]
        if node.exception is not None:
            words.append(_first_line(told(node.exception)))
        lines.append(shown + " ".join(words))
        lines.extend(f"{indent}  ! {_first_line(note)}" for note in node.notes)
    return "\n".join(lines)


def _time_words(node: TaskNode, clock: float | None) -> Iterator[str]:
    if node.began is not None and node.ended is not None:
        yield duration_text(node.ended - node.began)
    elif node.state is NodeState.ACTIVE:
        if node.began is not None and clock is not None:
            yield f"{duration_text(clock - node.began)} so far"
        if (waits_for := waits_of(node)) is not None:
            yield f"waits for {waits_for}"


def waits_of(node: TaskNode) -> str | None:
    """What an ACTIVE node waits for, where the tree knows: a limit, or its turn in the queue."""
    noted = node.data.get("waits_for") if node._rare_ is not None else None
    if noted is not None:
        return str(noted)
    return "its turn" if node.began is None and node.state is NodeState.ACTIVE else None


def now(top: TaskNode) -> float | None:
    """What the clock of the tree shows; None where the Commander does not run."""
    if top.parent is None and not top._is_root_:
        return None
    commander = top.commander
    return commander._time() if commander.running else None


def duration_text(seconds: float) -> str:
    """`seconds` for people: `1.204 s`, `2 min 03.4 s`, `1 h 02 min`, `3 d 04 h`."""
    seconds = max(seconds, 0.0)
    if (milliseconds := round(seconds * 1000)) < 60_000:
        return f"{milliseconds / 1000:.3f} s"
    if (tenths := round(seconds * 10)) < 36_000:
        return f"{tenths // 600} min {tenths % 600 / 10:04.1f} s"
    if (minutes := round(seconds / 60)) < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    hours = round(seconds / 3600)
    return f"{hours // 24:,} d {hours % 24:02} h"


def _first_line(text: str) -> str:
    """The first line, with nothing in it that would move a terminal's cursor or turn its direction."""
    line = text.split("\n", 1)[0]
    return _cut("".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in line))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"


def step_of(node: TaskNode) -> str:
    """The last part of the path of `node`: `name.ordinal`; empty at the root and before it has a place."""
    return "" if node.parent is None else f"{encoded(node.name)}.{node._ordinal_}"
