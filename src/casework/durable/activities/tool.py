"""The tool activity: claim, act, commit; how a repeat is made safe depends on what the tool declares.

`idempotent` and `keyed` tools simply act again, the latter under the same key. A `verify` tool first asks the
destination whether an earlier attempt took effect, then the ledger whether it still is the current one. A
`transactional` tool writes in the transaction that commits its ledger row, after it has locked the row and seen that
the attempt is still its own; it is lent that transaction and can neither end nor keep it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Any, Literal

from psycopg import AsyncConnection
from temporalio import activity

from casework.agents.invoke import invoke
from casework.agents.tools import Repeat, Tool, ToolContext
from casework.durable import contracts
from casework.durable.activities.faults import fault_point
from casework.durable.activities.operation import operation
from casework.durable.activities.policy import GovernedPolicy
from casework.durable.activities.services import Attempt, Services, claim, patiently, recorded, run_id
from casework.durable.contracts import ToolCall, ToolReply
from casework.errors import FatalError, OperationError, RetryableError, ToldError, UnserialisableError
from casework.graph import templates
from casework.store import events, ledger, messages, projection
from casework.store.database import Database
from casework.store.ledger import Claimed, StepClaim
from casework.store.lent import lent
from casework.telemetry.calls import tool_call
from casework.values import ENTRY_BYTES, Plain, dumps, shortened, sized

TOLD_BYTES = 2 * 1024 * 1024
"""Largest result that a model is told, as JSON; it lies in the transcript and goes through no history."""
HELD_UP_MS = 1000
"""So long after its beginning an attempt does not act without asking the fence. The engine starts the next attempt when
it has heard nothing for two seconds."""


class ToolActivity:
    """`casework.call_tool`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=contracts.CALL_TOOL)
    @operation
    async def call_tool(self, call: ToolCall) -> ToolReply:
        """Run one tool, or return the result that is already in the ledger.

        Raises:
            RetryableError: passing trouble of the tool or the database.
            FatalError: what no further attempt would mend.
        """
        began, tool = time.monotonic(), self._services.tools.get(call.name)
        claimed, context, arguments = await self._claim(call, tool)
        if claimed.state == "committed":
            return _reply(call, "COMPLETED", claimed.result)
        if claimed.state == "closed":
            return _reply(call, "FAILED", None, claimed.error)
        attempt = Attempt(self._services.db, call, claimed, began)
        fault_point("claimed", call.path)
        try:
            return await self._act(call, tool, attempt, context, arguments)
        except (RetryableError, FatalError) as error:
            await attempt.failed(bound_text(error))
            raise

    async def _claim(self, call: ToolCall, tool: Tool) -> tuple[Claimed, ToolContext, Plain]:
        """First transaction: outbox, claim, and what the tool may look at."""
        owner, tenant = run_id(call.owner), call.owner.tenant
        async with recorded(self._services.db, call.owner, call.path), self._services.db.transaction() as conn:
            await projection.apply(conn, tenant, owner, call.outbox)
            arguments = await _arguments(conn, call)
            claimed = await claim(conn, claim_of(call, tool, arguments), call.attempts)
            case = await ledger.case_of(conn, tenant, owner)
        governed = GovernedPolicy(self._services, call.owner, call.workflow, call.workflow_version, call.turn)
        context = ToolContext(
            tenant=tenant,
            run_id=owner,
            path=call.path,
            key=str(claimed.step_id),
            attempt=claimed.attempt,
            input=case.request or {},
            evidence=case.evidence,
            policies=governed,
        )
        return claimed, context, arguments

    async def _act(
        self, call: ToolCall, tool: Tool, attempt: Attempt, context: ToolContext, arguments: Plain
    ) -> ToolReply:
        """The act itself, and its commit."""
        if tool.repeat is Repeat.TRANSACTIONAL:
            return await self._transactional(call, tool, attempt, context, arguments)
        try:
            gate = Gate(tool, attempt)
            made = await seen(call, attempt, invoke(tool, context, arguments, gate.before_act))
            end = completed(call, made, found=not gate.passed)
        except ToldError as error:
            told = refused(error)
            return attempt.in_time(await patiently(lambda: commit(self._services.db, call, attempt, told)))
        fault_point("acted", call.path)
        reply = attempt.in_time(await patiently(lambda: commit(self._services.db, call, attempt, end)))
        fault_point("committed", call.path)
        return reply

    async def _transactional(
        self, call: ToolCall, tool: Tool, attempt: Attempt, context: ToolContext, arguments: Plain
    ) -> ToolReply:
        """Effect and ledger row in one transaction; a refusal leaves no effect behind."""
        owner, tenant = run_id(call.owner), call.owner.tenant
        try:
            async with self._services.db.transaction() as conn:
                if not await ledger.lock_attempt(conn, tenant, owner, call.path, attempt.number):
                    raise RetryableError(f"attempt {attempt.number} of {call.path} is no longer the current one")
                async with lent(conn) as connection:
                    acting = invoke(tool, replace(context, connection=connection), arguments)
                    made = await seen(call, attempt, acting)
                fault_point("sent", call.path)
                reply = attempt.in_time(await _write(conn, call, attempt, completed(call, made)))
                fault_point("acted", call.path)
        except ToldError as error:
            return attempt.in_time(await commit(self._services.db, call, attempt, refused(error)))
        fault_point("committed", call.path)
        return reply


