"""A workflow as SVG: the scene, laid out from above to below, or from left to right where it would be very wide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from casework.graph.drawing.layers import Chain, Layered, Spot, layered
from casework.graph.drawing.places import across, along
from casework.graph.drawing.scene import LABEL_LIMIT, Scene, Vertex, Way, scene, short
from casework.graph.drawing.shapes import SMALL_WIDTH, Size, depth, drawn, size_of, spread, width_of
from casework.graph.manifests import END, AiWorkflow

WIDE = 1200.0
"""From this width on, in pixels, a picture is turned where that makes it narrower."""
_MARGIN = 24.0
_GAP, _LAYER_GAP, _SIDEWAYS_GAP = 28.0, 22.0, 44.0
_LABEL_HEIGHT = 18.0
_LOOP = 30.0
"""How far a way from a vertex to itself stands out."""

_STYLE = """
.casework-graph{font-family:system-ui,"Segoe UI","Helvetica Neue",Arial,"DejaVu Sans",sans-serif}
.casework-graph text{text-anchor:middle;fill:#1f2937}
.casework-graph .cw-name{font-size:14px;font-weight:600}
.casework-graph .cw-small,.casework-graph .cw-label{font-size:11px;fill:#4b5563}
.casework-graph .cw-paper{fill:#fff}
.casework-graph .cw-shape{fill:#f3f4f6;stroke:#6b7280;stroke-width:1.5}
.casework-graph .cw-line,.casework-graph .cw-way{fill:none;stroke:#6b7280;stroke-width:1.5}
.casework-graph .cw-error{stroke:#c92a2a;stroke-dasharray:6 4}
.casework-graph .cw-head{fill:#6b7280}
.casework-graph .cw-agent>.cw-shape{fill:#e7ebff;stroke:#4c6ef5}
.casework-graph .cw-tool>.cw-shape{fill:#dff5ec;stroke:#0ca678}
.casework-graph .cw-condition>.cw-shape{fill:#fff3d6;stroke:#e67700}
.casework-graph .cw-human-approval>.cw-shape{fill:#f8e8fb;stroke:#be4bdb}
.casework-graph .cw-subworkflow>.cw-shape{fill:#def3f7;stroke:#1098ad}
.casework-graph .cw-missing>.cw-shape{stroke:#c92a2a;stroke-dasharray:4 4}
.casework-graph .cw-lit>.cw-shape{fill:#ffe0b8;stroke:#d9480f;stroke-width:4}
.casework-graph .cw-badge{fill:#1f2937}
.casework-graph .cw-count{font-size:11px;font-weight:600;fill:#fff}
@media(prefers-color-scheme:dark){
.casework-graph text{fill:#f3f4f6}
.casework-graph .cw-small,.casework-graph .cw-label{fill:#cbd5e1}
.casework-graph .cw-paper{fill:#111827}
.casework-graph .cw-shape{fill:#1f2937;stroke:#94a3b8}
.casework-graph .cw-line,.casework-graph .cw-way{stroke:#94a3b8}
.casework-graph .cw-error{stroke:#ff8787}
.casework-graph .cw-head{fill:#94a3b8}
.casework-graph .cw-agent>.cw-shape{fill:#243056}
.casework-graph .cw-tool>.cw-shape{fill:#12392e}
.casework-graph .cw-condition>.cw-shape{fill:#43330f}
.casework-graph .cw-human-approval>.cw-shape{fill:#3d2145}
.casework-graph .cw-subworkflow>.cw-shape{fill:#0f3840}
.casework-graph .cw-lit>.cw-shape{fill:#5c2f0c;stroke:#ff922b}
.casework-graph .cw-badge{fill:#f3f4f6}
.casework-graph .cw-count{fill:#111827}
}
"""

Point = tuple[float, float]


def svg(workflow: AiWorkflow, current: str | None = None, visits: Mapping[str, int] | None = None) -> str:
    """The workflow as an SVG document, with a line break at its end; it stands alone and can stand inside a page.

    `current` is the node that a run is at, drawn lit; `visits` is how often each node was entered, drawn as a count.
    Groups carry `data-node` and `data-branch`, so that a page can find them.
    """
    shown = scene(workflow, current, visits)
    picture = _laid_out(shown, sideways=False)
    if picture.width > WIDE:
        turned = _laid_out(shown, sideways=True)
        picture = turned if turned.width < picture.width else picture
    return "\n".join(_document(shown, picture)) + "\n"


@dataclass(frozen=True)
class _Picture:
    """A scene with a place for everything. `band`: first and last point of each spot's layer along the flow."""

    sideways: bool
    width: float
    height: float
    made: Layered
    sizes: Mapping[str, Size]
    middles: Mapping[Spot, Point]
    bands: Mapping[Spot, Point]


def _laid_out(shown: Scene, sideways: bool) -> _Picture:
    names = [vertex.id for vertex in shown.vertices]
    made = layered(names, [(way.source, way.target) for way in shown.ways], END)
    sizes = {vertex.id: size_of(vertex) for vertex in shown.vertices}
    boxes = _boxes(shown, made, sizes, sideways)
    flow, cross = (0, 1) if sideways else (1, 0)
    thick = {spot: size[flow] for spot, size in boxes.items()}
    aside = across(made, {spot: size[cross] for spot, size in boxes.items()}, _GAP)
    level = along(made, thick, _SIDEWAYS_GAP if sideways else _LAYER_GAP)
    middles = {spot: _turned((aside[spot] + _MARGIN, level[spot] + _MARGIN), sideways) for spot in boxes}
    bands: dict[Spot, Point] = {}
    for layer in made.layers:
        half = max((thick[spot] for spot in layer), default=0.0) / 2
        bands.update((spot, (level[spot] + _MARGIN - half, level[spot] + _MARGIN + half)) for spot in layer)
    width, height = (max(middles[spot][i] + boxes[spot][i] / 2 for spot in boxes) + _MARGIN for i in (0, 1))
    return _Picture(sideways, width, height, made, sizes, middles, bands)


def _boxes(shown: Scene, made: Layered, sizes: Mapping[str, Size], sideways: bool) -> dict[Spot, Size]:
    """The room of every spot: that of its words, and beside a vertex that of a way to itself."""
    boxes: dict[Spot, Size] = {name: size for name, size in sizes.items()}  # noqa: C416  # as spots
    for way, chain in zip(shown.ways, made.chains, strict=True):
        label = (width_of(short(way.label, LABEL_LIMIT), SMALL_WIDTH) + 10, _LABEL_HEIGHT) if way.label else (0.0, 0.0)
        if chain is None:
            (wide, high), room = boxes[way.source], 2 * _LOOP
            more = (0.0, room + 2 * label[1]) if sideways else (room + 2 * label[0], 0.0)
            boxes[way.source] = (wide + more[0], high + more[1])
            continue
        boxes.update({spot: label if place == 0 else (0.0, 0.0) for place, spot in enumerate(chain.spots[1:-1])})
    return boxes


def _turned(point: Point, sideways: bool) -> Point:
    """(across, along) as (x, y), and back."""
    return (point[1], point[0]) if sideways else point


def _document(shown: Scene, picture: _Picture) -> Iterator[str]:
    width, height, name = round(picture.width), round(picture.height), escape(shown.name)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="casework-graph" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" aria-labelledby="cw-{name}-title cw-{name}-desc">'
    )
    yield f'<title id="cw-{name}-title">Workflow {name}</title>'
    yield f'<desc id="cw-{name}-desc">{escape(" ".join(shown.sentences))}</desc>'
    yield f"<style>{_STYLE}</style>"
    yield (
        f'<defs><marker id="cw-{name}-head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
        'orient="auto"><path class="cw-head" d="M0 0L10 5L0 10z"/></marker></defs>'
    )
    yield f'<rect class="cw-paper" width="{width}" height="{height}"/>'
    lines, labels = _drawn_ways(shown, picture)
    yield from lines
    for vertex in shown.vertices:
        yield from drawn(vertex, *picture.middles[vertex.id], picture.sizes[vertex.id])
    yield from labels
    yield "</svg>"


def _drawn_ways(shown: Scene, picture: _Picture) -> tuple[list[str], list[str]]:
    ports = _ports(shown, picture)
    lines: list[str] = []
    labels: list[str] = []
    for number, (way, chain) in enumerate(zip(shown.ways, picture.made.chains, strict=True)):
        if chain is None:
            path, place = _loop(picture, way.source)
        else:
            points = _points(picture, chain, ports[number])
            path = _curve(points[::-1] if chain.turned else points, picture.sideways)
            place = picture.middles[chain.spots[1]]
        style = "cw-way cw-error" if way.on_error else "cw-way"
        lines.append(f'<path class="{style}" marker-end="url(#cw-{escape(shown.name)}-head)" d="{path}"/>')
        if way.label:
            labels += _label(way, place, beside=chain is None and not picture.sideways)
    return lines, labels


def _ports(shown: Scene, picture: _Picture) -> dict[int, tuple[Point, Point]]:
    """Where each way leaves its upper vertex and meets its lower one: side by side, in the order of where it goes."""
    axis = 1 if picture.sideways else 0
    known = {vertex.id: vertex for vertex in shown.vertices}
    sides: dict[tuple[str, bool], list[tuple[float, int]]] = {}
    for number, chain in enumerate(picture.made.chains):
        if chain:
            first, last = str(chain.spots[0]), str(chain.spots[-1])
            sides.setdefault((first, True), []).append((picture.middles[chain.spots[1]][axis], number))
            sides.setdefault((last, False), []).append((picture.middles[chain.spots[-2]][axis], number))
    found: dict[tuple[int, bool], Point] = {}
    for (name, leaving), members in sides.items():
        for place, (_, number) in enumerate(sorted(members)):
            share = (place + 0.5) / len(members) - 0.5
            found[number, leaving] = _port(picture, known[name], share, leaving)
    return {number: (found[number, True], found[number, False]) for number, leaving in found if leaving}


def _port(picture: _Picture, vertex: Vertex, share: float, leaving: bool) -> Point:
    size, middle = picture.sizes[vertex.id], picture.middles[vertex.id]
    aside = share * spread(vertex, size, picture.sideways)
    far = depth(vertex, size, aside, picture.sideways) * (1 if leaving else -1)
    dx, dy = (far, aside) if picture.sideways else (aside, far)
    return middle[0] + dx, middle[1] + dy


def _points(picture: _Picture, chain: Chain, ports: tuple[Point, Point]) -> list[Point]:
    points = [ports[0]]
    for spot in chain.spots[1:-1]:
        place, _ = _turned(picture.middles[spot], picture.sideways)
        points += [_turned((place, level), picture.sideways) for level in picture.bands[spot]]
    return [*points, ports[1]]


def _curve(points: list[Point], sideways: bool) -> str:
    """A smooth path that runs with the flow at every point."""
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        if abs(x - to_x) < 0.5 or abs(y - to_y) < 0.5:
            parts.append(f"L{to_x:.1f} {to_y:.1f}")
            continue
        mid_x, mid_y = (x + to_x) / 2, (y + to_y) / 2
        bend = (
            f"{mid_x:.1f} {y:.1f} {mid_x:.1f} {to_y:.1f}" if sideways else f"{x:.1f} {mid_y:.1f} {to_x:.1f} {mid_y:.1f}"
        )
        parts.append(f"C{bend} {to_x:.1f} {to_y:.1f}")
    return "".join(parts)


def _loop(picture: _Picture, name: str) -> tuple[str, Point]:
    """The path of a way from a vertex to itself, and where its label stands."""
    (x, y), (width, height) = picture.middles[name], picture.sizes[name]
    if picture.sideways:
        at, low = y + height / 2, y + height / 2 + _LOOP
        return f"M{x - 14:.1f} {at:.1f}C{x - 20:.1f} {low:.1f} {x + 20:.1f} {low:.1f} {x + 14:.1f} {at:.1f}", (
            x,
            low + 4,
        )
    at, far = x + width / 2, x + width / 2 + _LOOP
    path = f"M{at - 4:.1f} {y - 10:.1f}C{far:.1f} {y - 24:.1f} {far:.1f} {y + 24:.1f} {at - 4:.1f} {y + 10:.1f}"
    return path, (far - 2, y)


def _label(way: Way, place: Point, *, beside: bool) -> Iterator[str]:
    text = short(way.label, LABEL_LIMIT)
    width = width_of(text, SMALL_WIDTH) + 6
    x, y = (place[0] + width / 2, place[1]) if beside else place
    yield f'<g class="cw-label-group"><title>{escape(way.label)}</title>'
    yield f'<rect class="cw-paper" x="{x - width / 2:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16"/>'
    yield f'<text class="cw-label" x="{x:.1f}" y="{y + 4:.1f}">{escape(text)}</text></g>'
