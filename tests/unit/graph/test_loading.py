"""Manifest files: what is read, and what a refusal says."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import pytest

from casework.errors import ManifestError
from casework.graph.loading import load, load_resources
from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider

PROVIDER = """
apiVersion: casework.dev/v1alpha1
kind: LlmProvider
metadata: {name: local}
spec:
  type: openai
  baseUrl: http://localhost:8000/v1
  keyRef: {env: LOCAL_KEY}
  defaultModel: small
  temperature: 0.10
  prices: {inputPerMillion: 2.50, outputPerMillion: 10}
"""
WORKFLOW = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata:
  name: loan
spec:
  initialNode: underwrite
  nodes:
    - id: underwrite
      type: agent
      agentRef: underwriter
      outputKey: recommendation
  edges:
    - {from: underwrite, to: end, condition: true}
"""


def refusal(text: str | bytes) -> str:
    with pytest.raises(ManifestError) as caught:
        load(text, "loan.yaml")
    return str(caught.value)


def spec_of(kind: str, spec: str) -> str:
    return f"apiVersion: casework.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: x}}\nspec: {spec}\n"


def test_a_file_holds_several_manifests() -> None:
    """AW-1. YAML of several documents; types are read without regard to case."""
    provider, workflow = load(f"---{PROVIDER}---{WORKFLOW}---\n", "loan.yaml")
    assert isinstance(provider, LlmProvider)
    assert isinstance(workflow, AiWorkflow)
    assert workflow.spec.nodes[0].type == "AGENT"
    assert workflow.spec.edges[0].condition == "true"
    assert (workflow.spec.max_loops, workflow.spec.policy_adoption) == (50, "pinned")


def test_numbers_keep_their_digits() -> None:
    """AW-19. Prices are exact."""
    (provider,) = load(PROVIDER)
    assert isinstance(provider, LlmProvider)
    assert provider.spec.prices is not None
    assert str(provider.spec.prices.input_per_million) == "2.50"
    assert provider.spec.temperature == Decimal("0.1")


def test_json_is_read_too() -> None:
    """AW-1. JSON, with tabs and escaped characters."""
    (first,) = load(WORKFLOW)
    text = json.dumps(first.model_dump(by_alias=True), indent="\t").replace("underwriter", "\\u0075nderwriter")
    assert load(text.encode()) == [first]


def test_an_agent_has_its_defaults() -> None:
    """AW-16. At most 20 exchanges per turn unless said."""
    (agent,) = load(spec_of("AiAgent", "{provider: local}"))
    assert isinstance(agent, AiAgent)
    assert agent.spec.max_exchanges == 20


def test_a_typo_names_line_path_value_and_the_near_name() -> None:
    """AW-1. What, where, and what to do."""
    assert refusal(WORKFLOW.replace("agentRef", "agentref")) == (
        "loan.yaml:11: spec.nodes[0].agentref: there is no field 'agentref'; there are id, type, agentRef, "
        "inputTemplate, outputSchema, tool, arguments, workflowRef, duration, signal, decisions, outputKey, "
        "expression, items, branches, maxParallel. Did you mean 'agentRef'?"
    )
    assert "spec.nodes[0].type: 'AGNT' is not known" in refusal(WORKFLOW.replace("agent\n", "agnt\n"))
    assert "Did you mean 'AiWorkflow'?" in refusal(WORKFLOW.replace("AiWorkflow", "AIworkflw"))


def test_all_problems_are_told_together() -> None:
    text = WORKFLOW.replace("initialNode", "initalNode").replace("type: agent", "type: agnt") + "---\nkind: Nothing\n"
    said = refusal(text)
    assert said.startswith("4 problems:\n")
    for part in ("initalNode", "spec.initialNode: it is missing", "'AGNT'", "'Nothing' is not known"):
        assert part in said


BRANCHES = WORKFLOW.replace(
    "type: agent\n      agentRef: underwriter",
    "type: parallel\n      branches:\n        - {id: web, type: wait, duration: PT15M}",
)


