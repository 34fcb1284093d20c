"""The durable way: the same talk as a free tree, and the application that has it.

A recorded answer is whole, so the floor goes to the first one that is recorded. Nothing but the tree and its context is
used, so a worker that is lost in mid-talk is replaced by another, which asks only for what was not recorded yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from typing import Any

from casework.agents import ModelAnswer, ModelRequest
from casework.app import App
from casework.examples.group_talk.committee import CAST, OPENING, seat
from casework.examples.group_talk.parts import Heard, Line, Role
from casework.examples.group_talk.scripted import Script
from casework.examples.group_talk.talk import ROUNDS, GroupTalkManager
from casework.graph.manifests import AiAgent, LlmProvider
from casework.tasktree import submit
from casework.trees import TreeContext, free_tree

INPUT = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "opening": {
            "type": "string",
            "pattern": "\\S",
            "maxLength": 20_000,
            "description": "What the chair says first; without it, the application that ships.",
        },
        "rounds": {
            "type": "integer",
            "minimum": 0,
            "maximum": 200,
            "description": f"Replies after the opening, at most; {ROUNDS} unless given.",
        },
        "pace": {
            "type": "number",
            "minimum": 0,
            "maximum": 3600,
            "description": "Seconds that each role thinks before it answers; none unless given.",
        },
    },
}
PROVIDER = LlmProvider.model_validate(
    {
        "kind": "LlmProvider",
        "metadata": {"name": "committee-model"},
        "spec": {"type": "scripted", "script": CAST[0].agent},
    }
)


class DurableVoices:
    """Asks the agents of a run, by the name that `agents` gives for each role. A reply is one piece, recorded.

    `pace` is how many seconds each role thinks before it answers: a durable wait, so that one can look on.
    """

    def __init__(self, ctx: TreeContext, agents: Mapping[str, str], pace: float = 0.0) -> None:
        self._ctx = ctx
        self._agents = agents
        self._pace = pace

    async def reply(self, role: Role, heard: Heard) -> AsyncIterator[str]:
        """As `Voices.reply`."""
        if self._pace:
            await asyncio.sleep(self._pace)
        yield str(await self._ctx.ask(self._agents[role.name], heard.text))


def _agent(name: str, brief: str) -> AiAgent:
    spec = {"provider": PROVIDER.name, "systemPrompt": brief, "model": f"scripted:{name}"}
    return AiAgent.model_validate({"kind": "AiAgent", "metadata": {"name": name}, "spec": spec})


def scripted_agent(script: Script) -> Any:
    """A role's script as a scripted model: it has heard what its agent was told."""

    def model(request: ModelRequest) -> ModelAnswer:
        return ModelAnswer(text=script("\n\n".join(said.content for said in request.messages if said.role == "user")))

    return model


@free_tree(
    "group-talk",
    version=1,
    agents=[_agent(member.agent, member.brief) for member in CAST],
    providers=[PROVIDER],
    input=INPUT,
)
async def group_talk(ctx: TreeContext) -> dict[str, Any]:
    """Hold the talk; returns why it ended and its minutes, a list of speaker, words, round and broken_off."""
    pace = float(ctx.input.get("pace", 0))
    voices = DurableVoices(ctx, {member.name: member.agent for member in CAST}, pace)
    opening, rounds = ctx.input.get("opening", OPENING), int(ctx.input.get("rounds", ROUNDS))
    manager = seat(GroupTalkManager(voices, opening, rounds=rounds))
    minutes: list[Line] = await submit(manager)
    return {
        "ended": manager.end_reason,
        "minutes": [asdict(line) for line in minutes],
    }


app = App(trees=[group_talk], scripts={member.agent: scripted_agent(member.script) for member in CAST})
