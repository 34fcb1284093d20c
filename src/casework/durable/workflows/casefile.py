"""What the visits of one run share, and what every visit is: a Job whose result the graph engine goes on with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from casework.durable.contracts import Carried, RunStart
from casework.durable.segment_contracts import StepFault
from casework.durable.workflows.failures import StepFailedError, VisitFailedError
from casework.durable.workflows.shell import RunFile
from casework.durable.workflows.tree_room import Room
from casework.errors import FatalError, UnserialisableError
from casework.graph import commands, engine
from casework.graph.bundle import PinnedWorkflow
from casework.graph.manifests import AiWorkflowSpec, Node, Vertex
from casework.graph.state import EngineState
from casework.tasktree import Job, TaskNode, handler
from casework.values import bounded

CONTEXT_BYTES = 1024 * 1024
"""Most that the outputs which one template needs may be together, as JSON; the engine takes 2 MB."""

HISTORY_EVENTS = 50_000
"""About what the engine takes of one part of a run."""

Due = commands.Due
"""Commands that a visit carries out; the others end the run."""


@dataclass(frozen=True)
class Tried:
    """An attempt of the tool at `path` that ended badly; `fault` None: it was lost."""

    path: str
    fault: StepFault | None


class CaseFile(RunFile):
    """What the visits of one run share."""

    def __init__(self, start: RunStart) -> None:
        super().__init__(start)
        self._carried = start.carried
        if start.form:
            self.journal.recommendation = start.input
        self.room = Room(HISTORY_EVENTS)
        """For the calls of branches, which are under way side by side."""
        self.tried: Tried | None = None
        """Of the visit that is due, if its tool has made its first attempt in a segment."""

    @cached_property
    def bundle(self) -> PinnedWorkflow:
        """The workflow that the run is pinned to."""
        return PinnedWorkflow.from_plain(self.start.bundle)

    def take_place(self) -> Carried | None:
        """For the first visit of a part of the run: where it was at rest before, if it was."""
        carried, self._carried = self._carried, None
        return carried if carried is not None and carried.at_rest is not None else None

    @property
    def spec(self) -> AiWorkflowSpec:
        """Its graph."""
        return self.bundle.workflow.spec

    def sent(self, vertex: Vertex, seen: Mapping[str, Any]) -> dict[str, Any]:
        """What a step of `vertex` is sent of all that it sees.

        Raises:
            UnserialisableError: it is more than the engine takes.
        """
        parts = engine.mentioned(vertex, seen) if self.start.sends_mentioned else seen
        return dict(bounded(parts, "the context of the run", CONTEXT_BYTES))


class Visit(Job):
    """Base of the visits: the body returns a handler call at once, so the queue is never held."""

    def __init__(self, file: CaseFile, state: EngineState, command: Due) -> None:
        super().__init__(command.node)
        self.file = file
        self.place = state
        self.command: Any = command
        self.resumed = False
        """Whether it was at rest when this part of the run began."""
        self.done = 0
        """How many exchanges it had behind it then."""

    @property
    def node(self) -> Node:
        """The graph node that is visited."""
        node = self.file.spec.node(self.command.node)
        if node is None:
            raise FatalError(f"the pinned workflow has no node {self.command.node!r}")
        return node

    async def task(self) -> TaskNode:
        """Continue this visit outside the queue."""
        return self.work()

    @handler
    async def work(self) -> commands.Outcome:
        """The visit itself."""
        try:
            return await self.visit()
        except StepFailedError as error:
            if error.fatal:
                raise
            raise VisitFailedError(str(error)) from error
        except UnserialisableError as error:
            raise VisitFailedError(str(error)) from error

    async def visit(self) -> commands.Outcome:
        """What the node does."""
        raise NotImplementedError
