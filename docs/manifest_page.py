"""The page of manifests: every field of the pydantic models, with what it means. A field without words is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from casework.graph import kinds
from casework.graph import manifests as models
from casework.graph.manifests import API_VERSION
from casework.graph.node_rules import OPTIONAL, REQUIRED
from docs.markdown import GENERATED, cell, table

_VERTEX: Mapping[str, str] = {
    "agentRef": "AGENT: name of an `AiAgent`.",
    "inputTemplate": "AGENT: Liquid template of the message that opens the visit. Without one the input as JSON is "
    "said.",
    "outputSchema": "AGENT: JSON Schema that the answer must hold to, instead of the agent's.",
    "tool": "TOOL: name of a tool of the App.",
    "arguments": "TOOL: its arguments; SUBWORKFLOW: the input of its run. Texts are templates; one that is nothing but "
    "a path keeps the type of what it names.",
    "workflowRef": "SUBWORKFLOW: name of another `AiWorkflow`, or of a free tree of the App.",
    "duration": "WAIT: how long, as ISO 8601 (`PT15M`, `P1DT12H`) or in seconds; at most ten years.",
    "signal": "WAIT: name of the signal that ends it.",
    "decisions": "HUMAN_APPROVAL: what a person may answer.",
}

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
        **_VERTEX,
        "outputKey": "The name under which the node's value is kept, for expressions and templates.",
        "expression": "CONDITION: CEL that gives true or false.",
        "items": "MAP: CEL that gives a list, of at most 1,000 items. One that is nothing but a path, as in "
        "`input.documents`, keeps the types of its numbers.",
        "branches": "PARALLEL: 1 to 100, each with an id of its own. MAP: one, which is run for each item.",
        "maxParallel": "PARALLEL, MAP: branches that are under way at one time, 1 to 1000. Default: 10.",
    },
    "BranchSpec": {
        "id": "As a node's; unique within its node. It becomes a part of paths.",
        "type": "AGENT, TOOL, HUMAN_APPROVAL, SUBWORKFLOW or WAIT, in any case.",
        **_VERTEX,
    },
    "DecisionSpec": {
        "name": "The command, as in `approve`; the condition of its edge.",
        "schema": "JSON Schema for the decision as an object with `decision`, `reason` and `reviewer`.",
        "outcome": "What the run's `outcome` becomes where this decision's edge leads to `end`; where it leads to "
        "another node, the edge that ends the run names it.",
    },
    "Edge": {
        "from": "Id of a node.",
        "to": "Id of a node, or `end`.",
        "condition": "Out of a HUMAN_APPROVAL node a decision's name; out of a CONDITION `true` or `false`; "
        "elsewhere nothing, `true`, `false` or CEL.",
        "onError": "Followed when the node fails, and only then. The reason is then in `errors.NODE`.",
        "outcome": "On an edge to `end` behind a HUMAN_APPROVAL node: the outcome of a decision that was made there, "
        "as after a TOOL that carries it out. It becomes the run's; where nobody has decided so, the run is FAILED.",
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
    "McpServerSpec": {
        "type": "A program to be started, or an address.",
        "command": "stdio: the program.",
        "args": "stdio: its arguments.",
        "env": "stdio: variables of its environment, each with where its value is read from.",
        "url": "http: its address, without user or password.",
        "keyRef": "http: where the key is read from that it is asked with.",
        "tools": "Which of its tools agents may use. Default: all.",
    },
    "WorkflowSessionSpec": {
        "workflowRef": "Name of a workflow that runs can be started of; the run gets its newest version.",
        "input": "The run's input, which must hold to the workflow's schema.",
        "maxLoops": "Most visits of all nodes in this run, instead of the workflow's own number.",
    },
    "Prices": {"inputPerMillion": "Per million tokens sent.", "outputPerMillion": "Per million tokens received."},
}

_ORDER = (
    "AiWorkflowSpec",
    "Node",
    "BranchSpec",
    "DecisionSpec",
    "Edge",
    "AiAgentSpec",
    "LlmProviderSpec",
    "McpServerSpec",
    "WorkflowSessionSpec",
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
            [(f"`{kind}`", _link(model), cell(model.__doc__)) for kind, model in kinds.ALL_KINDS.items()],
        ),
        "An application's own files hold the first three. All are [applied](../how_to/apply_manifests.md). Editors "
        "read the [JSON Schemas](../schemas/casework.schema.json), Kubernetes the [definitions](../schemas/crds.yaml).",
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
    model: type[BaseModel] = getattr(models, name, None) or getattr(kinds, name)
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
    rows = [(f"`{kind}`", _listed(REQUIRED[kind]), _listed(OPTIONAL.get(kind, ()))) for kind in REQUIRED]
    yield table(("type", "must have", "may have"), rows)
    yield "A WAIT has `duration`, `signal` or both."
    yield "### What a node brings, by its type"
    yield table(("type", "its value, under `outputKey`"), _VALUES)
    yield from _BRANCHES


_VALUES = (
    ("`AGENT`", "The agent's answer: text, or an object where there is an output schema."),
    ("`TOOL`", "The tool's result."),
    ("`PARALLEL`", "An object: the value of each branch under the branch's id."),
    ("`MAP`", "A list: the value of the branch for each item, in the order of the items."),
    ("`SUBWORKFLOW`", "An object: `outcome` and `output` of the run."),
    (
        "`WAIT`",
        "With a `duration` alone null. With a `signal` alone its payload. With both an object: `timedOut` (true or "
        "false) and `payload`.",
    ),
    ("`HUMAN_APPROVAL`", "As a node `review.NODE`; as a branch an object: `decision`, `reason`, `reviewer`."),
)

_BRANCHES = (
    "**Branches.** A branch is written as a node is, without edges and `outputKey`. All branches of a visit are "
    "started in their order and all are awaited. If any failed, the node fails, and the reason names each of them; "
    "where an `onError` edge catches that, the value is kept, with null for each branch that failed. In "
    "the branch of a MAP, templates and arguments also see `item` and `index`, which counts from 0. An agent in a "
    "branch begins anew: it does not see messages of other visits or branches. A person is asked in a branch as in "
    "a node; several open questions of one run are answered in any order. A visit of a node with AGENT branches is one "
    "turn.",
    "**Sub-workflows.** The workflow that is referred to is pinned as a part of the one that refers to it, with all "
    "that it refers to itself. A circle of references is refused. The sub-workflow is a run of its own; if it does "
    "not end COMPLETED, the node fails with its reason.",
)


_CONTEXT = (
    "## What expressions and templates see",
    table(
        ("name", "what it is"),
        (
            ("`input`", "The run's input."),
            ("an `outputKey`", "The latest output of the node that has it."),
            ("`item`, `index`", "In the branch of a MAP: the item, and its place in the list, from 0."),
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