def test_a_node_has_branches() -> None:
    """AW-3, AW-4. A branch is an inline node; at most 10 are under way at one time unless said, and that is kept."""
    (workflow,) = load(BRANCHES)
    assert isinstance(workflow, AiWorkflow)
    (node,) = workflow.spec.nodes
    assert (node.type, node.max_parallel) == ("PARALLEL", 10)
    assert [(each.id, each.type, each.duration_s) for each in node.branches or ()] == [("web", "WAIT", 900.0)]
    assert load(json.dumps(workflow.model_dump(by_alias=True))) == [workflow]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "type: wait",
            "type: map",
            "spec.nodes[0].branches[0].type: a branch cannot be 'MAP'; it is one of AGENT, TOOL",
        ),
        ("type: wait", "type: wiat", "'WIAT' is not known; there are AGENT, TOOL, HUMAN_APPROVAL, SUBWORKFLOW, WAIT."),
        ("type: wait", "type: wait, outputKey: x", "there is no field 'outputKey'"),
        ("type: wait", "type: wait, branches: []", "there is no field 'branches'"),
        ("duration: PT15M", "duraton: PT15M", "Did you mean 'duration'?"),
        ("PT15M", "15 minutes", "'15 minutes' is no duration: write ISO 8601 as in PT15M or P1DT12H, or seconds"),
        ("PT15M", "PT", "is no duration"),
        ("PT15M", "P1Y", "is no duration"),
        ("PT15M", "true", "is no duration"),
        ("PT15M", "[1]", "is no duration"),
        ("PT15M", "-1", "-1 is no wait from 0"),
        ("PT15M", "-1.5", "duration: -1.5 is no wait from 0"),
        ("PT15M", "P99999999W", "is no wait from 0"),
        ("PT15M", "1e400", "is no wait from 0"),
        ("id: web", "id: we.b", "'we.b' is no id"),
        ("branches:", "maxParallel: 0\n      branches:", "maxParallel: 0"),
        ("branches:", "maxParallel: many\n      branches:", "maxParallel: 'many'"),
    ],
)
def test_a_branch_that_is_none_is_refused(old: str, new: str, says: str) -> None:
    """AW-5. With line and path, down to the field of the branch."""
    said = refusal(BRANCHES.replace(old, new))
    assert says in said
    assert "loan.yaml:1" in said


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("PT0S", 0),
        ("PT1.5S", 1.5),
        ("P1W", 604_800),
        ("P1DT1H1M1S", 90_061),
        ("0", 0),
        ("0.25", 0.25),
        ("' PT1M '", 60),
    ],
)
def test_a_duration_is_iso_or_seconds(written: str, seconds: float) -> None:
    """AW-3."""
    (workflow,) = load(BRANCHES.replace("PT15M", written))
    assert isinstance(workflow, AiWorkflow)
    assert (workflow.spec.nodes[0].branches or ())[0].duration_s == seconds


@pytest.mark.parametrize("kind", ["McpServer", "WorkflowSession"])
def test_kinds_that_are_no_part_of_an_application_say_so(kind: str) -> None:
    assert f"{kind} is no part of an application; it is applied with `casework apply`" in refusal(spec_of(kind, "{}"))


