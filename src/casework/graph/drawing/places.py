"""Where every spot stands: the second half of a layered drawing.

Each spot wants to stand at the middle of its neighbours; in a layer the order and the gaps are kept, and the sum of
the squared distances to the wishes is the least there is (pooling of neighbours that would overlap). Layers are swept
down and up a few times. All is reckoned for a picture from above to below; `turned` sides are the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from casework.graph.drawing.layers import Layered, Spot

SWEEPS = 10
BEND_WEIGHT = 4.0
"""How much more a bend insists on its place than a vertex: long ways become straight."""


def across(made: Layered, size: Mapping[Spot, float], gap: float) -> dict[Spot, float]:
    """The middle of each spot across the layers, from 0 at the outermost edge; `size` is its extent that way."""
    above: dict[Spot, list[Spot]] = {}
    below: dict[Spot, list[Spot]] = {}
    for a, b in made.segments():
        below.setdefault(a, []).append(b)
        above.setdefault(b, []).append(a)
    busy = {spot: len(above.get(spot, ())) + len(below.get(spot, ())) for spot in size}
    places = _packed(made.layers, size, gap)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        if sweep >= SWEEPS - 2:
            near = {spot: [*above.get(spot, ()), *below.get(spot, ())] for spot in size}
        for layer in made.layers if down else reversed(made.layers):
            wishes = [
                _middle([(places[one], 1 / busy[one]) for one in near.get(spot, ())], places[spot]) for spot in layer
            ]
            weights = [BEND_WEIGHT if isinstance(spot, tuple) else 1.0 for spot in layer]
            places.update(zip(layer, _apart(wishes, weights, [size[spot] for spot in layer], gap), strict=True))
    left = min((places[spot] - size[spot] / 2 for spot in places), default=0.0)
    return {spot: place - left for spot, place in places.items()}


def along(made: Layered, size: Mapping[Spot, float], gap: float) -> dict[Spot, float]:
    """The middle of each spot along the layers: each layer is as thick as its thickest spot, with `gap` between."""
    places: dict[Spot, float] = {}
    edge = 0.0
    for layer in made.layers:
        thick = max((size[spot] for spot in layer), default=0.0)
        places.update((spot, edge + thick / 2) for spot in layer)
        edge += thick + gap
    return places


def _packed(layers: Sequence[Sequence[Spot]], size: Mapping[Spot, float], gap: float) -> dict[Spot, float]:
    places: dict[Spot, float] = {}
    for layer in layers:
        whole = sum(size[spot] + gap for spot in layer)
        edge = -whole / 2
        for spot in layer:
            places[spot] = edge + size[spot] / 2
            edge += size[spot] + gap
    return places


def _middle(found: Sequence[tuple[float, float]], otherwise: float) -> float:
    """The mean of places with weights: a label stands nearer to a vertex with few ways than to one with many."""
    weight = sum(each for _, each in found)
    return sum(place * each for place, each in found) / weight if weight else otherwise


def _apart(wishes: Sequence[float], weights: Sequence[float], sizes: Sequence[float], gap: float) -> list[float]:
    """Places nearest to the wishes, in order and not overlapping: isotonic regression by pooling."""
    offsets = [0.0]
    for a, b in pairwise(sizes):
        offsets.append(offsets[-1] + (a + b) / 2 + gap)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for wish, weight, offset in zip(wishes, weights, offsets, strict=False):
        mean, heavy, count = wish - offset, weight, 1
        while pools and pools[-1][0] > mean:
            before, weighs, many = pools.pop()
            mean = (before * weighs + mean * heavy) / (weighs + heavy)
            heavy, count = heavy + weighs, count + many
        pools.append((mean, heavy, count))
    flat = [mean for mean, _, count in pools for _ in range(count)]
    return [base + offset for base, offset in zip(flat, offsets, strict=False)]
