"""A free tree whose histories are kept. Its code is as old as they are: it is never changed, only added to as another
version.
"""

from __future__ import annotations

import asyncio
from typing import Any

from casework.agents import ModelAnswer, ModelRequest
from casework.app import App
from casework.errors import FatalError, GivenUpError, ToldError
from casework.graph.manifests import AiAgent, AiAgentSpec, LlmProvider, LlmProviderSpec, Metadata
from casework.tasktree import Job, TaskNode, call, current_node, handler, submit
from casework.trees import TreeContext, free_tree
from tests.integration.durable.apps import weigh

AGENTS = [AiAgent(metadata=Metadata(name=name), spec=AiAgentSpec(provider="scripts")) for name in ("ada", "bob")]
SCRIPTS = LlmProvider(metadata=Metadata(name="scripts"), spec=LlmProviderSpec(type="scripted", script="echo"))


class Round(Job):
    """Both are asked at once."""

    def __init__(self, ctx: TreeContext) -> None:
        self.ctx = ctx

    async def task(self) -> TaskNode:
        return self.go()

    @handler
    async def go(self) -> list[Any]:
        asks = [call(one(self.ctx, name)) for name in ("ada", "bob")]
        return [await ask for ask in asks]


@handler
async def one(ctx: TreeContext, name: str) -> Any:
    try:
        return await ctx.ask(name, f"speak, {name}")
    except GivenUpError:
        return "nothing"


@free_tree("kept-talk", version=1, agents=AGENTS, providers=[SCRIPTS])
async def kept_talk(ctx: TreeContext) -> Any:
    """Two rounds, a rest, a tool that works and one that refuses."""
    top = current_node()
    said = [await submit(Round(ctx), parent=top) for _ in range(2)]
    await asyncio.sleep(1)
    weighed = await ctx.call_tool("weigh", {"weight": len(said)})
    try:
        await ctx.call_tool("weigh", {"weight": -1})
    except ToldError as error:
        return {"said": said, "weighed": weighed, "refused": str(error)}
    return None


def echo(request: ModelRequest) -> ModelAnswer:
    """Bob does not answer the first time."""
    if request.messages[-1].agent == "bob" and len(request.messages) == 1:
        raise FatalError("bob is out")
    return ModelAnswer(text=request.messages[-1].content.upper())


app = App(tools=[weigh], scripts={"echo": echo}, trees=[kept_talk])
