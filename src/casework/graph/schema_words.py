"""Words of the JSON Schemas in manifests, and those that are nearly one, which validators pass over in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from casework.graph.origins import Path
from casework.graph.words import nearest

_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
_NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs")
_SEVERAL = ("allOf", "anyOf", "oneOf", "prefixItems")
_OTHERS = (
    "type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern "
    "format minItems maxItems uniqueItems minContains maxContains required minProperties maxProperties "
    "dependentRequired title description default examples deprecated readOnly writeOnly contentEncoding "
    "contentMediaType contentSchema $ref $id $schema $anchor $comment $dynamicRef $dynamicAnchor $vocabulary "
    "definitions dependencies nullable"
)
WORDS = frozenset((*_ONE, *_NAMED, *_SEVERAL, *_OTHERS.split(" ")))
"""Every keyword of draft 2020-12, and a few of older ones that are still written."""


def misspelt(schema: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Where in a schema a word stands that is no keyword and is near one, and what to say of it."""
    if not isinstance(schema, Mapping):
        return
    for word, value in schema.items():
        near = "" if word in WORDS else nearest(word, WORDS)
        if near:
            yield (*path, word), f"{word!r} is no word of JSON Schema and has no effect.{near}"
        for inner, place in _inner(word, value):
            yield from misspelt(inner, (*path, word, *place))


def _inner(word: str, value: Any) -> Iterator[tuple[Any, Path]]:
    """The schemas in the value of a keyword."""
    if word in _ONE:
        yield value, ()
    elif word in _NAMED and isinstance(value, Mapping):
        yield from ((each, (name,)) for name, each in value.items())
    elif word in _SEVERAL and isinstance(value, list):
        yield from ((each, (at,)) for at, each in enumerate(value))
