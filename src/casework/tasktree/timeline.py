"""A tree as a picture of time: Mermaid text for pages that draw it, SVG for everywhere else.

Both are made of the same lines, one for each node in the order of the tree. A large tree is folded: nodes that failed
or still run come first, then those near the top, and what is left out is told below its nearest node that is shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from casework.tasktree import drawing, picture
from casework.tasktree.drawing import duration_text

if TYPE_CHECKING:
    from casework.tasktree.node import TaskNode

Entries = Sequence[Mapping[str, Any]]
_TOOLTIP_LIMIT = 400
_LABEL_LIMIT = 60  # characters of a name in Mermaid, and levels that are marked
_LEVELS = 8
_LAST = 1000 * 365 * 86_400_000  # a thousand years, in milliseconds: dates end somewhere
_AXES = ((1, "%L ms"), (3600, "%M:%S.%L"), (86_400, "%H:%M:%S"))
_URGENT = ("EXCEPTION", "ACTIVE")
_TAGS = {"COMPLETED": "done, ", "EXCEPTION": "crit, ", "ACTIVE": "active, "}
# Characters that end a name in Mermaid's gantt, begin a comment or an entity, or would be read as markup.
_NOT_IN_MERMAID = re.compile(r"[:;#%<>&\"`\\{}\[\]|]")


@dataclass(frozen=True)
class Line:
    """What is drawn in one line. `began` and `ended` are seconds since the tree began; None where there is no bar.

    `state` is that of the node; of a line that tells of nodes left out it is empty. `words` say how long it took, or
    how those that are left out ended.
    """

    level: int
    label: str
    state: str
    began: float | None
    ended: float | None
    words: str
    tooltip: str


def svg_timeline(top: TaskNode | Entries, *, limit: int = 200) -> str:
    """The tree from `top` down, or a `snapshot` of one, as an SVG picture that stands alone.

    At most `limit` nodes are drawn; lines say how many are left out, and how they ended.
    """
    lines = lines_of(top, limit)
    title = f"Timeline of {lines[0].label}" if lines else "Timeline of nothing"
    return picture.picture(lines, title)


def mermaid_timeline(top: TaskNode | Entries, *, limit: int = 100) -> str:
    """The tree from `top` down, or a `snapshot` of one, as the text of a Mermaid gantt chart.

    A section for each child of `top`; times to the millisecond, counted from the start of `top`. Completed nodes are
    `done`, failed ones `crit`, running ones `active`, terminated ones have no mark. At most `limit` nodes are drawn.
    """
    lines = lines_of(top, limit)
    text = ["gantt", f"    title {_cut(_plain(lines[0].label), _LABEL_LIMIT) if lines else 'nothing'}"]
    text += ["    dateFormat YYYY-MM-DD HH:mm:ss.SSS", f"    axisFormat {_axis(lines)}", "    todayMarker off"]
    for number, line in enumerate(lines):
        if line.level == 1 and line.state:
            text.append(f"    section {_cut(_plain(line.label), _LABEL_LIMIT)}")
        text.append(f"    {_mermaid_line(line, number)}")
    return "\n".join(text) + "\n"


def _mermaid_line(line: Line, number: int) -> str:
    """A task of the chart. The marks of its level stand before its name, so that no name is taken for a keyword."""
    label = f"{'·' * min(line.level + 1, _LEVELS)} {_cut(_plain(line.label), _LABEL_LIMIT)}"
    label += f" ({_plain(line.words)})" if line.words else ""
    began = round((line.began or 0) * 1000)
    ended = began if line.ended is None else round(line.ended * 1000)
    return f"{label} :{_TAGS.get(line.state, '')}n{number}, {_moment(began)}, {_moment(max(ended, began + 1))}"


def _moment(milliseconds: int) -> str:
    """A time of the chart. It is read and shown as a local one, so that the axis begins at nought everywhere."""
    moment = datetime(2000, 1, 1) + timedelta(milliseconds=min(milliseconds, _LAST))
    return moment.isoformat(sep=" ", timespec="milliseconds")


def _plain(label: str) -> str:
    return " ".join(_NOT_IN_MERMAID.sub(" ", label).split()) or "?"


def _axis(lines: Sequence[Line]) -> str:
    whole = max((line.ended or 0 for line in lines), default=0)
    return next((form for limit, form in _AXES if whole < limit), "day %-j %H:%M")


# ---- lines


def lines_of(top: TaskNode | Entries, limit: int) -> list[Line]:
    """What to draw of the tree from `top` down, in order.

    Raises:
        ValueError: `limit` is less than one.
    """
    if limit < 1:
        raise ValueError(f"limit={limit!r}: a timeline shows at least one node. Pass a number from 1 on.")
    entries = top if isinstance(top, Sequence) else drawing.snapshot(top)
    now = None if isinstance(top, Sequence) else drawing.now(top)
    levels = _levels(entries)
    shown = _shown(entries, levels, limit)
    return list(_Lines(entries, levels, shown, now))


def _levels(entries: Entries) -> list[int]:
    levels: list[int] = []
    for entry in entries:
        levels.append(0 if entry["parent"] is None else levels[entry["parent"]] + 1)
    return levels


def _shown(entries: Entries, levels: Sequence[int], limit: int) -> set[int]:
    """The places of the nodes to draw: each with all that are above it, the urgent ones first, then from the top."""
    if len(entries) <= limit:
        return set(range(len(entries)))
    urgent = [place for place, entry in enumerate(entries) if entry["state"] in _URGENT]
    shown: set[int] = set()
    for place in sorted(urgent, key=levels.__getitem__)[:limit]:
        _show(entries, place, shown, limit)
    for place in sorted(range(len(entries)), key=levels.__getitem__):
        if len(shown) >= limit:
            break
        _show(entries, place, shown, limit)
    return shown


def _show(entries: Entries, place: int, shown: set[int], limit: int) -> None:
    """Add the node at `place` and all above it, if there is room for them."""
    line: list[int] = []
    step: int | None = place
    while step is not None and step not in shown:
        line.append(step)
        if len(shown) + len(line) > limit:
            return
        step = entries[step]["parent"]
    shown.update(line)


class _Lines:
    """The lines of a tree of which the nodes `shown` are drawn."""

    def __init__(self, entries: Entries, levels: Sequence[int], shown: set[int], now: float | None) -> None:
        self.entries, self.levels, self.shown = entries, levels, shown
        began = [entry["began"] for entry in entries if entry["began"] is not None]
        ended = [entry["ended"] for entry in entries if entry["ended"] is not None]
        self.zero: float = min(began, default=0.0)
        self.now: float = max([*began, *ended]) if now is None and began else (now or self.zero)
        self.hidden = self._hidden()

    def _hidden(self) -> dict[int, list[int]]:
        """The places of the nodes left out, by that of the nearest node above them that is drawn."""
        found: dict[int, list[int]] = {}
        nearest: list[int] = []
        for place, entry in enumerate(self.entries):
            if place in self.shown:
                nearest.append(place)
            else:
                nearest.append(nearest[entry["parent"]])
                found.setdefault(nearest[place], []).append(place)
        return found

    def __iter__(self) -> Iterator[Line]:
        """Nodes as they stand; what is left out below one follows the last that is drawn below it."""
        above: list[int] = []
        for place in sorted(self.shown):
            while above and self.levels[above[-1]] >= self.levels[place]:
                yield from self._rest(above.pop())
            yield self._line(place)
            above.append(place)
        while above:
            yield from self._rest(above.pop())

    def _line(self, place: int) -> Line:
        entry, level = self.entries[place], self.levels[place]
        name = _clean(entry["name"])
        label = f"{name}.{entry['step'].rpartition('.')[2]}" if entry["step"] else name
        began, ended = self._times(entry)
        words = "" if began is None or ended is None else duration_text(ended - began)
        words += " so far" if words and entry["ended"] is None else ""
        told = f"{label} {entry['state']} {words}".rstrip() + (f", from {began:.3f} s" if began is not None else "")
        told += "".join(f"\n{_clean(each)}" for each in (entry["error"], *entry["notes"]) if each)
        return Line(level, label, entry["state"], began, ended, words, _cut(told, _TOOLTIP_LIMIT))

    def _rest(self, place: int) -> Iterator[Line]:
        """One line for all that is left out below the node at `place`."""
        if places := self.hidden.get(place):
            entries = [self.entries[each] for each in places]
            times = [self._times(entry) for entry in entries]
            began = min((each for each, _ in times if each is not None), default=None)
            ended = max((each for _, each in times if each is not None), default=None)
            counts = Counter(entry["state"] for entry in entries)
            words = " and ".join(f"{count:,} {state}" for state, count in counts.items())
            label = f"... {len(places):,} more"
            yield Line(self.levels[place] + 1, label, "", began, ended, words, f"{label}: {words}")

    def _times(self, entry: Mapping[str, Any]) -> tuple[float | None, float | None]:
        if entry["began"] is None:
            return None, None
        ended = self.now if entry["ended"] is None else entry["ended"]
        return entry["began"] - self.zero, max(ended, entry["began"]) - self.zero


# ---- words


def _clean(text: str) -> str:
    """`text` in one line, without what XML cannot hold and without marks that turn the direction of a line."""
    return "".join(_shown_as(character) for character in text[: 2 * _TOOLTIP_LIMIT])


def _shown_as(character: str) -> str:
    if character.isspace():
        return " "
    if unicodedata.category(character) in ("Cc", "Cs") or character in "\u202a\u202b\u202c\u202d\u202e\ufffe\uffff":
        return "\ufffd"
    return "\ufffd" if "\u2066" <= character <= "\u2069" else character


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
