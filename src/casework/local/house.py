"""What local runs share, and how each of them ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from casework.agents.toolbox import Toolbox
from casework.graph.manifests import AiAgent, LlmProvider
from casework.graph.state import DEFAULT_TURN_LIMIT, EngineState
from casework.graph.tracing import TraceStep
from casework.local.outside import Outside
from casework.policy.limits import PolicySource
from casework.tasktree import Commander
from casework.trees.definition import FreeTree
from casework.trees.local import LocalModel

ModelOf = Callable[[AiAgent, Mapping[str, LlmProvider]], LocalModel]
"""The model of an agent: one of `casework.models`, or a function from ModelRequest to ModelAnswer."""


def _told(_within: str, _step: TraceStep) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class House:
    """Models, tools and the world outside. `told` hears each step as it ends, with the path of the run it is in."""

    outside: Outside
    model_of: ModelOf
    tools: Toolbox = field(default_factory=Toolbox)
    trees: Mapping[tuple[str, int], FreeTree] = field(default_factory=dict)
    policies: PolicySource | None = None
    turn_limit: int = DEFAULT_TURN_LIMIT
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    told: Callable[[str, TraceStep], None] = _told


@dataclass(frozen=True)
class LocalEnd:
    """How a local run ended. `tree` is what was run; `subs` are the ends of sub-workflows by path."""

    status: Literal["COMPLETED", "FAILED"]
    outcome: str | None = None
    output: Any = None
    reason: str | None = None
    state: EngineState | None = None
    trace: tuple[TraceStep, ...] = field(default=(), repr=False)  # may be long, and `asyncio.run` asks for the text
    tree: Commander | None = field(default=None, compare=False, repr=False)
    subs: Mapping[str, LocalEnd] = field(default_factory=dict)

    @property
    def drawing(self) -> str:
        """The tree as text, drawn when it is asked for: to draw a visit costs as much as to make it."""
        return "" if self.tree is None else self.tree.render()


class VisitFailedError(Exception):
    """A visit or branch did not succeed; an `onError` edge may catch it."""
