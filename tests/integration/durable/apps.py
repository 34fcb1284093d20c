"""Small applications for tests: one agent, the tools a test gives it, and a script that asks for them one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from casework.agents import ModelAnswer, ModelRequest, Request, Tool, tool
from casework.app import App
from casework.errors import ToldError

WORKFLOW = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {{name: errand}}
spec:
  initialNode: act
  policyAdoption: {adoption}
  nodes:
    - {{id: act, type: AGENT, agentRef: runner, outputKey: report, inputTemplate: "Do the errand."}}
    - id: decision
      type: HUMAN_APPROVAL
      decisions: [{{name: approve, outcome: approved}}, {{name: reject, outcome: declined}}, {{name: more_info}}]
  edges:
    - {{from: act, to: decision}}
    - {{from: decision, to: end, condition: approve}}
    - {{from: decision, to: end, condition: reject}}
    - {{from: decision, to: act, condition: more_info}}
---
apiVersion: casework.dev/v1alpha1
kind: AiAgent
metadata: {{name: runner}}
spec: {{provider: scripts, tools: [{tools}], maxExchanges: {exchanges}}}
---
apiVersion: casework.dev/v1alpha1
kind: LlmProvider
metadata: {{name: scripts}}
spec: {{type: scripted, script: runner}}
"""


def asking(*batches: Sequence[tuple[str, dict[str, object]]]) -> object:
    """A script that asks for the calls of each batch in one answer, batch after batch, then says what it was told."""

    def script(request: ModelRequest) -> ModelAnswer:
        asked = sum(1 for message in request.messages if message.role == "assistant" and message.requests)
        if asked < len(batches):
            calls = enumerate(batches[asked])
            return ModelAnswer(requests=tuple(Request(f"c{asked}-{i}", name, given) for i, (name, given) in calls))
        told = [message.content for message in request.messages if message.role == "tool"]
        words = [message.content for message in request.messages if message.role == "user"]
        return ModelAnswer(text=" | ".join([*told, words[-1]]), tokens_in=10, tokens_out=2)

    return script


def errand(
    folder: Path,
    tools: Iterable[Tool],
    script: object,
    *,
    listed: Sequence[str] = (),
    exchanges: int = 20,
    adoption: str = "pinned",
) -> App:
    """An App with one workflow `errand`; `listed` are the agent's tools, all of them unless given."""
    tools = tuple(tools)
    names = listed or [tool.name for tool in tools]
    manifest = folder / "errand.yaml"
    manifest.write_text(WORKFLOW.format(tools=", ".join(names), exchanges=exchanges, adoption=adoption))
    return App(tools=tools, manifests=(manifest,), scripts={"runner": script})


GATED = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: gated}
spec:
  initialNode: weigh
  input: {type: object, required: [weight], properties: {weight: {type: integer}}}
  nodes:
    - {id: weigh, type: TOOL, tool: weigh, arguments: {weight: "{{ input.weight }}"}, outputKey: scale}
    - {id: heavy, type: CONDITION, expression: "scale.grams > 1000"}
    - {id: first, type: HUMAN_APPROVAL, decisions: [{name: approve}, {name: reject, outcome: refused}]}
    - id: second
      type: HUMAN_APPROVAL
      decisions: [{name: approve, outcome: passed}, {name: reject, outcome: refused}]
  edges:
    - {from: weigh, to: heavy}
    - {from: weigh, to: second, onError: true}
    - {from: heavy, to: first, condition: "true"}
    - {from: heavy, to: end, condition: "false"}
    - {from: first, to: second, condition: approve}
    - {from: first, to: end, condition: reject}
    - {from: second, to: end, condition: approve}
    - {from: second, to: end, condition: reject}
"""


@tool(effects=False)
def weigh(weight: int) -> dict[str, int]:
    """Weigh it, in kilograms; nothing weighs less than nothing."""
    if weight < 0:
        raise ToldError("weigh: a weight cannot be negative.")
    return {"grams": weight * 1000}


def gated(folder: Path) -> App:
    """An App without an agent: a TOOL, a CONDITION on what it found, and two approvals in a row."""
    manifest = folder / "gated.yaml"
    manifest.write_text(GATED)
    return App(tools=[weigh], manifests=(manifest,))
