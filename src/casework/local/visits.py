"""Visits of graph nodes as Jobs of the task tree, branches as handlers below them, carried out in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from uuid import UUID

from casework.errors import CaseworkError, FatalError, RetryableError
from casework.graph import commands, engine, templates
from casework.graph.bundle import PinnedWorkflow
from casework.graph.commands import Branch, Due, Outcome, Result
from casework.graph.joining import join
from casework.graph.manifests import Vertex
from casework.graph.state import EngineState
from casework.local import outside
from casework.local.agents import Transcript, Turn
from casework.local.calls import Calls
from casework.local.house import House, LocalEnd, VisitFailedError
from casework.tasktree import Job, NodeState, Stage, TaskNode, current_node, handler
from casework.values import Plain

Over = Callable[[Due, Outcome | BaseException | None], None]


class SubRuns(Protocol):
    """Starts runs of sub-workflows."""

    async def __call__(self, name: str, given: Mapping[str, Plain], path: str) -> LocalEnd:
        """Run the workflow or free tree of that name to its end."""
        ...


class LocalFile:
    """What the visits of one run share. `place` is where the run stands: one visit is under way at a time."""

    place: EngineState

    def __init__(
        self, house: House, bundle: PinnedWorkflow, run_id: UUID, calls: Calls, sub_run: SubRuns, over: Over
    ) -> None:
        self.house = house
        self.bundle = bundle
        self.places = bundle.workflow.spec.places
        self.run_id = run_id
        self.calls = calls
        self.sub_run = sub_run
        self.over = over
        self._quick = frozenset(name for name, place in self.places.items() if self._is_quick(place.node))
        self._transcripts: dict[str, Transcript] = {}

    def visit(self, command: Due) -> Visit:
        """The visit that carries the command out."""
        return QuickVisit(self, command) if command.node in self._quick else LocalVisit(self, command)

    def _is_quick(self, node: Vertex) -> bool:
        tool = self.house.tools.find(node.tool or "")
        return node.type == "CONDITION" or (tool is not None and tool.inline)

    def transcript(self, agent: str, branch: Branch | None) -> Transcript:
        """The agent's transcript of this run; in a branch a new one."""
        if branch is not None:
            return Transcript(agent)
        return self._transcripts.setdefault(agent, Transcript(agent))


class Visit(Job):
    """One visit; its result is the outcome.

    The file's `over` is told the command and the outcome, or the error that ends the run, as soon as nothing below the
    visit is left to be done. It is not told where the visit is terminated.
    """

    __slots__ = ("command", "file")

    def __init__(self, file: LocalFile, command: Due) -> None:
        super().__init__(command.node)
        self.file = file
        self.command = command

    def ends(self, outcome: Outcome | Exception) -> None:
        """Tell of the outcome, or of the error instead of one."""
        if isinstance(outcome, VisitFailedError):
            outcome = commands.NodeFailed(str(outcome))
        if not self.children:
            self.file.over(self.command, outcome)
        else:  # what is below it may not have ended, and may fail it yet
            self.on(Stage.AT_JOB_END, self._ended, outcome)

    def _ended(self, outcome: Outcome | Exception) -> None:
        spoilt = self.state is NodeState.EXCEPTION and not isinstance(outcome, (commands.NodeFailed, Exception))
        self.file.over(self.command, self.exception if spoilt else outcome)


class QuickVisit(Visit, inline=True):
    """A visit that only computes: of a CONDITION, or of a TOOL that is declared inline."""

    __slots__ = ()

    def task(self) -> Outcome:
        """All of it, at once."""
        command, file = self.command, self.file
        try:
            if isinstance(command, commands.Evaluate):
                outcome: Outcome = engine.evaluate(command, file.place)
            else:
                outcome = commands.Returned(self._result(file.places[command.node].node))
        except Exception as error:
            self.ends(error)
            raise
        self.ends(outcome)
        return outcome

    def _result(self, node: Vertex) -> Plain:
        try:
            arguments = templates.render_all(node.arguments or {}, self.file.place.context)
            return self.file.calls.inline(node.tool or "", arguments)
        except FatalError:
            raise
        except CaseworkError as error:
            raise _failed(error) from error


