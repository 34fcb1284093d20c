"""Small applications for tests: one agent, the tools a test gives it, and a script that asks for them one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from casework.agents import ModelAnswer, ModelRequest, Request, Tool
from casework.app import App

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
    return App(tools=tools, manifests=(manifest,), scripts={"runner": script})  # type: ignore[dict-item]  # a script