class Gate:
    """What an attempt passes last of all before it acts; one whose effect was found to have happened does not pass."""

    def __init__(self, tool: Tool, attempt: Attempt) -> None:
        self._tool = tool
        self._attempt = attempt
        self.passed = False

    async def before_act(self) -> None:
        """Ask the fence once more, where another attempt can have begun since the claim.

        A destination that is only asked cannot tell two attempts apart, so a `verify` tool asks the fence each time. Of
        the others only one that was held up: frozen, or on a machine without time. What it would do now is safe, but no
        longer wanted: a value set late would undo what was set after it.
        """
        tool = self._tool
        if tool.effects and (tool.repeat is Repeat.VERIFY or self._attempt.held_ms > HELD_UP_MS):
            await self._attempt.check()
        self.passed = True


async def seen(call: ToolCall, attempt: Attempt, acting: Awaitable[Plain]) -> Plain:
    """What the tool gives, with a span around its act."""
    with tool_call(call.name, call.call_id, attempt.number):
        return await acting


def bound_text(error: OperationError) -> OperationError:
    """Cut the error's own text, which goes into rows, an event and the history."""
    error.args = (shortened(str(error)),)
    return error


@dataclass(frozen=True)
class End:
    """How a step ended. `content` is its message for the model, made before the transaction that writes it is open.

    `found`: it did not act, since its effect had happened before. `size`: of the result, in bytes of JSON.
    """

    state: Literal["COMPLETED", "FAILED"]
    result: Plain
    error: str | None
    content: str
    found: bool = False
    size: int = 0


def completed(call: ToolCall, result: Plain, *, found: bool = False) -> End:
    """With `result`, if it is small enough for where it goes: a node's into the history, a model's into the transcript.

    Raises:
        FatalError: it is not; the same at every attempt.
    """
    try:
        made, size = sized(result, f"result of {call.name}", TOLD_BYTES if call.position else ENTRY_BYTES)
    except UnserialisableError as error:
        raise FatalError(str(error)) from error
    return End("COMPLETED", made, None, dumps(made) if call.position else "", found, size)


def refused(error: ToldError) -> End:
    """With what the model is told instead of a result."""
    text = shortened(str(error))
    return End("FAILED", None, text, dumps({"error": text}))


async def commit(db: Database, call: ToolCall, attempt: Attempt, end: End) -> ToolReply | None:
    """Second transaction: result, tool message and event, or none of them; None where it came too late."""
    async with db.transaction() as conn:
        return await _write(conn, call, attempt, end)


async def _write(conn: AsyncConnection[Any], call: ToolCall, attempt: Attempt, end: End) -> ToolReply | None:
    """The end of a step, in the open transaction; None where it came too late."""
    owner, tenant = run_id(call.owner), call.owner.tenant
    written = await ledger.commit(conn, attempt.result(end.state, end.result, error=end.error))
    if written.outcome == "stale":
        return None
    if call.position:
        await messages.write(
            conn,
            tenant,
            owner,
            path=call.path,
            position=call.position,
            agent=call.kept_as or call.agent,
            role="tool",
            content=end.content,
            call_id=call.call_id,
            tool=call.name,
        )
    kind = "agent.tool_completed" if end.error is None else "agent.tool_failed"
    data = {"name": call.name, "error": end.error, **({"found": True} if end.found else {})}
    await events.add_locked(conn, tenant, owner, call.path, kind, data)
    return _reply(call, end.state, end.result, end.error)


async def _arguments(conn: AsyncConnection[Any], call: ToolCall) -> Plain:
    """From the model's answer, rendered from the node's templates, or as a tree gives them."""
    if call.literal:
        return dict(call.arguments or {})
    if call.arguments is None:
        return await messages.arguments(conn, call.owner.tenant, run_id(call.owner), call.answer_position, call.index)
    return templates.render_all(call.arguments, call.context)


def claim_of(call: ToolCall, tool: Tool, arguments: Plain) -> StepClaim:
    """The claim of a call with its arguments as they are handed over."""
    return StepClaim(
        tenant=call.owner.tenant,
        run_id=run_id(call.owner),
        path=call.path,
        kind="tool",
        name=tool.name,
        tool_version=tool.version,
        arguments=arguments,
        turn=call.turn,
        node=call.node,
    )


def _reply(call: ToolCall, state: Any, result: Plain, error: str | None = None) -> ToolReply:
    """A model's tool leaves its result in the transcript; a TOOL node's goes back to the graph."""
    return ToolReply(state, None if call.position else result, error)