@pytest.mark.parametrize(
    "spec",
    [
        "{type: openai, apiKey: sk-SECRET}",
        "{type: openai, key: sk-SECRET}",
        "{type: openai, token: sk-SECRET}",
        "{type: openai, keyRef: sk-SECRET}",
        "{type: openai, keyRef: {value: sk-SECRET}}",
        "{type: openai, keyRef: {env: sk-SECRET}}",
        "{type: openai, keyRef: {env: A, file: sk-SECRET}}",
        '{type: openai, baseUrl: "https://user:sk-SECRET@host/v1"}',
    ],
)
def test_a_key_in_a_manifest_is_refused_and_not_repeated(spec: str) -> None:
    """AW-19. Key references only; the refusal does not print the key."""
    said = refusal(spec_of("LlmProvider", spec))
    assert "SECRET" not in said
    assert "ey" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no manifest"),
        ("# only a comment\n", "holds no manifest"),
        ("---\n---\n", "holds no manifest"),
        ("[1, 2]", "metadata, spec, not [1,2]."),
        ("just words", "metadata, spec, not 'just words'."),
        ("a: b: c", "loan.yaml:1: this is not YAML"),
        ("a: 1\nb: [", "this is not YAML"),
        ("kind: A\nkind: B", "loan.yaml:2: kind: this key stands here twice"),
        ("a: 1\nb: x\x00y", "loan.yaml:2: it holds a NUL"),
        (b"a: \xff\xfe", "byte 3 (0xff) is not UTF-8"),
        (b"\xff\xfea\x00", "is not UTF-8"),
        ("a: !!python/object/apply:os.system [x]", "the tag"),
        ("a: !x y", "the tag"),
        ("? [a]\n: b", "a key is not a text"),
        ("a: &a [*a]", "nested deeper"),
        ("a: *nothing", "this is not YAML"),
        ("a: .nan", "is no number"),
        ("a: .inf", "is no number"),
        ("a: 1e99999", "has no JSON form"),
        ("a: " + "9" * 5000, "has no JSON form"),
        ("[" * 5000, "nested deeper"),
        ("{" * 5000, "nested deeper"),
        ("x" * (1024 * 1024 + 1), "1048577 bytes"),
        ("kind: AiAgent\nmetadata: {name: x}\nspec: {provider: p}", "apiVersion: it is missing"),
        ("apiVersion: casework.dev/v9\nkind: AiAgent\nmetadata: {name: x}\nspec: {provider: p}", "casework.dev/v9"),
        (spec_of("AiAgent", "{provider: p, maxExchanges: 0}"), "maxExchanges: 0"),
        (spec_of("AiAgent", "{provider: p, maxExchanges: '5'}"), "maxExchanges: '5'"),
        (spec_of("AiAgent", "{provider: p, maxExchanges: true}"), "maxExchanges: true is no whole number"),
        (spec_of("AiAgent", "{provider: P}"), "'P' is no name"),
        (spec_of("AiAgent", "[]"), "spec: [] is no mapping"),
        (spec_of("LlmProvider", "{type: scripted}"), "needs `script`"),
        (spec_of("LlmProvider", "{type: openai, script: x}"), "`script` is for type scripted"),
        (spec_of("LlmProvider", "{type: openai, baseUrl: localhost}"), "http://"),
        (spec_of("LlmProvider", "{type: openai, prices: {inputPerMillion: -1}}"), "inputPerMillion: -1"),
        (
            spec_of("AiAgent", "{provider: p, maxExchanges: 0}"),
            "maxExchanges: 0 is less than 1. Write a larger number.",
        ),
        (spec_of("AiAgent", "{provider: p, maxExchanges: 5.5}"), "maxExchanges: 5.5 is no whole number."),
        (spec_of("AiAgent", "{provider: p, model: ''}"), "spec.model: it has 0 characters; at least 1."),
        (spec_of("AiAgent", "{provider: 5}"), "spec.provider: 5 is no text. Put it in quotes"),
        (spec_of("AiAgent", "{provider: null}"), "spec.provider: null is no text"),
        (
            spec_of("AiAgent", "{provider: p, tools: {look: true}}"),
            'spec.tools: {"look":true} is no list. Write `- item`',
        ),
        (spec_of("AiWorkflow", "{initialNode: a, nodes: []}"), "spec.nodes: it has 0 items; at least 1."),
        (
            spec_of("AiWorkflow", f"{{initialNode: a, nodes: [{{id: {'a' * 64}, type: wait}}]}}"),
            "64 characters; at most 63",
        ),
        (WORKFLOW.replace("condition: true", "onError: 'true'"), "onError: 'true' is neither true nor false."),
        (WORKFLOW.replace("from:", "source:"), "there is no field 'source'"),
        (WORKFLOW.replace("initialNode:", "initial_node:"), "Did you mean 'initialNode'?"),
        (WORKFLOW.replace("type: agent", "type: wa\u0131t"), "is not known; there are AGENT"),
        (spec_of("LlmProvider", "{type: openai, temperature: '2.1'}"), "temperature: '2.1' is more than 2."),
        (spec_of("LlmProvider", "{type: openai, temperature: '1e0'}"), "temperature: '1e0' is no number"),
        (
            WORKFLOW.replace("metadata:", "metadata: &m").replace("spec:", "spec:\n  <<: *m"),
            "merge keys (<<) are not taken.",
        ),
        (WORKFLOW.replace("id: underwrite", "id: under.write"), "'under.write' is no id"),
        (WORKFLOW.replace("outputKey: rec", "outputKey: a-"), "is no key"),
        (WORKFLOW.replace("name: loan", "name: Loan Case"), "'Loan Case' is no name"),
    ],
)
def test_bad_input_is_refused_clearly(text: str | bytes, says: str) -> None:
    assert says in refusal(text)


