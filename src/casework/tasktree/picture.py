"""The SVG of a timeline: names on the left, bars on the right, a scale above. No ids, no styles, no scripts, so that
a picture can be shown alone or stand in a page beside others.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from casework.tasktree.timeline import Line

_ROW = 20
_HEAD = 64
_MARGIN = 12
_COLUMN = 7.25  # width of a character of the font below
_INDENT = 2  # columns for each level
_LABEL_COLUMNS = 46  # for indentation and name
_LEVELS = 8  # that are shown by indentation
_CHART = 640
_AFTER = 110  # right of the chart, for the length of the last bar
_FONT = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12"'
_INK, _PALE = "#1f2328", "#6e7781"
# Told apart without colour, too: by the border, and by the mark before the name.
_LOOKS = {
    "COMPLETED": ("✓", 'fill="#4a9d6f" stroke="#2f6b4a"'),
    "EXCEPTION": ("✗", 'fill="#d1493f" stroke="#7a1d16" stroke-width="2"'),
    "TERMINATED": ("■", 'fill="#e3e5e8" stroke="#57606a" stroke-dasharray="3 2"'),
    "ACTIVE": ("…", 'fill="#5b9bd5" stroke="#2a5d8f" stroke-dasharray="8 2"'),
    "PENDING": ("·", 'fill="none" stroke="#6e7781"'),
    "": (" ", 'fill="#f1f2f4" stroke="#b6bcc4"'),
}
_STEPS = (1, 2, 5, 10)
_UNITS = ((1.0, 0.001, "ms"), (300.0, 1.0, "s"), (18_000.0, 60.0, "min"), (432_000.0, 3600.0, "h"))


def picture(lines: Sequence[Line], title: str) -> str:
    """`lines` as an SVG document."""
    left = _MARGIN + _COLUMN * min(_LABEL_COLUMNS, max((_columns(line) for line in lines), default=8)) + _MARGIN
    width, height = left + _CHART + _AFTER, _HEAD + _ROW * len(lines) + _MARGIN
    whole = max((line.ended or 0.0 for line in lines), default=0.0)
    scale = _CHART / whole if whole > 0 else 0.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" role="img" aria-label="{_text(title)}" {_FONT}>',
        f"<title>{_text(title)}</title>",
        f"<desc>{_text(_described(lines))}</desc>",
        f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="20" fill="{_INK}" font-weight="bold">{_text(_fitted(title, 90))}</text>',
        *_legend(lines),
        *_ruler(whole, scale, left, height),
        *(part for row, line in enumerate(lines) for part in _row(line, _HEAD + _ROW * row, left, scale)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _described(lines: Sequence[Line]) -> str:
    """The picture in words, as far as a sentence goes."""
    counts = {state: sum(line.state == state for line in lines) for state in _LOOKS if state}
    told = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    return f"One line for each node: its name, and a bar from its begin to its end. {told or 'No node'}."


def _legend(lines: Sequence[Line]) -> Iterator[str]:
    x = float(_MARGIN)
    for state, (mark, look) in _LOOKS.items():
        if state and any(line.state == state for line in lines):
            yield f'<rect x="{x:.1f}" y="30" width="14" height="10" rx="2" {look}/>'
            yield f'<text x="{x + 19:.1f}" y="39" fill="{_PALE}">{mark} {state}</text>'
            x += 19 + _COLUMN * (len(state) + 4)


# ---- the scale


def _ruler(whole: float, scale: float, left: float, height: int) -> Iterator[str]:
    for seconds, words in ticks(whole):
        x = left + seconds * scale
        yield f'<line x1="{x:.1f}" y1="{_HEAD - 4}" x2="{x:.1f}" y2="{height - _MARGIN}" stroke="#e3e5e8"/>'
        yield f'<text x="{x:.1f}" y="{_HEAD - 8}" fill="{_PALE}" text-anchor="middle">{words}</text>'


def ticks(whole: float) -> list[tuple[float, str]]:
    """Where the scale of a picture of `whole` seconds is marked, and the words there: about six round figures."""
    if not 0 < whole < math.inf:
        return [(0.0, "0 s")]
    factor, unit = next(((factor, unit) for limit, factor, unit in _UNITS if whole < limit), (86_400.0, "d"))
    length = whole / factor
    power = 10.0 ** math.floor(math.log10(length / 6))
    step = next(power * each for each in _STEPS if power * each >= length / 6.001)
    return [(number * step * factor, f"{number * step:g} {unit}") for number in range(int(length / step + 1e-9) + 1)]


# ---- lines


def _row(line: Line, y: int, left: float, scale: float) -> Iterator[str]:
    mark, look = _LOOKS.get(line.state, _LOOKS[""])
    x = _MARGIN + _COLUMN * _INDENT * min(line.level, _LEVELS)
    ink = _INK if line.state else _PALE
    yield f"<g><title>{_text(line.tooltip)}</title>"
    yield f'<text x="{x:.1f}" y="{y + 14}" fill="{ink}" xml:space="preserve">{mark} {_text(_label(line))}</text>'
    start, after = left, left
    if line.began is not None and line.ended is not None:
        start, length = left + line.began * scale, max((line.ended - line.began) * scale, 1.5)
        after = start + length
        yield f'<rect x="{start:.1f}" y="{y + 4}" width="{length:.1f}" height="{_ROW - 8}" rx="2" {look}/>'
    if line.words:  # of nodes left out there may be many words: they stand in the bar
        at = after if line.state else start
        yield f'<text x="{at + 5:.1f}" y="{y + 14}" fill="{_PALE}" font-size="11">{_text(line.words)}</text>'
    yield "</g>"


def _label(line: Line) -> str:
    level = f"(level {line.level}) " if line.level > _LEVELS and line.state else ""
    room = _LABEL_COLUMNS - _INDENT * min(line.level, _LEVELS) - 2
    return _fitted(level + line.label, room)


def _columns(line: Line) -> int:
    return _INDENT * min(line.level, _LEVELS) + 2 + sum(map(_width, _label(line)))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fitted(text: str, room: int) -> str:
    """`text`, its middle left out where it is too long: its begin is its name, its end the ordinal."""
    if sum(map(_width, text)) <= room:
        return text
    tail = text[-6:]
    kept, left = "", room - 1 - sum(map(_width, tail))
    for character in text:
        left -= _width(character)
        if left < 0:
            break
        kept += character
    return f"{kept}…{tail}"


def _text(text: str) -> str:
    return escape(text, quote=True).replace("\n", "&#10;")
