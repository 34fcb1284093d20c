"""How each type of node looks: its size from its words, its outline, its words in it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from html import escape

from casework.graph.drawing.scene import MISSING, Inner, Vertex, short

LINE, SMALL_LINE = 18.0, 15.0
NAME_WIDTH, SMALL_WIDTH = 7.9, 6.3
"""Width of a character of a name and of small print, in pixels; wide ones count twice."""
_PADDING = 16.0
_CHIP_HEIGHT, _CHIP_GAP = 40.0, 10.0
_BEAK = 16.0
"""How far the sides of a hexagon stick out."""

Size = tuple[float, float]


def width_of(text: str, each: float) -> float:
    """About how wide a text is, in pixels."""
    return sum(each * (2 if unicodedata.east_asian_width(char) in "WF" else 1) for char in text)


def small(vertex: Vertex | Inner) -> str:
    """The line of small print: the type, and the fact that says most."""
    if vertex.type == MISSING:
        return vertex.detail
    return f"{vertex.type} · {short(vertex.detail)}" if vertex.detail else vertex.type


def size_of(vertex: Vertex) -> Size:
    """Width and height, in pixels."""
    if vertex.type == "END":
        return 46.0, 46.0
    words = max(width_of(short(vertex.id), NAME_WIDTH), width_of(small(vertex), SMALL_WIDTH))
    if vertex.inner:
        chip, columns, rows = _grid(vertex.inner)
        inside = columns * (chip + _CHIP_GAP) - _CHIP_GAP
        return max(words, inside) + 2 * _PADDING, 50.0 + rows * (_CHIP_HEIGHT + _CHIP_GAP) + 4
    if vertex.type == "CONDITION":
        return words * 1.25 + 70, 84.0
    beak = 2 * _BEAK if vertex.type in ("HUMAN_APPROVAL", "SUBWORKFLOW", "WAIT") else 0.0
    return max(words + 2 * _PADDING + beak, 90.0), 50.0


def depth(vertex: Vertex, size: Size, aside: float, sideways: bool) -> float:
    """How far the outline is from the middle, where a way meets it `aside` of the middle line.

    `sideways`: the way comes from left or right, else from above or below.
    """
    width, height = size
    half, span = (width / 2, height / 2) if sideways else (height / 2, width / 2)
    share = min(abs(aside) / span, 1.0)
    if vertex.type == "CONDITION":
        return half * (1 - share)
    if vertex.type == "END":
        return half * math.sqrt(1 - share * share)
    if vertex.type == "HUMAN_APPROVAL" and sideways:
        return half - _BEAK * share
    return half


def spread(vertex: Vertex, size: Size, sideways: bool) -> float:
    """Over how much of a side its ways are spread, in pixels."""
    if vertex.type == "END":
        return 24.0
    span = size[1] if sideways else size[0]
    return span * (0.5 if vertex.type == "CONDITION" else 0.6)


def _grid(inner: tuple[Inner, ...]) -> tuple[float, int, int]:
    """Width of a chip, columns and rows."""
    chip = max(max(width_of(short(one.name), NAME_WIDTH), width_of(small(one), SMALL_WIDTH)) for one in inner) + 20
    columns = len(inner) if len(inner) <= 3 else math.ceil(math.sqrt(len(inner)))
    return chip, columns, math.ceil(len(inner) / columns)


def drawn(vertex: Vertex, x: float, y: float, size: Size) -> Iterator[str]:
    """The vertex as SVG, its middle at (x, y)."""
    width, height = size
    kind = vertex.type.lower().replace("_", "-")
    yield f'<g class="cw-node cw-{escape(kind)}{" cw-lit" if vertex.lit else ""}" data-node="{escape(vertex.id)}">'
    yield f"<title>{escape(_tip(vertex))}</title>"
    yield from _outline(vertex.type, x - width / 2, y - height / 2, width, height)
    if vertex.type == "END":
        yield _text(x, y + 4, "end", "cw-small")
    else:
        top = y - height / 2 + 22 if vertex.inner else y - 3
        yield _text(x, top, short(vertex.id), "cw-name")
        yield _text(x, top + SMALL_LINE, small(vertex), "cw-small")
        yield from _chips(vertex, x, y - height / 2 + 48)
    if vertex.visits:
        yield from _badge(vertex.visits, x + width / 2, y - height / 2)
    yield "</g>"


def _tip(vertex: Vertex) -> str:
    if vertex.type == "END":
        return "The end of the run"
    words = " ".join(part for part in (vertex.type, vertex.id, vertex.detail) if part)
    return f"{words}, visited {vertex.visits} times" if vertex.visits else words


def _outline(kind: str, x: float, y: float, width: float, height: float) -> Iterator[str]:
    right, bottom, mid_x, mid_y = x + width, y + height, x + width / 2, y + height / 2
    if kind == "END":
        yield f'<circle class="cw-shape" cx="{mid_x:.1f}" cy="{mid_y:.1f}" r="{width / 2:.1f}"/>'
        yield f'<circle class="cw-line" cx="{mid_x:.1f}" cy="{mid_y:.1f}" r="{width / 2 - 4:.1f}"/>'
    elif kind == "CONDITION":
        yield _polygon((mid_x, y), (right, mid_y), (mid_x, bottom), (x, mid_y))
    elif kind == "HUMAN_APPROVAL":
        left, far = x + _BEAK, right - _BEAK
        yield _polygon((left, y), (far, y), (right, mid_y), (far, bottom), (left, bottom), (x, mid_y))
    else:
        round_ = {"AGENT": 14.0, "WAIT": height / 2, "PARALLEL": 6.0, "MAP": 6.0}.get(kind, 2.0)
        yield _rect(x, y, width, height, round_, "cw-shape")
        if kind == "TOOL":
            yield from (_rule(at, y, bottom) for at in (x + 7, right - 7))
        if kind == "SUBWORKFLOW":
            yield _rect(x + 4, y + 4, width - 8, height - 8, 2, "cw-line")


def _chips(vertex: Vertex, x: float, top: float) -> Iterator[str]:
    if not vertex.inner:
        return
    width, columns, _ = _grid(vertex.inner)
    left = x - (columns * (width + _CHIP_GAP) - _CHIP_GAP) / 2
    for number, one in enumerate(vertex.inner):
        at_x = left + (number % columns) * (width + _CHIP_GAP)
        at_y = top + (number // columns) * (_CHIP_HEIGHT + _CHIP_GAP)
        kind = one.type.lower().replace("_", "-")
        yield f'<g class="cw-branch cw-{escape(kind)}" data-branch="{escape(one.name)}">'
        yield f"<title>{escape(f'{one.type} {one.name} {one.detail}'.strip())}</title>"
        if vertex.type == "MAP":  # a pile: one for each item
            yield _rect(at_x + 4, at_y + 4, width, _CHIP_HEIGHT, 8, "cw-shape")
        yield _rect(at_x, at_y, width, _CHIP_HEIGHT, 8, "cw-shape")
        yield _text(at_x + width / 2, at_y + 17, short(one.name), "cw-name")
        yield _text(at_x + width / 2, at_y + 17 + SMALL_LINE, small(one), "cw-small")
        yield "</g>"


def _badge(visits: int, x: float, y: float) -> Iterator[str]:
    text = f"\N{MULTIPLICATION SIGN}{visits}"
    width = width_of(text, SMALL_WIDTH) + 12
    yield _rect(x - width + 8, y - 9, width, 18, 9, "cw-badge")
    yield _text(x - width / 2 + 8, y + 4, text, "cw-count")


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, round_: float, style: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round_:.1f}"'
    return f'<rect class="{style}" {place}/>'


def _rule(x: float, top: float, bottom: float) -> str:
    return f'<path class="cw-line" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>'


def _polygon(*points: tuple[float, float]) -> str:
    listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon class="cw-shape" points="{listed}"/>'
