"""A context for scripts and tests: models and tools asked directly, transcripts in memory, each call tried once."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from casework import ids
from casework.agents.invoke import invoke
from casework.agents.messages import Message
from casework.agents.model import LanguageModel, ModelAnswer, ModelRequest
from casework.agents.toolbox import Toolbox
from casework.agents.tools import Tool, ToolContext
from casework.errors import GivenUpError, OperationError, RetryableError
from casework.graph.manifests import AiAgent
from casework.policy.limits import PolicySource
from casework.tasktree import current_node
from casework.trees.context import TreeCalls
from casework.values import Plain, dumps

Script = Callable[[ModelRequest], ModelAnswer | Awaitable[ModelAnswer]]
LocalModel = Script | LanguageModel
RUN_ID = UUID(int=0)
"""The run that a tool sees."""
_UNSEEN = ToolContext("local", RUN_ID, "", "")
"""The context of a tool that takes none: to make one costs more than many a tool."""


class LocalContext(TreeCalls):
    """A TreeContext with nothing durable in it. `transcripts` holds what each agent was told and has said."""

    def __init__(
        self,
        given: Mapping[str, Any],
        models: Mapping[str, LocalModel],
        tools: Iterable[Tool] = (),
        agents: Iterable[AiAgent] = (),
    ) -> None:
        super().__init__(given, models)
        self._models = dict(models)
        self._tools = Toolbox(tools)
        self._manifests = {agent.name: agent.spec for agent in agents}
        self._evidence: dict[str, Any] = {}
        self._position = 0
        self.transcripts: defaultdict[str, list[Message]] = defaultdict(list)

    async def asked(self, agent: str, words: str) -> Any:
        """Ask once; a failed ask leaves nothing in the transcript."""
        spec, told = self._manifests.get(agent), self.transcripts[agent]
        said = Message(self._place(), agent, "user", words)
        request = ModelRequest(
            system="" if spec is None else spec.system_prompt,
            messages=(*told, said),
            output_schema=None if spec is None else spec.output_schema,
        )
        answer = await self._answer(agent, request)
        content = answer.text or ("" if answer.output is None else dumps(answer.output))
        told += [said, Message(self._place(), agent, "assistant", content, parts=answer.parts)]
        return answer.text if answer.output is None else answer.output

    async def _answer(self, agent: str, request: ModelRequest) -> ModelAnswer:
        path, model = current_node().path, self._models[agent]
        try:
            answer = await answer_of(model, request)
        except OperationError as error:
            raise GivenUpError(path, str(error)) from error
        if answer.requests:
            raise GivenUpError(path, asked_for_tools(answer.requests))
        return answer

    async def called(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call once, with the key that this place in the tree has."""
        tool, path = self._tools.get(name), current_node().path
        try:
            result = await call_once(tool, RUN_ID, self.input, self._evidence, arguments)
        except RetryableError as error:
            raise GivenUpError(path, str(error)) from error
        self._evidence[name] = result
        return result

    def _place(self) -> int:
        self._position += 1
        return self._position


async def answer_of(model: LocalModel, request: ModelRequest) -> ModelAnswer:
    """The answer of a model or script, asked once; whatever it raises goes up."""
    made: Any = model(request) if callable(model) else model.request(request)
    answer: ModelAnswer = await made if inspect.isawaitable(made) else made
    return answer


async def call_once(
    tool: Tool,
    run_id: UUID,
    given: Mapping[str, Any],
    evidence: Mapping[str, Any],
    arguments: Plain,
    policies: PolicySource | None = None,
) -> Plain:
    """Call a tool once in the running node, with the key that this place in the tree has.

    Raises:
        ToldError, RetryableError, FatalError: as `invoke`.
    """
    return await invoke(tool, seen_here(tool, run_id, given, evidence, policies), arguments)


def seen_here(
    tool: Tool,
    run_id: UUID,
    given: Mapping[str, Any],
    evidence: Mapping[str, Any],
    policies: PolicySource | None = None,
) -> ToolContext:
    """The context of a call of `tool` in the running node."""
    if not tool.signature.takes_context:
        return _UNSEEN
    path = current_node().path
    key = str(ids.step_id(run_id, path))
    return ToolContext("local", run_id, path, key, input=given, evidence=dict(evidence), policies=policies)


def asked_for_tools(requests: Iterable[Any]) -> str:
    """Why an answer that asks for tools is none."""
    names = ", ".join(dict.fromkeys(request.name for request in requests))
    return f"the model asked for tools ({names:.200}) and got none: a tree calls tools itself"