def test_an_alias_bomb_is_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 20)]
    began = time.monotonic()
    assert "aliases included" in refusal("\n".join(lines))
    assert time.monotonic() - began < 5


def test_plain_aliases_work() -> None:
    text = WORKFLOW.replace("{from: underwrite, to: end, condition: true}", "&e {from: underwrite, to: end}\n    - *e")
    (workflow,) = load(text)
    assert isinstance(workflow, AiWorkflow)
    assert workflow.spec.edges[0] == workflow.spec.edges[1]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert load(b"\xef\xbb\xbf" + WORKFLOW.encode()) == load(WORKFLOW)


def test_what_is_applied_has_more_kinds() -> None:
    """AW-1. McpServer and WorkflowSession are read and checked; a status is the platform's and is left out."""
    session = spec_of("WorkflowSession", "{workflowRef: loan, input: {amount: 1.10}, maxLoops: 3}")
    server = spec_of("McpServer", "{type: stdio, command: serve}") + "status: {observedGeneration: 7}\n"
    found = load_resources(f"---\n{session}---\n{server}---{PROVIDER}")
    assert [each.model_dump(by_alias=True)["kind"] for each in found] == ["WorkflowSession", "McpServer", "LlmProvider"]
    assert found[0].model_dump(by_alias=True)["spec"]["input"] == {"amount": Decimal("1.10")}


@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        ("McpServer", "{type: stdio}", "a server of type stdio needs `command`"),
        ("McpServer", "{type: http, url: 'http://x', command: y}", "`command` is not for a server of type http"),
        ("McpServer", "{type: http, url: 'http://a:b@x'}", "holds a user or password"),
        ("McpServer", "{type: stdio, command: x, env: {file: {a: 1}}}", "there is no field 'a'; there are env, file."),
        ("McpServer", "{type: stdio, command: x, env: {A B: {env: X}}}", "x.yaml:4: spec.env['A B']: 'A B' is no key"),
        ("LlmProvider", "{type: scriptd, script: x}", "not 'scriptd'. Did you mean 'scripted'?"),
        ("LlmProvider", "{type: openai, maxTokens: 1.5}", "spec.maxTokens: 1.5 is no whole number."),
        ("McpServer", "{type: htp, url: 'http://x'}", "there are stdio, http. Did you mean 'http'?"),
        ("WorkflowSession", "{workflowref: loan}", "Did you mean 'workflowRef'?"),
        ("WorkflowSession", "{workflowRef: loan, maxLoops: 0}", "spec.maxLoops"),
        ("WorkflowSesion", "{}", "Did you mean 'WorkflowSession'?"),
    ],
)
def test_what_is_applied_is_refused_with_the_near_name(kind: str, spec: str, told: str) -> None:
    """AW-1."""
    with pytest.raises(ManifestError) as error:
        load_resources(spec_of(kind, spec), "x.yaml")
    assert told in str(error.value)
    assert "x.yaml:4: spec" in str(error.value) or "x.yaml:2: kind" in str(error.value)


@pytest.mark.parametrize("kind", ["[]", "{}", "7", "true", "''"])
@pytest.mark.parametrize("read", [load, load_resources])
def test_a_kind_that_is_no_text_is_refused(read: Any, kind: str) -> None:
    """AW-1. Whatever stands there, the refusal is ours."""
    with pytest.raises(ManifestError, match=r"x\.yaml:2: kind: .* is not known"):
        read(spec_of(kind, "{}"), "x.yaml")
