"""PARALLEL and MAP: branches as handlers below the visit, side by side, each with the activities of its kind.

What a branch asks and calls waits for room, since all that is under way travels to the engine in one answer, whose size
is bounded. Whoever waits holds one of the visit's `maxParallel` places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from casework.durable.contracts import Say
from casework.durable.policies import OperationPolicy
from casework.durable.workflows.casefile import CONTEXT_BYTES, CaseFile, Visit
from casework.durable.workflows.exchange import AgentSeat, Exchanges, converse
from casework.durable.workflows.failures import StepFailedError, VisitFailedError
from casework.durable.workflows.operations import Operations, Reply
from casework.durable.workflows.reviews import People
from casework.durable.workflows.sub_runs import sub_run
from casework.durable.workflows.tool_step import tool_step
from casework.durable.workflows.tree_room import Room
from casework.durable.workflows.waits import wait
from casework.errors import ExpressionError, FatalError, UnserialisableError
from casework.graph import commands, engine, fanning
from casework.graph.commands import Branch, Joined, Result
from casework.graph.joining import join
from casework.graph.manifests import Vertex
from casework.tasktree import current_node
from casework.values import bounded, dumps

UNSENT_BYTES = 64 * 1024
"""Most that a join leaves for the next step to carry; more is sent at once, as one step takes only so much."""


class BranchesVisit(Visit):
    """PARALLEL, or MAP: all branches, then their results in order."""

    async def visit(self) -> commands.Outcome:
        """The results. Where a branch failed the visit has failed, and says which; an `onError` edge gets the rest."""
        file, due = self.file, self.command.branches
        self._people = People(file)
        made = await join(self.command, self._done, VisitFailedError)
        if file.journal.outbox.size > UNSENT_BYTES:
            await file.operations.flush()
        failed = fanning.failure(due, made.results)
        if failed is None or self.file.spec.rescue(self.node.id) is not None:
            self._tell(made)
        if failed is not None:
            raise VisitFailedError(failed, made)
        return made

    def _tell(self, made: Joined) -> None:
        node, place = self.node, self.place
        try:
            due = fanning.branches(node, place.context, place.turn, place.words)
        except ExpressionError as error:  # nothing was due for that; the engine says why the node fails
            raise VisitFailedError(str(error), made) from error
        value = fanning.joined(node, due, made.results)
        bounded(value, f"the value of node {node.id}", CONTEXT_BYTES)
        self.file.journal.output(current_node().path, node.output_key or node.id, self.command.visit, value)

    async def _done(self, branch: Branch) -> Result:
        """Carry out one branch, in its own node.

        Raises:
            VisitFailedError: it did not succeed; the others go on.
            StepFailedError: the run cannot go on.
        """
        path, journal = current_node().path, self.file.journal
        try:
            with self._people.at_work():
                result = await self._carried_out(self._vertex(branch), branch)
        except (StepFailedError, UnserialisableError, VisitFailedError) as error:
            if isinstance(error, StepFailedError) and error.fatal:
                raise
            journal.event(path, "agent.branch_failed", {"branch": branch.step, "error": str(error)})
            raise VisitFailedError(str(error)) from error
        journal.event(path, "agent.branch_completed", {"branch": branch.step})
        return result

    def _vertex(self, branch: Branch) -> Vertex:
        found = next((each for each in self.node.branches or () if each.id == branch.name), None)
        if found is None:
            raise FatalError(f"node {self.node.id!r} of the pinned workflow has no branch {branch.name!r}")
        return found

    async def _carried_out(self, vertex: Vertex, branch: Branch) -> Result:
        match branch.command:
            case commands.RunAgent():
                return await self._turn(vertex, branch, branch.command)
            case commands.RunTool():
                return await self._tool(vertex, branch)
            case commands.RunSubworkflow():
                return await sub_run(self.file, vertex, branch.command, self._sent(vertex, branch))
            case commands.AwaitDecision():
                return await self._people.decision(self.place, vertex, branch.command)
            case commands.Wait():
                return await wait(self.file, branch.command)

    def _sent(self, vertex: Vertex, branch: Branch) -> dict[str, Any]:
        return self.file.sent(vertex, engine.scope(self.place, branch))

    async def _turn(self, vertex: Vertex, branch: Branch, command: commands.RunAgent) -> Result:
        file, sent = self.file, self._sent(vertex, branch)
        agent = file.bundle.agent_of(vertex)
        seat = AgentSeat(
            workflow=file.bundle.name,
            version=file.start.workflow_version,
            node=self.node.id,
            agent=agent.name,
            turn=command.turn,
            tools=tuple(agent.spec.tools),
            context=sent,
            model=file.start.model,
            branch=vertex.id,
            kept_as=f"{agent.name}@{current_node().path}",
        )
        words: list[str | None] = [None] if command.render else []
        words += [command.words] if command.words is not None else []
        say = tuple(Say(file.journal.next_position(), each) for each in words)
        exchanges = Exchanges(seat, file.journal, InTurn(file, sent), said=len(say))
        return commands.Answered(await converse(exchanges, say, agent.spec.max_exchanges))

    async def _tool(self, vertex: Vertex, branch: Branch) -> Result:
        sent = self._sent(vertex, branch)
        return await tool_step(self.file, InTurn(self.file, sent), vertex, self.node.id, self.place.turn, sent)


class InTurn:
    """The activities of one branch: each waits until there is room for it. Only the first brings the context along."""

    def __init__(self, file: CaseFile, sent: Mapping[str, Any]) -> None:
        self.owner = file.operations.owner
        self._operations: Operations = file.operations
        self._room: Room = file.room
        self._size = len(dumps(sent))

    async def execute(
        self,
        activity: str,
        path: str,
        name: str,
        policy: OperationPolicy,
        reply: type[Reply],
        request: Callable[[tuple[dict[str, Any], ...]], Any],
    ) -> Reply:
        """As `Operations.execute`, when there is room."""
        size, self._size = self._size, 0
        async with self._room.for_call(size):
            return await self._operations.execute(activity, path, name, policy, reply, request)

    async def flush(self) -> None:
        """As `Operations.flush`."""
        await self._operations.flush()
