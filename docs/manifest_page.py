"""The page of manifests: every field of the pydantic models, with what it means. A field without words is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from casework.graph import manifests as models
from casework.graph.admission import _OPTIONAL, _REQUIRED
from casework.graph.manifests import API_VERSION, KINDS, LATER_KINDS, LATER_TYPES
from docs.markdown import GENERATED, cell, table

FIELDS: Mapping[str, Mapping[str, str]] = {
    "Metadata": {
        "name": "What others refer to it by.",
        "labels": "Words for readers and tools; kept, not interpreted.",
        "annotations": "The same.",
    },
    "AiWorkflowSpec": {
        "initialNode": "Id of the node that a run enters first.",
        "nodes": "The vertices, 1 to 1000.",
        "edges": "The ways between them; out of one node they are tried in this order.",
        "maxLoops": "Most visits of all nodes in one run; over it the run is FAILED.",
        "policyAdoption": "Which policy an open run uses: the row it read first, or the one in force in each turn.",
        "input": "JSON Schema (2020-12) of a run's input, of type object. Requests that do not fit are refused.",
    },
    "Node": {
        "id": "Letters, digits, `_` and `-`; not `end`. It becomes a part of paths.",
        "type": "Which kind of vertex, in any case.",
        "agentRef": "AGENT: name of an `AiAgent`.",
        "inputTemplate": "AGENT: Liquid template of the message that opens the visit. Without one the input as JSON "
        "is said.",
        "outputKey": "AGENT, TOOL: the name under which the output is kept, for expressions and templates.",
        "outputSchema": "AGENT: JSON Schema that the answer must hold to, instead of the agent's.",
        "expression": "CONDITION: CEL that gives true or false.",
        "tool": "TOOL: name of a tool of the App.",
        "arguments": "TOOL: its arguments. Texts are templates; one that is nothing but a path keeps the type of "
        "what it names.",
        "decisions": "HUMAN_APPROVAL: what a person may answer.",
    },
    "DecisionSpec": {
        "name": "The command, as in `approve`; the condition of its edge.",
        "schema": "JSON Schema for the decision as an object with `decision`, `reason` and `reviewer`.",
        "outcome": "What the run's `outcome` becomes where this decision's edge leads to `end`; where it leads to "
        "another node it does not count.",
    },
    "Edge": {
        "from": "Id of a node.",
        "to": "Id of a node, or `end`.",
        "condition": "Out of a HUMAN_APPROVAL node a decision's name; out of a CONDITION `true` or `false`; "
        "elsewhere nothing, `true`, `false` or CEL.",
        "onError": "Followed when the node fails, and only then. The reason is then in `errors.NODE`.",
    },
    "AiAgentSpec": {
        "provider": "Name of an `LlmProvider`.",
        "model": "Its model; without one the provider's `defaultModel`.",
        "systemPrompt": "What it is told before everything else; not a template.",
        "tools": "Names of the tools that it may ask for. It sees no others.",
        "outputSchema": "JSON Schema that its answer must hold to.",
        "maxExchanges": "Most model answers in one turn; over it the node fails.",
    },
    "LlmProviderSpec": {
        "type": "`scripted`, `openai`, or another name of the provider layer.",
        "baseUrl": "Address of the endpoint, without user or password. Default: the provider's own.",
        "keyRef": "Where the key is read from. Default: the provider's own environment variable.",
        "defaultModel": "Model of agents that name none.",
        "script": "scripted: name of a script of the App.",
        "temperature": "0 to 2. Default: the provider's own.",
        "maxTokens": "Most tokens of one answer. Default: the provider's own.",
        "prices": "For the cost of runs. Default: none, and then calls cost 0.",
    },
    "KeyRef": {
        "env": "Name of an environment variable of the worker.",
        "file": "Path of a file that the worker can read.",
    },
    "Prices": {"inputPerMillion": "Per million tokens sent.", "outputPerMillion": "Per million tokens received."},
}

_ORDER = (
    "AiWorkflowSpec",
    "Node",
    "DecisionSpec",
    "Edge",
    "AiAgentSpec",
    "LlmProviderSpec",
    "KeyRef",
    "Prices",
    "Metadata",
)


def manifests() -> str:
    """Kinds, fields, and what a node of each type takes."""
    text = [
        GENERATED,
        "# Manifests",
        f"YAML 1.2 or JSON, one or more documents a file. Each has `apiVersion: {API_VERSION}`, `kind`, `metadata` "
        f"and `spec`. Unknown fields, repeated keys and what JSON cannot say "
        "are refused, with file and line. [Edit a workflow](../how_to/edit_a_workflow.md) shows the messages; the "
        "loan example's "
        "[manifest](../../src/casework/examples/loan_underwriting/manifests/loan-underwriting.yaml) is a complete one.",
        table(
            ("kind", "spec", "what it is"),
            [(f"`{kind}`", _link(model), cell(model.__doc__)) for kind, model in KINDS.items()],
        ),
        f"{_listed(LATER_KINDS)} are names of later releases and are refused as such; so are the node types "
        f"{_listed(LATER_TYPES)}.",
        "Names of resources are lower-case letters, digits and inner dashes, at most 63.",
    ]
    for name in _ORDER:
        text += _model(name)
        if name == "Node":
            text += _node_types()
    return "\n\n".join([*text, *_CONTEXT])


def _link(model: type[BaseModel]) -> str:
    name = f"{model.__name__}Spec"
    return f"[{name}](#{name.lower()})"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _model(name: str) -> Iterator[str]:
    model: type[BaseModel] = getattr(models, name)
    schema = model.model_json_schema(by_alias=True)
    parts: dict[str, Any] = schema["properties"]
    words = FIELDS[name]
    if parts.keys() != words.keys():
        raise LookupError(
            f"Describe the fields of {name} in docs/manifest_page.py: {sorted(parts.keys() ^ words.keys())}"
        )
    required = set(schema.get("required", ()))
    rows = [(f"`{field}`", _type(part), _default(field, part, required), words[field]) for field, part in parts.items()]
    yield f"## {name}"
    yield cell(model.__doc__)
    yield table(("field", "type", "default", "what it is"), rows)


def _default(field: str, part: Mapping[str, Any], required: set[str]) -> str:
    if field in required:
        return "required"
    default = part.get("default")
    return (
        "" if default in (None, "", [], ()) else f"`{str(default).lower() if isinstance(default, bool) else default}`"
    )


def _type(part: Mapping[str, Any]) -> str:
    choices = [each for each in part.get("anyOf", [part]) if each.get("type") != "null"]
    # A Decimal may be written as a text too; the number is what one writes.
    first = choices[0]
    if "$ref" in first:
        name = first["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "enum" in first:
        return " or ".join(f"`{each}`" for each in first["enum"])
    if first.get("type") == "array":
        return f"list of {_type(first['items'])}"
    return {"string": "text", "object": "mapping", "boolean": "true or false"}.get(
        first.get("type", ""), str(first.get("type", "anything"))
    )


def _node_types() -> Iterator[str]:
    yield "### What a node takes, by its type"
    rows = [(f"`{kind}`", _listed(_REQUIRED[kind]), _listed(_OPTIONAL.get(kind, ()))) for kind in _REQUIRED]
    yield table(("type", "must have", "may have"), rows)


_CONTEXT = (
    "## What expressions and templates see",
    table(
        ("name", "what it is"),
        (
            ("`input`", "The run's input."),
            ("an `outputKey`", "The latest output of the node that has it."),
            ("`review.NODE`", "The last decision at a HUMAN_APPROVAL node: `decision`, `reason`, `reviewer`."),
            ("`errors.NODE`", "Why a node failed, after its `onError` edge was followed."),
            ("`context`", "All of it, as one object."),
        ),
    ),
    "**CEL.** Unknown names are refused at admission. A field that may be absent is asked for with `has()`. Whole "
    "numbers are integers; a number with a fraction arrives as text with all its digits and is compared exactly by "
    '`compare(input.amount, "1000.00") > 0`. At most 1,000 bytes and 8 macros.',
    "**What admission knows of names.** Refused: a first name that is none of these, an unknown filter or tag, a text "
    "that does not parse, an expression that cannot be true or false, and a field of `input` that the workflow's input "
    "schema rules out (`properties` with `additionalProperties: false`). Not refused, since it shows only in a run: "
    "other fields inside one of these names, a node in `review.NODE` or `errors.NODE` that is none, an output that no "
    "node on the way has given yet. In a run each is an error that names it.",
    '**Liquid.** Strict: a name that is not there is an error, `{{ x | default: "none" }}` asks. One pass: what a '
    "person or a model wrote never becomes a template. At most 20,000 characters.",
)
