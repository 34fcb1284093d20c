"""Our loop: a TOOL node that counts and a CONDITION node that goes round again."""

from __future__ import annotations

import asyncio
from typing import Any

from casework import App, Repeat, ToolContext, tool
from casework.agents.toolbox import Toolbox
from casework.graph.admission import admit
from casework.graph.bundle import PinnedWorkflow
from casework.graph.manifests import AiWorkflow
from casework.local.house import House
from casework.local.outside import NobodyError
from casework.local.run import run_local

LOOP = "loop"
CLAIMED = "loop-claimed"
"""The same loop with a tool that may have effects: its step is claimed before it acts, in a thread of its own."""
APART = "loop-apart"
"""The same loop with a tool whose effects are keyed: such a node never shares an activity with others."""
MAX_LOOPS = 100_000


@tool(effects=False, inline=True)
def add_one(n: int) -> int:
    """One more."""
    return n + 1


@tool(repeat=Repeat.IDEMPOTENT)
def add_one_claimed(n: int) -> int:
    """One more."""
    return n + 1


@tool(repeat=Repeat.KEYED)
def add_one_keyed(ctx: ToolContext, n: int) -> int:  # noqa: ARG001  # a keyed tool takes its key
    """One more."""
    return n + 1


def manifest(name: str = LOOP, counter: str = "add_one") -> AiWorkflow:
    """The workflow. `begin` is visited once, so that there is a number to add to; its visit is no step that counts."""
    nodes = [
        {"id": "begin", "type": "TOOL", "tool": counter, "arguments": {"n": -1}, "outputKey": "n"},
        {"id": "count", "type": "TOOL", "tool": counter, "arguments": {"n": "{{ n }}"}, "outputKey": "n"},
        {"id": "more", "type": "CONDITION", "expression": "n < input.upto"},
    ]
    edges = [
        {"from": "begin", "to": "count"},
        {"from": "count", "to": "more"},
        {"from": "more", "to": "count", "condition": "true"},
        {"from": "more", "to": "end", "condition": "false"},
    ]
    spec = {"initialNode": "begin", "nodes": nodes, "edges": edges, "maxLoops": MAX_LOOPS}
    return AiWorkflow.model_validate({"metadata": {"name": name}, "spec": spec})


app = App(
    tools=(add_one, add_one_claimed, add_one_keyed),
    manifests=(manifest(), manifest(CLAIMED, "add_one_claimed"), manifest(APART, "add_one_keyed")),
)


class _Nobody:
    """A loop asks nobody."""

    async def decide(self, *_: Any) -> Any:
        raise NobodyError("nobody is asked")

    async def signal(self, *_: Any) -> Any:
        raise NobodyError("nobody is asked")


def _no_model(*_: Any) -> Any:
    raise NobodyError("nobody is asked")


def pinned() -> PinnedWorkflow:
    """The loop, admitted once, as an application does at its start."""
    return admit([manifest()], ["add_one"])[0]


class Ours:
    """The local driver: visits as Jobs of the task tree."""

    def __init__(self) -> None:
        self._pinned = pinned()
        self._house = House(_Nobody(), _no_model, tools=Toolbox([add_one]))

    def __call__(self, rounds: int) -> int:
        """Run the loop to its end; the number of steps."""
        end = asyncio.run(run_local(self._house, self._pinned, {"upto": rounds}))
        assert (end.status, end.output, len(end.trace)) == ("COMPLETED", rounds, 2 * rounds + 1)
        return 2 * rounds
