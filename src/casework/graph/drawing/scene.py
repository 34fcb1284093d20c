"""What of a workflow is shown: vertices with their words, ways with their labels, and the same told in sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from casework.graph.manifests import END, AiWorkflow, AiWorkflowSpec, Edge

TEXT_LIMIT = 34
"""Longest line inside a vertex, in characters; the whole text is in the vertex's tooltip."""
LABEL_LIMIT = 40
"""Longest label of a way, in characters."""
TOLD_LIMIT = 100
"""Most sentences of a description: readers of screens get the head of a large graph and its size."""
MISSING = "MISSING"
"""Type of a vertex that an edge names and that is no node."""

_BLANKS = re.compile(r"\s+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_DETAILS = {"AGENT": "agent_ref", "TOOL": "tool", "SUBWORKFLOW": "workflow_ref", "CONDITION": "expression"}


@dataclass(frozen=True)
class Inner:
    """A branch inside a PARALLEL or MAP node."""

    name: str
    type: str
    detail: str = ""


@dataclass(frozen=True)
class Vertex:
    """What is drawn as one shape. `lit`: a run is here now; `visits`: how often it was, None: nobody asked."""

    id: str
    type: str
    detail: str = ""
    inner: tuple[Inner, ...] = ()
    lit: bool = False
    visits: int | None = None


@dataclass(frozen=True)
class Way:
    """An arrow from a vertex to another, dashed where it is followed on an error."""

    source: str
    target: str
    label: str = ""
    on_error: bool = False


@dataclass(frozen=True)
class Scene:
    """All of the picture; the first vertex is where a run begins."""

    name: str
    vertices: tuple[Vertex, ...]
    ways: tuple[Way, ...]
    sentences: tuple[str, ...] = field(default=())


def scene(workflow: AiWorkflow, current: str | None = None, visits: Mapping[str, int] | None = None) -> Scene:
    """What a picture of `workflow` shows. It need not be admitted: what an edge names and is not there is shown so."""
    spec = workflow.spec
    vertices = list(_vertices(spec, current, visits))
    ways = _ways(spec)
    known = {vertex.id for vertex in vertices}
    for way in ways:
        for name in (way.source, way.target):
            if name not in known:
                known.add(name)
                kind = "END" if name == END else MISSING
                vertices.append(
                    Vertex(name, kind, "" if kind == "END" else "there is no such node", lit=name == current)
                )
    vertices.sort(key=lambda vertex: (vertex.id != spec.initial_node, vertex.type == "END"))
    return Scene(workflow.name, tuple(vertices), ways, tuple(_told(workflow.name, vertices, ways)))


def _vertices(spec: AiWorkflowSpec, current: str | None, visits: Mapping[str, int] | None) -> Iterator[Vertex]:
    seen: set[str] = set()
    for node in spec.nodes:
        if node.id not in seen:
            seen.add(node.id)
            times = None if visits is None else visits.get(node.id, 0)
            yield Vertex(node.id, node.type, _detail(node), _inner(node), node.id == current, times)


def _inner(node: Any) -> tuple[Inner, ...]:
    return tuple(Inner(one.id, one.type, _detail(one)) for one in getattr(node, "branches", None) or ())


def _detail(node: Any) -> str:
    """The one fact about a node that says most."""
    if node.type == "MAP":
        return f"each of {getattr(node, 'items', None) or '?'}"
    if node.type == "WAIT":
        duration, signal = getattr(node, "duration", None), getattr(node, "signal", None)
        both = (f"signal {signal}" if signal else "", f"{duration} s" if _number(duration) else str(duration or ""))
        return one_line(" or ".join(part for part in both if part))
    return one_line(getattr(node, _DETAILS.get(node.type, ""), None) or "")


def _number(value: object) -> bool:
    return not isinstance(value, str) and value is not None


def _ways(spec: AiWorkflowSpec) -> tuple[Way, ...]:
    """The edges, and the way to the end that a node without edges has."""
    made = [_way(edge) for edge in spec.edges]
    leaving = {way.source for way in made if not way.on_error}
    ending = dict.fromkeys(node.id for node in spec.nodes if node.id not in leaving)
    return (*made, *(Way(name, END) for name in ending))


def _way(edge: Edge) -> Way:
    condition = one_line(edge.condition)
    return Way(edge.source, edge.target, condition or ("on error" if edge.on_error else ""), edge.on_error)


def _told(name: str, vertices: Iterable[Vertex], ways: tuple[Way, ...]) -> Iterator[str]:
    shown = list(vertices)
    nodes = [vertex for vertex in shown if vertex.type not in ("END", MISSING)]
    yield f"Workflow {name}: {len(nodes)} node{'s'[: len(nodes) != 1]}, beginning at {shown[0].id}."
    leaving: dict[str, list[Way]] = {}
    for way in ways:
        leaving.setdefault(way.source, []).append(way)
    for vertex in nodes[:TOLD_LIMIT]:
        yield _sentence(vertex, leaving.get(vertex.id, []))
    if len(nodes) > TOLD_LIMIT:
        yield f"And {len(nodes) - TOLD_LIMIT} more nodes."


def _sentence(vertex: Vertex, ways: list[Way]) -> str:
    inside = f" with {', '.join(inner.name for inner in vertex.inner)} inside" if vertex.inner else ""
    to = "; ".join(f"to {way.target}{' when ' + way.label if way.label else ''}" for way in ways)
    times = "" if vertex.visits is None else f" Visited {vertex.visits} times."
    here = " The run is here now." if vertex.lit else ""
    return f"{vertex.id}, {vertex.type}{inside}: {to}.{times}{here}"


def one_line(value: object) -> str:
    """A value as one line without characters that no XML can hold or that turn the text around."""
    text = value if isinstance(value, str) else json.dumps(str(value))
    return _CONTROL.sub("\ufffd", _BLANKS.sub(" ", text)).strip()


def short(text: str, limit: int = TEXT_LIMIT) -> str:
    """`text`, with an ellipsis where it is too long to be read in a picture."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
