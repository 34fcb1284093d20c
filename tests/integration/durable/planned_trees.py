"""The random trees of the unit tests as a free tree: the plans are its input."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

from casework.graph.manifests import AiAgent, AiAgentSpec, LlmProvider, LlmProviderSpec, Metadata
from casework.tasktree import Stage, current_node
from casework.trees import TreeContext, free_tree

with workflow.unsafe.imports_passed_through():
    from tests.integration.durable.tree_notes import SEEN
    from tests.unit.tasktree.planned import Plan, Turns, begin


AGENT = AiAgent(metadata=Metadata(name="ada"), spec=AiAgentSpec(provider="scripts"))
SCRIPTS = LlmProvider(metadata=Metadata(name="scripts"), spec=LlmProviderSpec(type="scripted", script="nods"))


class Asking(Turns):
    """A node that waits asks a model meanwhile, so the engine says who goes on when."""

    def __init__(self, ctx: TreeContext, schedule: list[int]) -> None:
        super().__init__(schedule)
        self.ctx = ctx

    async def wait(self) -> None:
        await super().wait()
        await self.ctx.ask("ada", current_node().path)


@free_tree("planned", version=1, agents=[AGENT], providers=[SCRIPTS])
async def planned(ctx: TreeContext) -> str:
    """Begin the plans, as children of the top node, and leave word of how all ended."""
    top = current_node()
    schedule = ctx.input["schedule"]
    turns = Asking(ctx, schedule) if ctx.input.get("asks") else Turns(schedule)
    commander = top.commander
    commander.on(Stage.AT_COMMANDER_END, lambda: remember(ctx.input["id"], commander.snapshot()))
    for plan in ctx.input["plans"]:
        begin(Plan.from_plain(plan), turns)
    return "begun"


def remember(key: str, snapshot: list[dict[str, Any]]) -> None:
    SEEN[key] = snapshot
