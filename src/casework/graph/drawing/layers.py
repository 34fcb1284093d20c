"""Which layer each vertex stands in, and in which order: the first half of a layered drawing after Sugiyama.

Ways that lead back (found by depth first from the start, in the order of the edges) are turned around while layers are
given. Vertices stand in even layers. Each way is cut into a chain of bends, one a layer; the bend in the first odd
layer carries its label, so that a label has a place of its own and covers nothing. Order is by the median of the
neighbours, swept down and up, and the order with the fewest crossings is kept.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

Spot = Hashable
"""What stands in a layer: a vertex's id, or a bend as (number of the way, layer)."""
SWEEPS = 12


@dataclass(frozen=True)
class Chain:
    """A way through the layers from above to below; `turned`: the arrow points up."""

    spots: tuple[Spot, ...]
    turned: bool


@dataclass(frozen=True)
class Layered:
    """Every spot in its layer, in order; the chains in the order of the ways, None for a way to its own vertex."""

    layers: list[list[Spot]]
    chains: list[Chain | None]

    def segments(self) -> list[tuple[Spot, Spot]]:
        """Each neighbouring pair of the chains, the upper first."""
        return [pair for chain in self.chains if chain for pair in pairwise(chain.spots)]


def layered(vertices: Sequence[str], ways: Sequence[tuple[str, str]], last: str | None = None) -> Layered:
    """Layers for `vertices`, the first of which is the start; `last` is put below all others."""
    turned = _leading_back(vertices, ways)
    downward = [(b, a) if back else (a, b) for (a, b), back in zip(ways, turned, strict=True)]
    rank = _ranks(vertices, [(a, b) for a, b in downward if a != b], last)
    layers: list[list[Spot]] = [[] for _ in range(max(rank.values(), default=0) + 1)]
    for name in vertices:
        layers[rank[name]].append(name)
    chains: list[Chain | None] = []
    for number, (a, b) in enumerate(downward):
        if a == b:
            chains.append(None)
            continue
        bends: list[Spot] = [(number, level) for level in range(rank[a] + 1, rank[b])]
        for level, bend in enumerate(bends, rank[a] + 1):
            layers[level].append(bend)
        chains.append(Chain((a, *bends, b), turned[number]))
    made = Layered(layers, chains)
    return Layered(_ordered(made), chains)


def _leading_back(vertices: Sequence[str], ways: Sequence[tuple[str, str]]) -> list[bool]:
    """For each way whether it leads to a vertex that is being visited: without these there is no cycle."""
    leaving: dict[str, list[int]] = {name: [] for name in vertices}
    for index, (a, _) in enumerate(ways):
        leaving[a].append(index)
    back = [False] * len(ways)
    state: dict[str, int] = {}
    for root in vertices:
        if root in state:
            continue
        state[root] = 1
        stack = [(root, iter(leaving[root]))]
        while stack:
            name, rest = stack[-1]
            number = next(rest, None)
            if number is None:
                state[name] = 2
                stack.pop()
                continue
            target = ways[number][1]
            if state.get(target) == 1:
                back[number] = target != name
            elif target not in state:
                state[target] = 1
                stack.append((target, iter(leaving[target])))
    return back


def _ranks(vertices: Sequence[str], ways: Sequence[tuple[str, str]], last: str | None) -> dict[str, int]:
    """Twice the length of the longest way to each vertex; then each is pulled down towards what follows it."""
    below: dict[str, list[str]] = {name: [] for name in vertices}
    above: dict[str, list[str]] = {name: [] for name in vertices}
    for a, b in ways:
        below[a].append(b)
        above[b].append(a)
    missing = {name: len(above[name]) for name in vertices}
    line = [name for name in vertices if not missing[name]]
    rank = dict.fromkeys(vertices, 0)
    for name in line:  # grows while it is read: a topological order
        for after in below[name]:
            rank[after] = max(rank[after], rank[name] + 2)
            missing[after] -= 1
            if not missing[after]:
                line.append(after)
    if last in rank:
        rank[last] = max((rank[name] + 2 for name in vertices if name != last), default=0)
    for name in reversed(line):
        if below[name] and not above[name] and name != vertices[0]:
            rank[name] = min(rank[after] for after in below[name]) - 2
    return rank


def _ordered(made: Layered) -> list[list[Spot]]:
    above: dict[Spot, list[Spot]] = {}
    below: dict[Spot, list[Spot]] = {}
    for a, b in made.segments():
        below.setdefault(a, []).append(b)
        above.setdefault(b, []).append(a)
    layers = [list(layer) for layer in made.layers]
    best, fewest = [list(layer) for layer in layers], _crossings(layers, below)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        levels = range(1, len(layers)) if down else range(len(layers) - 2, -1, -1)
        for level in levels:
            layers[level] = _by_median(layers[level], layers[level + (-1 if down else 1)], above if down else below)
        crossings = _crossings(layers, below)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _by_median(layer: list[Spot], fixed: list[Spot], neighbours: dict[Spot, list[Spot]]) -> list[Spot]:
    """The layer sorted by the middle of each spot's neighbours; a spot without any keeps its place."""
    place = {spot: index for index, spot in enumerate(fixed)}
    keys: dict[Spot, float] = {}
    for index, spot in enumerate(layer):
        found = sorted(place[near] for near in neighbours.get(spot, ()) if near in place)
        middle = len(found) // 2
        keys[spot] = (found[(len(found) - 1) // 2] + found[middle]) / 2 if found else index
    return sorted(layer, key=lambda spot: keys[spot])


def _crossings(layers: list[list[Spot]], below: dict[Spot, list[Spot]]) -> int:
    """How many pairs of segments cross, over all neighbouring layers."""
    count = 0
    for upper, lower in pairwise(layers):
        place = {spot: index for index, spot in enumerate(lower)}
        ends: list[int] = []
        for spot in upper:
            targets = sorted(place[near] for near in below.get(spot, ()))
            count += sum(len(ends) - bisect_left(ends, target + 1) for target in targets)
            for target in targets:
                insort(ends, target)
    return count
