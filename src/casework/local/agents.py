"""One turn of an agent in memory: exchanges with its model until it answers, its tools called directly.

The model and each tool are handlers below the exchange, as in a durable run. Each is tried once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from casework.agents.messages import Message, Request
from casework.agents.model import ModelAnswer, ModelRequest
from casework.agents.toolbox import Toolbox
from casework.errors import FatalError, RetryableError, ToldError
from casework.graph.manifests import AiAgent
from casework.local.calls import Calls
from casework.local.house import VisitFailedError
from casework.tasktree import HandlerNode, call, current_node, handler
from casework.trees.local import LocalModel, answer_of
from casework.values import Plain, dumps

REQUESTS_LIMIT = 32
"""Tool calls that one answer may ask for; the model is told of those beyond."""
NAME_LIMIT = 64
"""Characters of a name that the model made up which become part of a path."""


@dataclass
class Transcript:
    """What one agent was told and has said in a run, or in one branch of it."""

    agent: str
    messages: list[Message] = field(default_factory=list)

    def say(self, role: Any, content: str, **more: Any) -> None:
        """Add a message."""
        self.messages.append(Message(len(self.messages) + 1, self.agent, role, content, **more))


class Turn:
    """One turn of an agent: `words` are said, then there are exchanges until it answers."""

    def __init__(
        self,
        agent: AiAgent,
        model: LocalModel,
        tools: Toolbox,
        schema: Plain,
        calls: Calls,
        transcript: Transcript,
    ) -> None:
        self._agent = agent
        self._model = model
        self._tools = tools
        self._schema = schema
        self._calls = calls
        self._transcript = transcript

    async def answer(self, words: Sequence[str]) -> Any:
        """The agent's output: the structured one where there is a schema, else its text.

        Raises:
            VisitFailedError: the model gave none.
            FatalError: the run cannot go on.
        """
        for each in words:
            self._transcript.say("user", each)
        for _ in range(self._agent.spec.max_exchanges):
            made = await call(self.exchange())
            if not made.requests:
                return made.output if made.output is not None else made.text
        limit = self._agent.spec.max_exchanges
        raise VisitFailedError(f"the agent gave no answer within {limit} exchanges (maxExchanges)")

    @handler
    async def exchange(self) -> ModelAnswer:
        """Ask the model once, then run all tools it asked for; returns when each of them has ended."""
        made = await call(self._ask().named("model"))
        content = made.text or ("" if made.output is None else dumps(made.output))
        self._transcript.say("assistant", content, requests=made.requests, parts=made.parts)
        nodes = [self._start(request, number) for number, request in enumerate(made.requests)]
        for node, request in zip(nodes, made.requests, strict=True):
            self._transcript.say("tool", await node, call_id=request.call_id, tool=request.name)
        return made

    @handler
    async def _ask(self) -> ModelAnswer:
        request = ModelRequest(
            system=self._agent.spec.system_prompt,
            messages=tuple(self._transcript.messages),
            tools=self._tools.only(self._agent.spec.tools).schemas(),
            output_schema=self._schema,
        )
        try:
            return await answer_of(self._model, request)
        except Exception as error:  # whatever a model raises: there is no answer, and the node fails
            raise VisitFailedError(f"{current_node().path}: {str(error) or type(error).__name__}") from error

    def _start(self, request: Request, number: int) -> HandlerNode[str]:
        name, spec = request.name[:NAME_LIMIT].strip() or "unnamed", self._agent.spec
        if number >= REQUESTS_LIMIT:
            why = f"{name} was not called: one answer may ask for {REQUESTS_LIMIT} calls. Ask again for the rest."
            return call(_refused(why).named(name))
        if request.name not in spec.tools:
            known = ", ".join(spec.tools) or "none"
            return call(_refused(f"there is no tool {name!r}. Tools that can be called: {known}.").named(name))
        return call(self._tool(request).named(request.name))

    @handler
    async def _tool(self, request: Request) -> str:
        """What the model is told of one call: its result, or why there is none."""
        try:
            return dumps(await self._calls.tool(request.name, request.arguments))
        except ToldError as error:
            return dumps({"error": str(error)})
        except FatalError:
            raise
        except RetryableError as error:
            return dumps({"error": f"{request.name} failed and was given up: {error}"})


@handler
async def _refused(why: str) -> str:
    return dumps({"error": why})
