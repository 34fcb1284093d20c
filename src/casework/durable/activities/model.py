"""The model activity: render what is said, read the transcript, ask once, keep the answer."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import Any

from temporalio import activity

from casework.agents import scrub
from casework.agents.messages import Message
from casework.agents.model import ModelAnswer, ModelRequest
from casework.durable import contracts
from casework.durable.activities.operation import operation
from casework.durable.activities.services import Attempt, Services, claim, patiently, recorded, run_id
from casework.durable.contracts import ModelCall, ModelReply, ToolRequest
from casework.errors import FatalError, RetryableError
from casework.graph import engine
from casework.graph.manifests import AiAgent, Vertex
from casework.store import events, ledger, messages, projection
from casework.store.ledger import Claimed, StepClaim
from casework.telemetry.calls import model_call
from casework.trees.bundle import Pinned, PinnedTree
from casework.values import dumps


class ModelActivity:
    """`casework.call_model`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=contracts.CALL_MODEL)
    @operation
    async def call_model(self, call: ModelCall) -> ModelReply:
        """Ask the agent's model once, or return the answer that is already in the ledger.

        Raises:
            RetryableError: passing trouble of the provider or the database.
            FatalError: what no further attempt would mend.
        """
        bundle = await self._services.bundle(call.owner.tenant, call.workflow, call.workflow_version)
        agent = bundle.agents[call.agent]
        claimed, transcript = await self._claim(call, bundle)
        if claimed.state == "committed":
            return _reply(claimed.result)
        if claimed.state == "closed":
            raise FatalError(f"model step {call.path} was given up: {claimed.error}")
        attempt = Attempt(self._services.db, call, claimed)
        try:
            answer = await self._ask(call, bundle, agent, transcript, attempt.number)
        except (RetryableError, FatalError) as error:
            await attempt.failed(error)
            raise
        return attempt.in_time(await patiently(lambda: self._commit(call, attempt, answer)))

    async def _claim(self, call: ModelCall, bundle: Pinned) -> tuple[Claimed, list[Message]]:
        """First transaction: outbox, user messages, claim, transcript."""
        said = [(part.position, _words(part.words, call, bundle)) for part in call.say]
        owner, tenant = run_id(call.owner), call.owner.tenant
        async with recorded(self._services.db, call.owner, call.path), self._services.db.transaction() as conn:
            await projection.apply(conn, tenant, owner, call.outbox)
            for position, words in said:
                await messages.write(
                    conn,
                    tenant,
                    owner,
                    path=call.path,
                    position=position,
                    agent=_kept(call),
                    role="user",
                    content=words,
                )
            claimed = await claim(conn, _claim_of(call, said), call.attempts)
            if claimed.state != "claimed":
                return claimed, []
            found = await messages.transcript(conn, tenant, owner, call.up_to, _kept(call), call.own)
        # A model is told its agent's own name, wherever the messages are kept.
        return claimed, [replace(each, agent=call.agent) for each in found] if call.kept_as else found

    async def _ask(
        self, call: ModelCall, bundle: Pinned, agent: AiAgent, transcript: list[Message], attempt: int
    ) -> ModelAnswer:
        model = self._services.models.for_agent(agent, bundle.providers, call.model)
        request = ModelRequest(
            system=agent.spec.system_prompt or "",
            messages=tuple(transcript),
            tools=self._services.tools.only(agent.spec.tools).schemas(),
            output_schema=_output_schema(call, bundle, agent),
        )
        try:
            with model_call(model.name, call.agent, attempt) as span:
                answer = await model.request(request)
                span.answered(answer)
            return answer
        except (RetryableError, FatalError, asyncio.CancelledError):
            raise
        except Exception as error:  # a provider may raise anything; the engine tries again and gives up
            words = scrub.told(scrub.words_of(error), os.environ)
            raise RetryableError(f"the model call failed: {words}") from error

    async def _commit(self, call: ModelCall, attempt: Attempt, answer: ModelAnswer) -> ModelReply | None:
        """Second transaction: result, assistant message and event, or none of them; None where it came too late."""
        reply = ModelReply(
            requests=tuple(ToolRequest(i, made.call_id, made.name) for i, made in enumerate(answer.requests)),
            output=answer.output if answer.output is not None else answer.text,
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
        )
        figures: dict[str, Any] = {
            "tokens_in": answer.tokens_in,
            "tokens_out": answer.tokens_out,
            "cost": answer.cost,
        }
        owner, tenant = run_id(call.owner), call.owner.tenant
        async with self._services.db.transaction() as conn:
            written = await ledger.commit(conn, attempt.result("COMPLETED", reply, **figures))
            if written.outcome == "stale":
                return None
            await messages.write(
                conn,
                tenant,
                owner,
                path=call.path,
                position=call.position,
                agent=_kept(call),
                role="assistant",
                content=answer.text or ("" if answer.output is None else dumps(answer.output)),
                requests=answer.requests,
                parts=answer.parts,
            )
            asked = [made.name for made in answer.requests]
            await events.add_locked(conn, tenant, owner, call.path, "agent.model_answered", {"asks_for": asked})
        return reply


def _kept(call: ModelCall) -> str:
    return call.kept_as or call.agent


def _vertex(call: ModelCall, bundle: Pinned) -> Vertex | None:
    """The node or branch that the call is of; None in a free tree."""
    node = None if isinstance(bundle, PinnedTree) else bundle.workflow.spec.node(call.node)
    if node is None or not call.branch:
        return node
    return next((each for each in node.branches or () if each.id == call.branch), None)


def _output_schema(call: ModelCall, bundle: Pinned, agent: AiAgent) -> dict[str, Any] | None:
    if isinstance(bundle, PinnedTree):
        return agent.spec.output_schema
    vertex = _vertex(call, bundle)
    return None if vertex is None else bundle.output_schema(vertex)


def _words(words: str | None, call: ModelCall, bundle: Pinned) -> str:
    if words is not None:
        return words
    vertex = _vertex(call, bundle)
    return dumps(call.context.get("input")) if vertex is None else engine.opening(vertex, call.context)


def _claim_of(call: ModelCall, said: list[tuple[int, str]]) -> StepClaim:
    return StepClaim(
        tenant=call.owner.tenant,
        run_id=run_id(call.owner),
        path=call.path,
        kind="model",
        name="model",
        tool_version="1",
        arguments={"agent": _kept(call), "up_to": call.up_to, "says": [[p, words] for p, words in said]},
        turn=call.turn,
        node=call.node,
    )


def _reply(stored: Any) -> ModelReply:
    """The answer as the ledger keeps it."""
    requests = tuple(ToolRequest(**made) for made in stored["requests"])
    return ModelReply(**{**stored, "requests": requests})
