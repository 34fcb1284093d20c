"""Where a workflow's expressions and templates ask for what its input schema does not have: problems and hints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from casework.errors import ExpressionError
from casework.graph import templates
from casework.graph.input_paths import Schema, expression_problems, template_problems
from casework.graph.manifests import AiWorkflow, AiWorkflowSpec, Node, Vertex
from casework.graph.origins import Path
from casework.graph.problems import Problem, named
from casework.graph.schema_words import misspelt

_APPLICATORS = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties")
"""Words of a JSON Schema that can bring properties of their own."""


def input_problems(spec: AiWorkflowSpec, schema: Schema | None) -> Iterator[Problem]:
    """The uses of the input in the texts of nodes, branches and edges that `schema` rules out."""
    if schema is None:
        return
    for at, node in enumerate(spec.nodes):
        place, path = f"node {node.id!r}", ("nodes", at)
        yield from _of_vertex(node, place, path, schema)
        for number, branch in enumerate(node.branches or ()):
            yield from _of_vertex(branch, f"{place}: branch {branch.id!r}", (*path, "branches", number), schema)
    for at, edge in enumerate(spec.edges):
        source = spec.node(edge.source)
        if source is not None and source.type not in ("CONDITION", "HUMAN_APPROVAL"):
            where = f"edge from {edge.source!r} to {edge.target!r}"
            yield from _of_expression(edge.condition, where, ("edges", at), "condition", schema)


def hints(workflow: AiWorkflow) -> Iterator[str]:
    """What holds but may be meant otherwise, each as a line.

    That is a use of an input which the schema leaves open but does not name, and a misspelt word of the schema itself.
    """
    spec = workflow.spec
    words = (Problem("input", what, ("input", *path)) for path, what in misspelt(spec.input))
    yield from named(workflow, words)
    refused = set(input_problems(spec, spec.input))
    yield from named(workflow, (each for each in input_problems(spec, _closed(spec.input)) if each not in refused))


def _closed(schema: Any) -> Any:
    """The schema as if what it does not name were ruled out, wherever nothing in it says what else there may be."""
    if not isinstance(schema, Mapping):
        return schema
    known = schema.get("properties")
    if not isinstance(known, Mapping) or not known or any(word in schema for word in _APPLICATORS):
        return schema
    made = {**schema, "properties": {name: _closed(part) for name, part in known.items()}}
    return {**made, "additionalProperties": False} if schema.get("additionalProperties", True) is True else made


def _of_vertex(vertex: Vertex, place: str, path: Path, schema: Schema) -> Iterator[Problem]:
    if isinstance(vertex, Node):
        for field, source in (("expression", vertex.expression), ("items", vertex.items)):
            yield from _of_expression(source or "", place, path, field, schema)
    for field, value in (("inputTemplate", vertex.input_template), ("arguments", vertex.arguments)):
        for text in templates.texts(value):
            for what in template_problems(_paths(text), schema):
                yield Problem(place, f"{field}: {what}.", (*path, field))


def _of_expression(source: str, place: str, path: Path, field: str, schema: Schema) -> Iterator[Problem]:
    for what in expression_problems(source, schema):
        yield Problem(place, f"{field}: {what}.", (*path, field))


def _paths(template: str) -> Collection[tuple[Any, ...]]:
    try:
        return templates.paths(template)
    except ExpressionError:
        return ()  # said where the template is checked
