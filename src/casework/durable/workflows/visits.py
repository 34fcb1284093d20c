"""Visits of graph nodes as Jobs of the task tree. A visit's result is the outcome the graph engine goes on with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from temporalio import workflow

from casework import ids
from casework.durable.contracts import Say
from casework.durable.workflows.branches import BranchesVisit
from casework.durable.workflows.casefile import CaseFile, Due, Visit
from casework.durable.workflows.exchange import AgentSeat, Exchanges, converse
from casework.durable.workflows.reviews import ask
from casework.durable.workflows.rolling import ordinal_of
from casework.durable.workflows.sub_runs import SubRunVisit
from casework.durable.workflows.tool_step import tool_step
from casework.durable.workflows.waits import WaitVisit
from casework.graph import commands, engine
from casework.graph.state import EngineState
from casework.tasktree import current_node


class AgentVisit(Visit):
    """AGENT: exchanges with the model until it answers."""

    async def visit(self) -> commands.Outcome:
        """The agent's answer."""
        file, node = self.file, self.node
        agent = file.bundle.agent_of(node)
        seat = AgentSeat(
            workflow=file.bundle.name,
            version=file.start.workflow_version,
            node=node.id,
            agent=agent.name,
            turn=self.command.turn,
            tools=tuple(agent.spec.tools),
            context=file.sent(node, self.place.context),
            model=file.start.model,
        )
        said = () if self.resumed else self._words()
        say = tuple(Say(file.journal.next_position(), words) for words in said)
        output = await converse(
            Exchanges(seat, file.journal, file.operations),
            say,
            agent.spec.max_exchanges,
            done=self.done,
            at_rest=file.rolling.rest,
        )
        file.journal.recommendation = output
        file.journal.output(current_node().path, node.output_key or node.id, self.command.visit, output)
        return commands.Answered(output)

    def _words(self) -> list[str | None]:
        template: list[str | None] = [None] if self.command.render else []
        return template + ([self.command.words] if self.command.words is not None else [])


class ToolVisit(Visit):
    """TOOL: one tool with rendered arguments."""

    async def visit(self) -> commands.Outcome:
        """The tool's result; an error it would tell a model fails the node."""
        file, node = self.file, self.node
        sent = file.sent(node, self.place.context)
        made = await tool_step(file, file.operations, node, node.id, self.place.turn, sent)
        file.journal.output(current_node().path, node.output_key or node.id, self.command.visit, made.result)
        return made


class ConditionVisit(Visit):
    """CONDITION: an expression that says true or false."""

    async def visit(self) -> commands.Outcome:
        """The value of the expression."""
        return engine.evaluate(self.command, self.place)


class ReviewVisit(Visit):
    """HUMAN_APPROVAL: ask, wait without holding a worker, go on with the decision."""

    async def visit(self) -> commands.Outcome:
        """The accepted decision."""
        file, path = self.file, current_node().path
        review_id = str(ids.review_id(UUID(file.start.run_id), path))
        if not self.resumed:
            self._ask(path, review_id)
        await self._answer()
        decision = file.inbox.accepted
        assert decision is not None
        return commands.Decided(decision.command, decision.reason, decision.reviewer)

    def _ask(self, path: str, review_id: str) -> None:
        file, command = self.file, self.command
        review = ask(file, self.place, self.node, command, review_id)
        file.journal.run("AWAITING_REVIEW")
        file.inbox.ask(path, review)

    async def _answer(self) -> None:
        """Wait for an accepted decision; whatever arrives meanwhile is written at once."""
        file = self.file
        while file.inbox.accepted is None:
            await file.operations.flush()
            if file.inbox.accepted is None:
                await file.rolling.rest()
            await workflow.wait_condition(lambda: file.inbox.accepted is not None or len(file.journal.outbox) > 0)


_VISITS: Mapping[type, Callable[..., Visit]] = {
    commands.RunAgent: AgentVisit,
    commands.RunTool: ToolVisit,
    commands.Evaluate: ConditionVisit,
    commands.AwaitDecision: ReviewVisit,
    commands.Wait: WaitVisit,
    commands.RunBranches: BranchesVisit,
    commands.RunSubworkflow: SubRunVisit,
}


def visit_for(file: CaseFile, state: EngineState, command: Due) -> Visit:
    """The Job that carries out a command of the graph engine, at the place where it was at rest, if it was."""
    visit = _VISITS[type(command)](file, state, command)
    place = file.take_place()
    if place is not None:
        visit.resumed, visit.done = True, place.done
        visit.reopen(ordinal_of(place.at_rest or ""))
    return visit
