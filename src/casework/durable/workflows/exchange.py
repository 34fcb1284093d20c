"""One exchange: one model answer, and the tool calls it asked for, side by side.

The model and each tool are handlers below the exchange, so each has a path of its own, which names its activity, its
ledger row and its idempotency key. Arguments and answers stay in the transcript; only what decides the way on comes
back into the history.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from casework.durable import contracts, policies
from casework.durable.contracts import ModelCall, ModelReply, Say, ToolCall, ToolReply, ToolRequest
from casework.durable.policies import OperationPolicy
from casework.durable.workflows.failures import StepFailedError, VisitFailedError
from casework.durable.workflows.journal import Journal, now
from casework.durable.workflows.operations import Reply
from casework.projection import MessageEntry, StepEntry
from casework.tasktree import TaskNode, call, current_node, handler
from casework.values import dumps

REQUESTS_LIMIT = 32
"""Tool calls that one answer may ask for; the model is told of those beyond."""
NAME_LIMIT = 64
"""Characters of a name that the model made up which become part of a path."""


@dataclass(frozen=True)
class AgentSeat:
    """Which agent speaks, where in the graph, and what it may call."""

    workflow: str
    version: int
    node: str
    agent: str
    turn: int
    tools: tuple[str, ...]
    context: dict[str, Any]
    model: str | None
    branch: str = ""
    kept_as: str = ""
    """In a branch: the name of its own transcript. Others are under way beside it, so its messages are counted."""

    @property
    def transcript(self) -> str:
        """The name under which its messages are kept."""
        return self.kept_as or self.agent


class Caller(Protocol):
    """Sends activities of a run: `Operations`, or those of a branch, which wait for room."""

    owner: contracts.Owner

    async def execute(
        self,
        activity: str,
        path: str,
        name: str,
        policy: OperationPolicy,
        reply: type[Reply],
        request: Callable[[tuple[dict[str, Any], ...]], Any],
    ) -> Reply:
        """As `Operations.execute`."""
        ...

    async def flush(self) -> None:
        """As `Operations.flush`."""
        ...


class Exchanges:
    """The exchange loop of one visit of an AGENT node."""

    def __init__(self, seat: AgentSeat, journal: Journal, operations: Caller, said: int = 0) -> None:
        self._seat = seat
        self._journal = journal
        self._operations = operations
        self._own = said
        """Positions of the seat so far, in a branch; `said` are those of the user messages that come first."""
        self._noted = 0

    @handler
    async def exchange(self, say: tuple[Say, ...]) -> ModelReply:
        """Ask the model once, then run all tools it asked for; returns when each of them has ended."""
        if self._seat.kept_as and self._journal.outbox.confirmed < self._noted:
            await self._operations.flush()  # another branch may have taken them along, and is not there yet
        up_to, own = self._journal.position, self._own
        position = self._journal.next_position()
        reply = await call(self._model(say, up_to, own, position).named("model"))
        self._own += 1 + len(reply.requests)
        calls = [self._start(request, position, number) for number, request in enumerate(reply.requests)]
        for node in calls:
            if node is not None:
                await node
        return reply

    def _start(self, request: ToolRequest, answer: int, number: int) -> TaskNode | None:
        position = self._journal.next_position()
        name = request.name[:NAME_LIMIT].strip() or "unnamed"
        if number >= REQUESTS_LIMIT:
            why = f"{name} was not called: one answer may ask for {REQUESTS_LIMIT} calls. Ask again for the rest."
            return call(self._refuse(request, position, why).named(name))
        if request.name not in self._seat.tools:
            known = ", ".join(self._seat.tools) or "none"
            why = f"there is no tool {name!r}. Tools that can be called: {known}."
            return call(self._refuse(request, position, why).named(name))
        return call(self._tool(request, answer, position).named(request.name))

    @handler
    async def _model(self, say: tuple[Say, ...], up_to: int, own: int, position: int) -> ModelReply:
        path = current_node().path
        try:
            return await self._operations.execute(
                contracts.CALL_MODEL,
                path,
                "model",
                policies.MODEL,
                ModelReply,
                lambda entries: self._model_call(path, say, (up_to, own, position), entries),
            )
        except StepFailedError as error:
            self._leave_no_hole(path, (*(part.position for part in say), position), error.reason)
            raise

    def _model_call(
        self, path: str, say: tuple[Say, ...], places: tuple[int, int, int], entries: tuple[dict[str, Any], ...]
    ) -> ModelCall:
        seat, (up_to, own, position) = self._seat, places
        return ModelCall(
            owner=self._operations.owner,
            path=path,
            workflow=seat.workflow,
            workflow_version=seat.version,
            node=seat.node,
            agent=seat.agent,
            turn=seat.turn,
            up_to=up_to,
            position=position,
            say=say,
            context=seat.context if any(part.words is None for part in say) else {},
            model=seat.model,
            outbox=entries,
            own=own if seat.kept_as else None,
            branch=seat.branch,
            kept_as=seat.kept_as,
        )

    def _leave_no_hole(self, path: str, positions: tuple[int, ...], reason: str) -> None:
        """A transcript has no holes: where the failed call would have written, a note says why it did not."""
        for position in positions:
            note = f"no message: the model call failed ({reason})"
            self._journal.add(MessageEntry(path, position, self._seat.transcript, "note", note, now()))

    @handler
    async def _tool(self, request: ToolRequest, answer: int, position: int) -> None:
        seat, path = self._seat, current_node().path
        try:
            await self._operations.execute(
                contracts.CALL_TOOL,
                path,
                request.name,
                policies.TOOL,
                ToolReply,
                lambda entries: ToolCall(
                    owner=self._operations.owner,
                    path=path,
                    workflow=seat.workflow,
                    workflow_version=seat.version,
                    node=seat.node,
                    agent=seat.agent,
                    turn=seat.turn,
                    name=request.name,
                    position=position,
                    answer_position=answer,
                    index=request.index,
                    call_id=request.call_id,
                    outbox=entries,
                    kept_as=seat.kept_as,
                ),
            )
        except StepFailedError as error:
            if error.fatal:
                raise
            self._tell(path, request, position, f"{request.name} failed and was given up: {error.reason}")

    @handler
    async def _refuse(self, request: ToolRequest, position: int, why: str) -> None:
        path = current_node().path
        self._journal.add(StepEntry(path, "tool", request.name, "FAILED", now(), error=why))
        self._journal.event(path, "agent.tool_failed", {"name": request.name, "error": why})
        self._tell(path, request, position, why)

    def _tell(self, path: str, request: ToolRequest, position: int, why: str) -> None:
        """The model is told that there is no result; none is made up."""
        content = dumps({"error": why})
        agent = self._seat.transcript
        self._journal.add(MessageEntry(path, position, agent, "tool", content, now(), request.call_id, request.name))
        self._noted = self._journal.outbox.last


async def converse(
    exchanges: Exchanges,
    say: tuple[Say, ...],
    limit: int,
    *,
    done: int = 0,
    at_rest: Callable[[int], Awaitable[None]] | None = None,
) -> Any:
    """Exchanges until the agent answers; returns its output.

    `done` exchanges were in an earlier part of the run. `at_rest` is told between two of them, with nothing in flight,
    how many are over.

    Raises:
        VisitFailedError: `limit` exchanges passed without an answer.
    """
    for number in range(done + 1, limit + 1):
        reply = await call(exchanges.exchange(say))
        if not reply.requests:
            return reply.output
        say = ()
        if at_rest is not None and number < limit:
            await at_rest(number)
    raise VisitFailedError(f"the agent gave no answer within {limit} exchanges (maxExchanges)")
