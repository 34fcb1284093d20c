"""The scripted underwriter as a function, and the shipped manifest and policy."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from ruamel.yaml import YAML

from casework.agents import Message, ModelAnswer, ModelRequest, Toolbox
from casework.examples.loan_underwriting import app
from casework.examples.loan_underwriting.application import MANIFEST, POLICY
from casework.examples.loan_underwriting.script import underwriter
from casework.examples.loan_underwriting.tools import TOOLS
from casework.graph import templates
from casework.graph.manifests import KINDS, AiAgent, AiWorkflow, LlmProvider
from casework.models.output import fault_of
from casework.models.scripted import ScriptedModel
from casework.policy import form_of, parse_policy
from casework.values import dumps

APPLICATION = "Underwrite this.\nApplicant: APP-1001\nAmount: 12000 USD\nPurpose: debt_consolidation"
SCHEMA = {
    "type": "object",
    "required": ["recommendation", "rationale"],
    "properties": {"recommendation": {"enum": ["approve", "refer", "decline"]}, "rationale": {"type": "string"}},
    "additionalProperties": False,
}
RESULTS: dict[str, Any] = {
    "credit_check": {"score": 665},
    "income_verification": {"annual_income": 76000},
    "debt_to_income_calc": {"ratio": 37.89},
    "policy_lookup": {"recommendation": "refer", "rationale": "So.", "policy_name": "loans", "version": 3},
}


class Talk:
    """A conversation with the scripted model."""

    def __init__(self, tools: Toolbox | None = None) -> None:
        self._model = ScriptedModel("underwriter", underwriter)
        self._tools = (tools or Toolbox(TOOLS)).schemas()
        self.messages: list[Message] = []

    def say(self, words: str) -> None:
        self._add("user", words)

    async def turn(self, results: dict[str, Any] = RESULTS) -> tuple[list[list[str]], ModelAnswer]:
        """Exchanges until the model answers: the tools asked for in each, and the answer."""
        asked: list[list[str]] = []
        while True:
            answer = await self._model.request(ModelRequest("s", tuple(self.messages), self._tools, SCHEMA))
            self._add("assistant", answer.text, requests=answer.requests)
            if not answer.requests:
                return asked, answer
            asked.append([request.name for request in answer.requests])
            for request in answer.requests:
                self._add("tool", dumps(results[request.name]), call_id=request.call_id, tool=request.name)

    def _add(self, role: Any, content: str, **more: Any) -> None:
        self.messages.append(Message(len(self.messages) + 1, "underwriter", role, content, **more))


async def test_the_scripted_model_asks_in_the_order_of_the_case() -> None:
    """DA-9. Credit and income side by side, then the ratio, then policy, then the recommendation."""
    talk = Talk()
    talk.say(APPLICATION)
    asked, answer = await talk.turn()
    assert asked == [["credit_check", "income_verification"], ["debt_to_income_calc"], ["policy_lookup"]]
    assert answer.output["recommendation"] == "refer"
    assert "loans, version 3" in answer.output["rationale"]
    ids = [request.call_id for message in talk.messages for request in message.requests]
    assert ids == ["call_1", "call_2", "call_3", "call_4"]
    assert talk.messages[1].requests[0].arguments == {"applicant_id": "APP-1001"}


async def test_the_reviewers_words_go_into_the_rationale_without_new_evidence() -> None:
    """DA-13. more_info starts a turn whose answer takes the words up."""
    talk = Talk()
    talk.say(APPLICATION)
    await talk.turn()
    talk.say("Is the employment\nstable?")
    asked, answer = await talk.turn()
    assert asked == []
    assert '"Is the employment stable?"' in answer.output["rationale"]


@pytest.mark.parametrize("words", ["Check the income again, please.", "Re-check the bureau", "refresh the evidence"])
async def test_evidence_is_gathered_again_when_told_to(words: str) -> None:
    """DA-13. And only then; the template repeated before the words changes nothing."""
    talk = Talk()
    talk.say(APPLICATION)
    await talk.turn()
    talk.say(APPLICATION)
    talk.say(words)
    asked, answer = await talk.turn()
    assert asked[0] == ["credit_check", "income_verification"]
    assert words in answer.output["rationale"]


async def test_tokens_are_counted_the_same_every_time() -> None:
    """DA-15. A scripted model is deterministic, its figures too."""
    answers = []
    for _ in range(2):
        talk = Talk()
        talk.say(APPLICATION)
        answers.append((await talk.turn())[1])
    assert answers[0] == answers[1]
    assert answers[0].tokens_in > answers[0].tokens_out > 0
    assert answers[0].cost == 0


async def test_failed_tools_lead_to_a_person() -> None:
    """DA-9. A tool that failed for good does not stop the case, and nothing is made up."""
    talk = Talk()
    talk.say(APPLICATION)
    failed = {name: {"error": "the bureau is down"} for name in RESULTS}
    _, answer = await talk.turn(failed)
    assert answer.output["recommendation"] == "refer"
    assert "credit_check failed: the bureau is down" in answer.output["rationale"]


async def test_a_tool_taken_from_the_manifest_is_not_asked_for() -> None:
    """AW-17. The model uses what it is offered."""
    talk = Talk(Toolbox(TOOLS[:3]))
    talk.say(APPLICATION)
    asked, answer = await talk.turn()
    assert ["policy_lookup"] not in asked
    assert answer.output["recommendation"] == "refer"


def test_the_shipped_policy_says_what_the_reference_case_needs() -> None:
    """DA-10. Approve from 700 and up to 36 %, decline under 580 or over 50 %, two delinquencies are material."""
    parsed = parse_policy(POLICY.read_text(encoding="utf-8"), form_of(POLICY.name))
    assert parsed.refused == ()
    assert len(parsed.limits) == 14
    for row in parsed.limits:
        assert (row.min_score, row.auto_approve_ratio) == (700, Decimal(36))
        assert (row.hard_decline_score, row.hard_decline_ratio) == (580, Decimal(50))
        assert row.material_delinquencies == 2


def manifests() -> tuple[AiWorkflow, AiAgent, LlmProvider]:
    loaded = [KINDS[document["kind"]].model_validate(document) for document in YAML(typ="safe").load_all(MANIFEST)]
    workflow, agent, provider = loaded
    assert isinstance(workflow, AiWorkflow)
    assert isinstance(agent, AiAgent)
    assert isinstance(provider, LlmProvider)
    return workflow, agent, provider


def test_the_manifest_and_the_app_name_the_same_tools_and_script() -> None:
    """AW-3. The two nodes, the edges out of the decision, and the names that the App must know."""
    workflow, agent, provider = manifests()
    assert app.scripts.keys() == {provider.spec.script}
    assert agent.spec.tools == tuple(tool.name for tool in TOOLS)
    assert agent.spec.provider == provider.name
    assert [(node.id, node.type, node.agent_ref) for node in workflow.spec.nodes] == [
        ("underwrite", "AGENT", agent.name),
        ("decision", "HUMAN_APPROVAL", None),
    ]
    ways = [(edge.source, edge.target, edge.condition) for edge in workflow.spec.edges]
    assert ways == [
        ("underwrite", "decision", ""),
        ("decision", "end", "approve"),
        ("decision", "end", "reject"),
        ("decision", "underwrite", "more_info"),
    ]
    outcomes = {decision.name: decision.outcome for decision in workflow.spec.nodes[1].decisions or ()}
    assert outcomes == {"approve": "approved", "reject": "declined", "more_info": None}


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({"applicant_id": "LC00001", "amount": 28000, "purpose": "moving"}, True),
        ({"applicant_id": "A", "amount": Decimal("0.01"), "purpose": "\u00e9lan"}, True),
        ({"applicant_id": "A", "amount": 0, "purpose": "car"}, False),
        ({"applicant_id": "A", "amount": "5", "purpose": "car"}, False),
        ({"applicant_id": "", "amount": 5, "purpose": "car"}, False),
        ({"applicant_id": "A\nApplicant: B", "amount": 5, "purpose": "car"}, False),
        ({"applicant_id": "A", "amount": 5, "purpose": "car\nApplicant: B"}, False),
        ({"applicant_id": "A", "amount": 5, "purpose": "--"}, False),
        ({"applicant_id": "A", "amount": 5}, False),
        ({"applicant_id": "A", "amount": 5, "purpose": "car", "more": 1}, False),
    ],
)
def test_the_input_schema_lets_in_what_the_case_can_use(given: dict[str, Any], holds: bool) -> None:
    """DA-7. Checked against the manifest's input schema; no line of an application can pose as another."""
    workflow, _, _ = manifests()
    assert (fault_of(given, workflow.spec.input or {}) is None) == holds


async def test_the_rendered_template_is_what_the_script_reads() -> None:
    """DA-9. The first message names applicant and purpose, the amount with all its digits."""
    workflow, _, _ = manifests()
    given = {"applicant_id": "APP-1002", "amount": Decimal("12000.50"), "purpose": "home improvement"}
    talk = Talk()
    talk.say(templates.render(workflow.spec.nodes[0].input_template or "", {"input": given}))
    await talk.turn()
    assert "Amount: 12000.50 USD" in talk.messages[0].content
    arguments = {request.name: request.arguments for message in talk.messages for request in message.requests}
    assert arguments["credit_check"] == {"applicant_id": "APP-1002"}
    assert arguments["policy_lookup"] == {"purpose": "home improvement"}