class LocalVisit(Visit):
    """A visit that may wait."""

    __slots__ = ()

    async def task(self) -> TaskNode:
        """Continue outside the queue."""
        return self.work()

    @handler
    async def work(self) -> Outcome:
        """The visit itself."""
        try:
            outcome = await self._outcome(self.command)
        except Exception as error:
            self.ends(error)
            raise
        self.ends(outcome)
        return outcome

    async def _outcome(self, command: Due) -> Outcome:
        assert not isinstance(command, commands.Evaluate), "that is a quick visit"
        node = self.file.places[command.node].node
        if isinstance(command, commands.RunBranches):
            specs = {each.id: each for each in node.branches or ()}
            return await join(
                command, lambda branch: self._done(specs[branch.name], branch.command, branch), VisitFailedError
            )
        return await self._done(node, command, None)

    async def _done(self, vertex: Vertex, command: commands.Work, branch: Branch | None) -> Result:
        """Carry out a command in the running node.

        Raises:
            VisitFailedError: it did not succeed.
            FatalError, NobodyError: the run cannot go on.
        """
        try:
            return await self._carried_out(vertex, command, branch)
        except (FatalError, outside.NobodyError):
            raise
        except CaseworkError as error:
            raise _failed(error) from error

    async def _carried_out(self, vertex: Vertex, command: commands.Work, branch: Branch | None) -> Result:
        seen = engine.scope(self.file.place, branch)
        if isinstance(command, commands.RunTool):
            arguments = templates.render_all(vertex.arguments or {}, seen)
            return commands.Returned(await self.file.calls.tool(vertex.tool or "", arguments))
        path = current_node().path
        match command:
            case commands.RunAgent():
                return commands.Answered(await self._turn(vertex, command, branch, seen))
            case commands.RunSubworkflow(workflow=name):
                given = templates.render_all(vertex.arguments or {}, seen)
                return _ended(await self.file.sub_run(name, given, path), name)
            case commands.Wait():
                return await _wait(self.file.house, command, path)
        return await self._decision(vertex, command, path)

    async def _turn(
        self, vertex: Vertex, command: commands.RunAgent, branch: Branch | None, seen: Mapping[str, Any]
    ) -> Any:
        file = self.file
        agent = file.bundle.agent_of(vertex)
        words = [engine.opening(vertex, seen)] if command.render else []
        words += [command.words] if command.words is not None else []
        model = file.house.model_of(agent, file.bundle.providers)
        schema = file.bundle.output_schema(vertex)
        turn = Turn(agent, model, file.house.tools, schema, file.calls, file.transcript(agent.name, branch))
        return await turn.answer(words)

    async def _decision(self, vertex: Vertex, command: commands.AwaitDecision, path: str) -> commands.Decided:
        question = outside.question_of(vertex, command, path, self.file.place.answer)
        made = await self.file.house.outside.decide(question)
        outside.check(question, made, self.file.run_id)
        return made


def _failed(error: CaseworkError) -> VisitFailedError:
    return VisitFailedError(f"{current_node().path}: {error}" if isinstance(error, RetryableError) else str(error))


def _ended(end: LocalEnd, name: str) -> commands.Ended:
    if end.status != "COMPLETED":
        raise VisitFailedError(f"the run of {name} ended {end.status}: {end.reason}")
    return commands.Ended(end.outcome, end.output)


async def _wait(house: House, wait: commands.Wait, path: str) -> Result:
    """Whichever comes first; a signal that is there already comes before any time."""
    if wait.signal is None:
        await house.sleep(wait.duration_s or 0)
        return commands.TimedOut()
    if wait.duration_s is None:
        return commands.Signalled(await house.outside.signal(wait, path))
    signal = asyncio.ensure_future(house.outside.signal(wait, path))
    time = asyncio.ensure_future(house.sleep(wait.duration_s))
    try:
        await asyncio.wait((signal, time), return_when=asyncio.FIRST_COMPLETED)
        return commands.Signalled(signal.result()) if signal.done() else commands.TimedOut()
    finally:
        for future in (signal, time):
            future.cancel()
