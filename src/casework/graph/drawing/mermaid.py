"""A workflow as Mermaid text, for pages and editors that draw it themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from casework.graph.drawing.scene import LABEL_LIMIT, MISSING, Inner, Scene, Vertex, Way, scene, short
from casework.graph.manifests import AiWorkflow

_SHAPES = {
    "AGENT": "({})",
    "TOOL": "[[{}]]",
    "CONDITION": "{{{}}}",
    "HUMAN_APPROVAL": "{{{{{}}}}}",
    "SUBWORKFLOW": "[/{}/]",
    "WAIT": "([{}])",
    "END": "((({})))",
    MISSING: ">{}]",
}
_STYLES = (
    "classDef lit stroke:#d9480f,stroke-width:4px",
    "classDef missing stroke-dasharray:4 4,color:#c92a2a",
)


def mermaid(workflow: AiWorkflow, current: str | None = None, visits: Mapping[str, int] | None = None) -> str:
    """The workflow as a Mermaid flowchart, with a line break at its end.

    `current` is the node that a run is at, drawn lit; `visits` is how often each node was entered. Ids are replaced
    by `n0`, `n1`, ... since Mermaid reads words such as `end` as its own; the names are in the labels.
    """
    shown = scene(workflow, current, visits)
    return "\n".join(_lines(shown)) + "\n"


def _lines(shown: Scene) -> Iterator[str]:
    ids = {vertex.id: f"n{number}" for number, vertex in enumerate(shown.vertices)}
    yield "flowchart TD"
    yield f"    accTitle: {_plain(f'Workflow {shown.name}')}"
    yield f"    accDescr: {_plain(shown.sentences[0])}"
    for vertex in shown.vertices:
        yield from _vertex(ids[vertex.id], vertex)
    for way in shown.ways:
        yield f"    {ids[way.source]} {_arrow(way)} {ids[way.target]}"
    lit = [ids[vertex.id] for vertex in shown.vertices if vertex.lit]
    missing = [ids[vertex.id] for vertex in shown.vertices if vertex.type == MISSING]
    for style, members in zip(_STYLES, (lit, missing), strict=True):
        if members:
            yield f"    {style}"
            yield f"    class {','.join(members)} {style.split()[1]}"


def _vertex(name: str, vertex: Vertex) -> Iterator[str]:
    if not vertex.inner:
        yield f"    {name}{_shape(vertex.type).format(_label(vertex))}"
        return
    yield f"    subgraph {name}[{_label(vertex)}]"
    for number, inner in enumerate(vertex.inner):
        yield f"        {name}_{number}{_shape(inner.type).format(_inner_label(inner))}"
    yield "    end"


def _shape(kind: str) -> str:
    return _SHAPES.get(kind, "[{}]")


def _label(vertex: Vertex) -> str:
    if vertex.type == "END":
        return _quoted(["end"])
    times = [f"{vertex.visits} visit{'s'[: vertex.visits != 1]}"] if vertex.visits else []
    return _quoted([vertex.id, f"{vertex.type} {short(vertex.detail)}".strip(), *times])


def _inner_label(inner: Inner) -> str:
    return _quoted([inner.name, f"{inner.type} {short(inner.detail)}".strip()])


def _arrow(way: Way) -> str:
    line = "-.->" if way.on_error else "-->"
    return f"{line}|{_quoted([short(way.label, LABEL_LIMIT)])}|" if way.label else line


def _quoted(lines: list[str]) -> str:
    return '"' + "<br/>".join(_escaped(line) for line in lines) + '"'


def _escaped(text: str) -> str:
    """Mermaid reads `#NUMBER;` as a character; all that has a meaning in its labels is written so."""
    return "".join(f"#{ord(char)};" if char in '#;"<>&`\\|{}[]()*_~' and char not in "_()" else char for char in text)


def _plain(text: str) -> str:
    return "".join(char for char in text if char not in "{};#")
