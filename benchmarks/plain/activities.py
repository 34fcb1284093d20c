"""The activities of the plain pattern: each does one thing, in one database transaction or with one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from temporalio import activity

from benchmarks.plain import contracts
from benchmarks.plain.contracts import Answer, Ask, Asked, Messages, Metric, Place, ToolEnd, ToolRun, ToolStart, Write
from casework import ids
from casework.agents.invoke import invoke
from casework.agents.messages import Message, Request
from casework.agents.model import ModelRequest
from casework.agents.tools import ToolContext
from casework.durable.activities.policy import GovernedPolicy
from casework.durable.activities.services import Services
from casework.durable.contracts import Owner
from casework.store import ledger, messages, projection
from casework.store.ledger import StepClaim, StepCommit
from casework.values import Plain, dumps

LOAN = "loan-underwriting"
NODE = "underwrite"


class PlainActivities:
    """All of them, on the services of one worker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._db = services.db
        bundle = services.app.workflow(LOAN)
        node = bundle.workflow.spec.node(NODE)
        assert node is not None
        self._agent = bundle.agent_of(node)
        self._schema = bundle.output_schema(node)
        self._providers = bundle.providers

    def all(self) -> Sequence[Callable[..., Any]]:
        """What the worker registers."""
        tools = (self.start_tool, self.call_tool, self.write_result)
        return (*tools, self.call_model, self.write_messages, self.write_metric, self.write)

    @activity.defn(name=contracts.START_TOOL)
    async def start_tool(self, given: ToolStart) -> int:
        """The attempt's number."""
        tool = self._services.tools.get(given.asked.name)
        claim = _claim(given.place, "tool", tool.name, tool.version, given.asked.arguments)
        async with self._db.transaction() as conn:
            return (await ledger.claim(conn, claim)).attempt

    @activity.defn(name=contracts.CALL_TOOL)
    async def call_tool(self, given: ToolRun) -> Plain:
        """The tool's result."""
        place, run = given.place, UUID(given.place.run_id)
        async with self._db.transaction() as conn:
            case = await ledger.case_of(conn, place.tenant, run)
        policy = GovernedPolicy(self._services, Owner(place.tenant, place.run_id), LOAN, given.workflow_version, 1)
        context = ToolContext(
            tenant=place.tenant,
            run_id=run,
            path=place.path,
            key=str(ids.step_id(run, place.path)),
            attempt=given.attempt,
            input=case.request or {},
            evidence=case.evidence,
            policies=policy,
        )
        return await invoke(self._services.tools.get(given.asked.name), context, dict(given.asked.arguments))

    @activity.defn(name=contracts.WRITE_RESULT)
    async def write_result(self, given: ToolEnd) -> None:
        """The ledger's row and the tool's message."""
        place = given.place
        async with self._db.transaction() as conn:
            await ledger.commit(conn, _commit(place, given.attempt, given.result))
            await messages.write(
                conn,
                place.tenant,
                UUID(place.run_id),
                path=place.path,
                position=given.position,
                agent=self._agent.name,
                role="tool",
                content=dumps(given.result),
                call_id=given.asked.call_id,
                tool=given.asked.name,
            )

    @activity.defn(name=contracts.CALL_MODEL)
    async def call_model(self, given: Ask) -> Answer:
        """The model's answer to the transcript."""
        place = given.place
        async with self._db.transaction() as conn:
            read = await messages.transcript(conn, place.tenant, UUID(place.run_id), given.up_to, self._agent.name)
        said = [Message(1, self._agent.name, "user", given.say)] if given.say else []
        request = ModelRequest(
            system=self._agent.spec.system_prompt or "",
            messages=(*read, *said),
            tools=self._services.tools.only(self._agent.spec.tools).schemas(),
            output_schema=self._schema,
        )
        made = await self._services.models.for_agent(self._agent, self._providers, None).request(request)
        asked = tuple(Asked(each.call_id, each.name, each.arguments) for each in made.requests)
        return Answer(made.text, asked, made.output, made.tokens_in, made.tokens_out)

    @activity.defn(name=contracts.WRITE_MESSAGES)
    async def write_messages(self, given: Messages) -> None:
        """The answer, and what was said before it."""
        async with self._db.transaction() as conn:
            if given.say is not None:
                await self._message(conn, given, given.position - 1, "user", given.say)
            await self._message(conn, given, given.position, "assistant", given.answer.text)

    async def _message(self, conn: Any, given: Messages, position: int, role: str, content: str) -> None:
        asked = given.answer.requests if role == "assistant" else ()
        await messages.write(
            conn,
            given.place.tenant,
            UUID(given.place.run_id),
            path=given.place.path,
            position=position,
            agent=self._agent.name,
            role=role,
            content=content,
            requests=[Request(each.call_id, each.name, dict(each.arguments)) for each in asked],
        )

    @activity.defn(name=contracts.WRITE_METRIC)
    async def write_metric(self, given: Metric) -> None:
        """The call's row with its figures, and the roll-ups."""
        place = given.place
        async with self._db.transaction() as conn:
            claimed = await ledger.claim(conn, _claim(place, "model", "model", "1", {}))
            done = _commit(place, claimed.attempt, asdict(given))
            await ledger.commit(conn, replace(done, tokens_in=given.tokens_in, tokens_out=given.tokens_out))

    @activity.defn(name=contracts.WRITE)
    async def write(self, given: Write) -> None:
        """Entries of the projection."""
        async with self._db.transaction() as conn:
            await projection.apply(conn, given.place.tenant, UUID(given.place.run_id), given.entries)


def _claim(place: Place, kind: Any, name: str, version: str, arguments: Any) -> StepClaim:
    return StepClaim(place.tenant, UUID(place.run_id), place.path, kind, name, version, dict(arguments), 1, NODE)


def _commit(place: Place, attempt: int, result: Plain) -> StepCommit:
    return StepCommit(place.tenant, UUID(place.run_id), place.path, attempt, "COMPLETED", result, None, 0)
