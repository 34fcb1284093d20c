"""What of a context a step is sent: all that its template or arguments can use, and little else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.errors import ExpressionError
from casework.graph import engine, templates
from casework.graph.manifests import BranchSpec, Node

SEEN: dict[str, Any] = {
    "input": {"name": "Ann", "key": "notes", "l": [1, 2]},
    "review": {},
    "errors": {},
    "notes": {"text": "n" * 10},
    "notes_2": "other",
    "größe": 3,
    "item": {"k": "v"},
    "index": 0,
}
PIECES = (
    "{{ input.name }}", "{{ notes.text }}", "{{ notes_2 }}", "{{ größe }}", "{{ context.notes.text }}", "{{ nothing }}",
    "{% for each in input.l %}{{ each }}{{ notes.text }}{% endfor %}", "{% assign notes = input %}{{ notes.name }}",
    '{{ context["notes_2"] }}', "{{ context[input.key].text }}", "{{ [input.key] }}", '{{ ["notes_2"] }}',
    "{% if has_it %}x{% endif %}", "{{ missing | default: notes_2 }}", "{{ item.k }} {{ index }}", "notes_2, as a word",
    "{{ input | json }}", "{%- if notes_2 == 'other' -%}{{- input.name -}}{%- endif -%}", "{{review}}{{errors}}",
)  # fmt: skip


def told(source: str, seen: dict[str, Any]) -> str:
    try:
        return templates.render(source, seen)
    except ExpressionError as error:
        return f"refused: {error}"


@given(st.lists(st.sampled_from(PIECES), max_size=4))
def test_a_template_gives_the_same_over_what_it_mentions(pieces: list[str]) -> None:
    """AW-7. Whatever it does with names: indexes, own names, names that are not there."""
    source = " ".join(pieces)
    node = Node.model_validate({"id": "n", "type": "AGENT", "agentRef": "a", "inputTemplate": source})
    assert told(source, engine.mentioned(node, SEEN)) == told(source, SEEN)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3))
def test_so_do_arguments(pieces: list[str]) -> None:
    """AW-7. Texts at any depth, and one that is only a path."""
    node = Node.model_validate({"id": "n", "type": "TOOL", "tool": "t", "arguments": {"a": [{"b": pieces}], "n": 1}})

    def rendered(seen: dict[str, Any]) -> Any:
        try:
            return templates.render_all(node.arguments or {}, seen)
        except ExpressionError as error:
            return str(error)

    assert rendered(engine.mentioned(node, SEEN)) == rendered(SEEN)


@pytest.mark.parametrize(
    ("vertex", "names"),
    [
        ({"type": "TOOL", "arguments": {"a": "{{ notes.text }} {{ input.l }}"}}, {"notes", "input"}),
        ({"type": "TOOL"}, set()),
        ({"type": "TOOL", "arguments": {"a": "{{ context }}"}}, set(SEEN)),
        ({"type": "AGENT"}, {"item", "index"}),
        ({"type": "AGENT", "inputTemplate": "{{ item.k }}"}, {"item"}),
        ({"type": "SUBWORKFLOW", "arguments": {"a": "{{ notes_2 }}"}}, {"notes_2"}),
    ],
)
def test_nothing_else_is_sent(vertex: dict[str, Any], names: set[str]) -> None:
    """DA-21. A branch is sent its item, and not all that the run knows."""
    assert engine.mentioned(BranchSpec.model_validate({"id": "b", **vertex}), SEEN).keys() == names


def test_an_agent_without_a_template_is_sent_what_opens_its_visit() -> None:
    """AW-7. The input, as JSON."""
    node = Node.model_validate({"id": "n", "type": "AGENT", "agentRef": "a"})
    seen = {name: SEEN[name] for name in ("input", "review", "errors", "notes")}
    assert engine.mentioned(node, seen) == {"input": SEEN["input"]}
    assert engine.opening(node, engine.mentioned(node, seen)) == engine.opening(node, seen)
