"""Any text at all: read, or refused with our own error; nothing else gets out."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from casework.errors import ExpressionError, ManifestError
from casework.graph.expressions import evaluate
from casework.graph.loading import load
from casework.graph.manifests import AiWorkflow
from casework.graph.templates import render, render_all

WORDS = (
    "{{ }} {% %} {%- -%} if endif for in endfor input input.a .b [0] | upcase plus: 1 'x' \" ( ) (1..3) assign x = == "
    "and or not && || ! ? : , true null has( .map( .all(a, a) compare( \n & * - --- # << > < \x00 \ud800 é 😀 \t"
)
PIECES = st.sampled_from(WORDS.split(" "))
MIXED = st.one_of(
    st.text(max_size=60), st.lists(PIECES, max_size=25).map(" ".join), st.lists(PIECES, max_size=25).map("".join)
)
DATA = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.text(max_size=10)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(source=MIXED, data=DATA)
def test_an_expression_gives_a_value_or_our_error(source: str, data: Any) -> None:
    """AW-10. No text and no data makes an expression fail in another way."""
    with contextlib.suppress(ExpressionError):
        evaluate(source, {"input": data})


@settings(max_examples=300, deadline=None)
@given(source=MIXED, data=DATA)
def test_a_template_gives_text_or_our_error(source: str, data: Any) -> None:
    """AW-10. No text and no data makes a template fail in another way."""
    with contextlib.suppress(ExpressionError):
        assert isinstance(render(source, {"input": data}), str)
    with contextlib.suppress(ExpressionError):
        render_all({"a": [source]}, {"input": data})


@settings(max_examples=300, deadline=None)
@given(data=DATA)
@example(data="\r")
@example(data="a\r\nb\rc\n")
def test_data_is_written_as_it_is(data: Any) -> None:
    """AW-10. Single pass: text in the context comes out unchanged, whatever it looks like."""
    if isinstance(data, str):
        assert render("{{ input }}", {"input": data}) == data
    with contextlib.suppress(ExpressionError):
        assert isinstance(render("{{ input }}|{{ input | json }}", {"input": data}), str)


@settings(max_examples=300, deadline=None)
@given(text=st.one_of(MIXED, st.binary(max_size=60)))
def test_a_file_gives_manifests_or_our_error(text: str | bytes) -> None:
    """AW-1. No bytes make the reader fail in another way."""
    with contextlib.suppress(ManifestError):
        load(text)


SPEC = {"initialNode": "a", "nodes": [{"id": "a", "type": "TOOL", "tool": "t", "outputKey": "x"}]}


@settings(max_examples=200, deadline=None)
@given(field=st.sampled_from(["spec", "metadata", "kind", "apiVersion", "nodes", "edges", "more"]), value=DATA)
def test_a_manifest_with_anything_in_it_gives_a_manifest_or_our_error(field: str, value: Any) -> None:
    """AW-1. Whatever stands in a field, the refusal is ours."""
    manifest: dict[str, Any] = {
        "apiVersion": "casework.dev/v1alpha1",
        "kind": "AiWorkflow",
        "metadata": {"name": "x"},
        "spec": {**SPEC, **({field: value} if field in ("nodes", "edges") else {})},
    }
    if field not in ("nodes", "edges"):
        manifest[field] = value
    with contextlib.suppress(ManifestError):
        assert isinstance(load(repr(manifest).replace("None", "null"))[0], AiWorkflow)
