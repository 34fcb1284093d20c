"""The loan case as a hand-written workflow: the model is asked, its tools are called, a person decides."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from benchmarks.plain import contracts
    from benchmarks.plain.contracts import (
        Answer,
        Ask,
        Asked,
        Messages,
        Metric,
        Place,
        Start,
        ToolEnd,
        ToolRun,
        ToolStart,
        Write,
    )
    from casework.durable.contracts import DECIDE_SIGNAL, Decision
    from casework.ids import review_id
    from casework.projection import DecisionEntry, EventEntry, ReviewEntry, RunEntry, to_plain
    from casework.values import instant

RETRY = RetryPolicy(initial_interval=timedelta(seconds=0.1), backoff_coefficient=3.0, maximum_attempts=4)
OUTCOMES = {"approve": "approved", "reject": "declined"}


@workflow.defn(name=contracts.WORKFLOW)
class PlainLoan:
    """First turn to decision."""

    def __init__(self) -> None:
        self._decision: Decision | None = None
        self._position = 1  # the application, which the first model call says

    @workflow.run
    async def run(self, start: Start) -> str:
        """The outcome."""
        self._start = start
        recommendation = await self._underwrite()
        decision = await self._review(recommendation)
        outcome = OUTCOMES[decision.command]
        await self._state(2, "COMPLETED", recommendation, outcome)
        return outcome

    @workflow.signal(name=DECIDE_SIGNAL)
    def decide(self, decision: Decision) -> None:
        """A person's answer."""
        self._decision = decision

    async def _underwrite(self) -> Any:
        number, say = 0, _application(self._start)
        while True:
            number += 1
            answer = await self._ask(f"underwrite.1/exchange.{number}", say if number == 1 else None)
            if not answer.requests:
                return answer.output
            await asyncio.gather(*(self._tool(f"underwrite.1/exchange.{number}", asked) for asked in answer.requests))

    async def _ask(self, path: str, say: str | None) -> Answer:
        """A model call: call, message write, metric."""
        place, up_to = self._place(f"{path}/model.1"), self._position
        answer: Answer = await _do(contracts.CALL_MODEL, Ask(place, 0 if say else up_to, say), Answer)
        self._position += 1
        await _do(contracts.WRITE_MESSAGES, Messages(place, self._position, answer, say))
        await _do(contracts.WRITE_METRIC, Metric(place, answer.tokens_in, answer.tokens_out))
        return answer

    async def _tool(self, path: str, asked: Asked) -> None:
        """A tool call: start write, call, result write, event."""
        self._position += 1
        place, position = self._place(f"{path}/{asked.name}.1"), self._position
        attempt: int = await _do(contracts.START_TOOL, ToolStart(place, asked), int)
        run = ToolRun(place, asked, attempt, self._start.workflow_version)
        result = await _do(contracts.CALL_TOOL, run)
        await _do(contracts.WRITE_RESULT, ToolEnd(place, asked, attempt, position, result))
        await self._event(place.path, "agent.tool_completed", {"name": asked.name})

    async def _review(self, recommendation: Any) -> Decision:
        """A review: pending write, event, state write; then decision write (the state write follows)."""
        path = "decision.1"
        asked = str(review_id(UUID(self._start.run_id), path))
        await self._write(
            path, ReviewEntry(path, asked, "decision", 1, ("approve", "reject"), _now(), recommendation=recommendation)
        )
        await self._event(path, "agent.review_pending", {"review_id": asked})
        await self._state(1, "AWAITING_REVIEW", recommendation)
        await workflow.wait_condition(lambda: self._decision is not None)
        made = self._decision
        assert made is not None
        await self._write(
            path,
            DecisionEntry(
                path=path,
                review_id=asked,
                decision_id=made.decision_id,
                command=made.command,
                reason=made.reason,
                reviewer=made.reviewer,
                at=_now(),
                accepted=True,
                outcome=OUTCOMES[made.command],
            ),
        )
        return made

    async def _state(self, version: int, status: Any, recommendation: Any, outcome: str | None = None) -> None:
        await self._write(
            "",
            RunEntry(version, status, 1, 0, _now(), "decision", recommendation=recommendation, outcome=outcome),
        )

    async def _event(self, path: str, kind: str, data: Any) -> None:
        await self._write(path, EventEntry(path, kind, _now(), data))

    async def _write(self, path: str, entry: Any) -> None:
        await _do(contracts.WRITE, Write(self._place(path), (to_plain(entry),)))

    def _place(self, path: str) -> Place:
        return Place(self._start.tenant, self._start.run_id, path)


async def _do(activity: str, given: Any, reply: type | None = None) -> Any:
    """One activity. No heartbeat: the pattern does without, and each would cost it an action."""
    return await workflow.execute_activity(
        activity, given, result_type=reply, start_to_close_timeout=timedelta(seconds=60), retry_policy=RETRY
    )


def _now() -> str:
    return instant(workflow.now())


def _application(start: Start) -> str:
    given = start.input
    return (
        "Underwrite this application for a personal loan.\n"
        f"Applicant: {given['applicant_id']}\nAmount: {given['amount']} USD\nPurpose: {given['purpose']}\n"
    )
