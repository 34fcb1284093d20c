"""Characters of a manifest that could steer a terminal, feign a line, or be kept nowhere."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.errors import ManifestError
from casework.graph.admission import admit
from casework.graph.loading import load, load_resources
from casework.graph.origins import where
from casework.graph.words import one_line

STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
HEAD = "apiVersion: casework.dev/v1alpha1\nkind: {}\nmetadata: {{name: x}}\nspec: {}\n"
NODE = (
    "{{initialNode: a, nodes: [{{id: a, type: TOOL, tool: t, outputKey: k, {}}}], edges: [{{from: a, to: end, {}}}]{}}}"
)


def refusal(kind: str, spec: str, name: str = "w.yaml") -> str:
    with pytest.raises(ManifestError) as caught:
        admit(load(HEAD.format(kind, spec), name), ("t",))
    return str(caught.value)


ODD = r"\e[31m\u202e\u009b\nforged.yaml:1: all is well"


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("AiAgent", f'{{provider: p, "{ODD}": 1}}'),
        ("AiAgent", f'{{provider: "{ODD}"}}'),
        ("AiAgent", f'{{provider: p, "{ODD}": {{"{ODD}": 1, "{ODD}": 2}}}}'),
        ("AiWorkflow", NODE.format("", f'condition: "{ODD}"', "")),
        ("AiWorkflow", NODE.format("", f'outcome: "{ODD}"', "")),
        ("AiWorkflow", NODE.format(f'arguments: {{a: "{{{{ {ODD} }}}}"}}', "", "")),
        ("AiWorkflow", NODE.format("", "", f', input: {{properties: {{"{ODD}": {{type: strin}}}}}}')),
        ("AiWorkflow", NODE.format("", "", f', input: {{properties: {{x: {{pattern: "{ODD}("}}}}}}')),
        (
            "AiWorkflow",
            NODE.format(
                'arguments: {a: "{{ input.x }}"}',
                "",
                f', input: {{additionalProperties: false, properties: {{"{ODD}": {{}}}}}}',
            ),
        ),
    ],
)
def test_a_message_steers_no_terminal_and_feigns_no_line(kind: str, spec: str) -> None:
    """AW-2. Keys and values are shown with their control characters and bidi marks written out, on their one line."""
    said = refusal(kind, spec, "w\x1b.yaml")
    assert not STEERING.search(said)
    assert "\n" not in said
    assert said.startswith(r"w\x1b.yaml:4: spec")


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        (r'{provider: p, systemPrompt: "a\0b"}', "spec.systemPrompt"),
        (r'{provider: p, systemPrompt: "a\ud800b"}', "spec.systemPrompt"),
        (r'{provider: p, outputSchema: {"a\0b": 1}}', r"spec.outputSchema['a\x00b']"),
        (r'{provider: p, outputSchema: {enum: [1, "\udc00"]}}', "spec.outputSchema.enum[1]"),
    ],
)
@pytest.mark.parametrize("read", [load, load_resources])
def test_what_can_be_kept_nowhere_is_refused_at_its_line(read, spec: str, place: str) -> None:  # type: ignore[no-untyped-def]
    """AW-2. A NUL and half a character would be replaced later, so they are refused, however they are written."""
    with pytest.raises(ManifestError) as caught:
        read(HEAD.format("AiAgent", spec), "w.yaml")
    assert str(caught.value).startswith(f"w.yaml:4: {place}: ")
    assert "Remove it." in str(caught.value)


def test_two_halves_are_one_character() -> None:
    r"""JSON writes an emoji as `\ud83d\ude00`."""
    (agent,) = load(HEAD.format("AiAgent", r'{provider: p, systemPrompt: "\ud83d\ude00"}'))
    assert agent.model_dump(by_alias=True)["spec"]["systemPrompt"] == "😀"


def test_a_path_shows_where_a_key_begins_and_ends() -> None:
    """Dots and blanks in a key are not taken for steps, and a long key is cut."""
    assert where(("spec", "nodes", 1, "agentRef")) == "spec.nodes[1].agentRef"
    assert where(("metadata", "labels", "app.io/name", "größe")) == "metadata.labels['app.io/name'].größe"
    assert len(where(("spec", "x" * 1000))) < 100


@given(st.text())
def test_one_line_leaves_what_steers_nothing(text: str) -> None:
    made = one_line(text)
    assert not STEERING.search(made)
    assert len(made.splitlines()) <= 1
    assert made == text or STEERING.search(text) or "\n" in text or "\ufeff" in text
