"""Small graphs, tools and models for local runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from casework.agents.model import ModelAnswer, ModelRequest
from casework.agents.toolbox import Toolbox
from casework.agents.tools import Tool, tool
from casework.errors import ToldError
from casework.graph.admission import admit
from casework.graph.bundle import PinnedWorkflow
from casework.graph.commands import AwaitDecision, Decided, Wait
from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider
from casework.local.house import House
from casework.local.outside import NobodyError, Question

HEAD = {"apiVersion": "casework.dev/v1alpha1"}
Script = Callable[[ModelRequest], ModelAnswer]


@tool(effects=False)
def double(n: int) -> int:
    """Twice the number."""
    if n < 0:
        raise ToldError(f"{n} is below 0")
    return 2 * n


def workflow(
    name: str, nodes: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]] = (), **more: Any
) -> Any:
    """A workflow whose first node is the initial one."""
    spec = {"initialNode": nodes[0]["id"], "nodes": list(nodes), "edges": list(edges), **more}
    return AiWorkflow.model_validate({**HEAD, "metadata": {"name": name}, "spec": spec})


def pinned(
    *workflows: AiWorkflow, agent: Mapping[str, Any] | None = None, tools: Sequence[Tool] = (double,)
) -> PinnedWorkflow:
    """The first of `workflows`, with an agent `clerk` that may call the tools."""
    spec = {"provider": "p", "tools": [each.name for each in tools], **(agent or {})}
    clerk = AiAgent.model_validate({**HEAD, "metadata": {"name": "clerk"}, "spec": spec})
    provider = LlmProvider.model_validate(
        {**HEAD, "metadata": {"name": "p"}, "spec": {"type": "openai", "defaultModel": "m"}}
    )
    return admit([*workflows, clerk, provider], [each.name for each in tools])[0]


def says(text: str) -> Script:
    """A model that always says this."""
    return lambda _request: ModelAnswer(text)


class Answers:
    """Decisions by the node or branch that asks, each given once; signals by name."""

    def __init__(
        self, decisions: Mapping[str, list[Decided]] | None = None, signals: Mapping[str, Any] | None = None
    ) -> None:
        self.decisions = {name: list(made) for name, made in (decisions or {}).items()}
        self.signals = dict(signals or {})
        self.asked: list[Question] = []

    async def decide(self, question: Question) -> Decided:
        self.asked.append(question)
        if not self.decisions.get(question.node):
            raise NobodyError(f"nobody decides at {question.path}")
        return self.decisions[question.node].pop(0)

    async def signal(self, wait: Wait, path: str) -> Any:
        if wait.signal not in self.signals:
            raise NobodyError(f"no signal {wait.signal} comes at {path}")
        return self.signals[wait.signal or ""]


def house(model: Script | None = None, answers: Answers | None = None, **more: Any) -> House:
    """A house whose agents all have one model."""
    return House(
        answers or Answers(),
        lambda _agent, _providers: model or says("done"),
        tools=Toolbox([double]),
        **more,
    )


def said(decision: str, reason: str = "") -> Decided:
    return Decided(decision, reason, "ann")


__all__ = ["Answers", "AwaitDecision", "double", "house", "pinned", "said", "says", "workflow"]
