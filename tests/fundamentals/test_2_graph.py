"""A workflow is a graph, one concept a test. Read from top to bottom; each test needs only those above it."""

from __future__ import annotations

import pytest

from casework.errors import ManifestError
from casework.graph.admission import admit
from casework.graph.engine import (
    Answered,
    AwaitDecision,
    Complete,
    Decided,
    EngineState,
    Fail,
    NodeFailed,
    RunAgent,
    advance,
    pending,
    start,
)
from casework.graph.expressions import holds
from casework.graph.loading import load
from casework.graph.templates import render

MANIFEST = """
apiVersion: casework.dev/v1alpha1
kind: LlmProvider
metadata: {name: house}
spec: {type: openai, defaultModel: small, keyRef: {env: HOUSE_KEY}}
---
apiVersion: casework.dev/v1alpha1
kind: AiAgent
metadata: {name: underwriter}
spec: {provider: house, systemPrompt: You assess loans., tools: [credit_check]}
---
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: loan}
spec:
  initialNode: underwrite
  nodes:
    - id: underwrite
      type: AGENT
      agentRef: underwriter
      inputTemplate: Assess {{ input.amount }} for {{ input.applicant }}.
      outputKey: recommendation
    - id: decision
      type: HUMAN_APPROVAL
      decisions:
        - {name: approve, outcome: approved}
        - {name: reject, outcome: declined}
        - {name: more_info}
  edges:
    - {from: underwrite, to: decision}
    - {from: decision, to: end, condition: approve}
    - {from: decision, to: end, condition: reject}
    - {from: decision, to: underwrite, condition: more_info}
"""
SPEC = admit(load(MANIFEST), tools=["credit_check"])[0].workflow.spec
INPUT = {"applicant": "Ann", "amount": 9000}


def test_a_manifest_becomes_a_pinned_workflow() -> None:
    """AW-1, AW-5. A file is loaded, admitted, and pinned with everything it refers to, under a hash of its content."""
    (pinned,) = admit(load(MANIFEST), tools=["credit_check"])
    assert pinned.name == "loan"
    assert list(pinned.agents) == ["underwriter"]
    assert pinned.hash() == admit(load(MANIFEST), tools=["credit_check"])[0].hash()


def test_a_mistake_is_refused_with_its_place_and_a_remedy() -> None:
    """AW-5. Nothing is warned about: a manifest is admitted, or refused with what to do."""
    with pytest.raises(ManifestError, match=r"edge from 'underwrite' to 'decison'.*Did you mean 'decision'\?"):
        admit(load(MANIFEST.replace("to: decision", "to: decison")), tools=["credit_check"])


def test_the_engine_says_what_is_due() -> None:
    """AW-6. It decides what runs next and never runs it: here, the agent's first turn."""
    _, command = start(SPEC, INPUT)
    assert command == RunAgent("underwrite", visit=1, turn=1, words=None, render=True)


def test_an_outcome_moves_the_run_along_its_edge() -> None:
    """AW-7. The answer is stored under the node's key, and the next node asks a person."""
    state, _ = start(SPEC, INPUT)
    state, command = advance(SPEC, state, Answered("refer"))
    assert state.context["recommendation"] == "refer"
    assert command == AwaitDecision("decision", visit=1, decisions=("approve", "reject", "more_info"))


def test_a_decision_selects_the_edge() -> None:
    """AW-7. The edge named `approve` leads to the end, and gives the run the decision's outcome."""
    state, _ = start(SPEC, INPUT)
    state, _ = advance(SPEC, state, Answered("refer"))
    _, command = advance(SPEC, state, Decided("approve", "Steady income.", "bob"))
    assert command == Complete("approved", "refer")


def test_more_info_is_another_turn() -> None:
    """DA-13. The reviewer's words go to the agent; its node is visited a second time."""
    state, _ = start(SPEC, INPUT)
    state, _ = advance(SPEC, state, Answered("refer"))
    _, command = advance(SPEC, state, Decided("more_info", "What about the second job?", "bob"))
    assert command == RunAgent("underwrite", visit=2, turn=2, words="What about the second job?", render=False)


def test_the_last_turn_leaves_the_reviewer_to_decide() -> None:
    """DA-14. At the turn limit, what would start a turn is refused, and the reviewer reads why."""
    state, _ = start(SPEC, INPUT, turn_limit=1)
    _, command = advance(SPEC, state, Answered("refer"))
    assert isinstance(command, AwaitDecision)
    assert command.refused == {"more_info": "turn limit 1 is reached: approve or reject"}


def test_a_failed_node_fails_the_run() -> None:
    """AW-8. A failure is never an answer that flows on; an `onError` edge would catch it."""
    state, _ = start(SPEC, INPUT)
    _, command = advance(SPEC, state, NodeFailed("the provider is down"))
    assert command == Fail("the provider is down", "underwrite")


def test_a_state_is_plain_and_stands_for_its_command() -> None:
    """DA-20. What a run carries is one JSON object; the command that is due follows from it."""
    state, command = start(SPEC, INPUT)
    assert pending(SPEC, EngineState.from_plain(state.to_plain())) == command


def test_expressions_and_templates_read_the_context() -> None:
    """AW-10. CEL chooses edges, Liquid writes prompts; data is never read as either."""
    context = {"input": {**INPUT, "note": "{{ input.amount }}"}}
    assert holds("input.amount > 5000", context)
    assert render("{{ input.applicant }}: {{ input.note }}", context) == "Ann: {{ input.amount }}"
