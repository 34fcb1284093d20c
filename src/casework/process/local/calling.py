"""One Task called for one Transaction, of any kind: what a tray does at a station, and the unit of a test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from dishka import Provider

from casework.errors import FatalError
from casework.process.declaring import spec_of
from casework.process.failures import ErrorEntity
from casework.process.identities import agent_run_id, step_key
from casework.process.injection import injector
from casework.process.statuses import DEFAULT_STATUSES, StatusSet
from casework.process.tasks import AgentTask, Decision, ManualTask, Question, Remedy, RunEnd, Task, TaskContext
from casework.process.transactions import Transaction, touched
from casework.process.working import Family, Reads, Worked, applied, worked

Agent = Callable[[str, UUID, Mapping[str, Any]], Awaitable[RunEnd]]
"""Runs a Workflow by name, with the run's id and input; raises where the run does not complete."""
Reviewer = Callable[[Transaction, Question], Decision]
"""Answers for a person."""


async def no_agent(workflow: str, run_id: UUID, given: Mapping[str, Any]) -> RunEnd:  # noqa: ARG001  # an Agent
    """The Agent where none is given.

    Raises:
        FatalError: always.
    """
    raise FatalError(f"Nobody runs workflow {workflow!r} here. Pass `agent`.")


def no_reviewer(transaction: Transaction, question: Question) -> Decision:
    """The Reviewer where none is given.

    Raises:
        FatalError: always.
    """
    raise FatalError(f"Nobody answers for Transaction {transaction.uuid} ({question.text!r:.200}). Pass `reviewer`.")


async def called(
    task: Task,
    transaction: Transaction,
    ctx: TaskContext,
    statuses: StatusSet,
    reads: Reads,
    agent: Agent,
    reviewer: Reviewer,
) -> Worked:
    """Let the Task do its work; its errors are the caller's.

    Raises:
        FatalError: the reviewer decided what was not on offer.
    """
    if isinstance(task, AgentTask):
        run_id = agent_run_id(UUID(ctx.key), ctx.attempt)
        end = await agent(task.workflow, run_id, await task.input(transaction))
        return Worked(applied(statuses, transaction, await task.outcome(transaction, end), ctx.now))
    if isinstance(task, ManualTask):
        question = await task.question(transaction, await reads.errors(transaction))
        decision = reviewer(transaction, question)
        if decision.decision not in question.decisions:
            offered = ", ".join(question.decisions)
            raise FatalError(f"The decision {decision.decision!r} is not on offer; there are {offered}.")
        seen = touched(transaction)
        found = await task.decided(seen, decision)
        return (
            Worked(seen, remedy=found) if isinstance(found, Remedy) else Worked(applied(statuses, seen, found, ctx.now))
        )
    return await worked(task, transaction, ctx, statuses, reads)


async def run_task(
    cls: type[Task],
    transaction: Transaction,
    *,
    modules: Iterable[Provider] = (),
    statuses: StatusSet = DEFAULT_STATUSES,
    attempt: int = 1,
    children: Sequence[Transaction] = (),
    errors: Sequence[ErrorEntity] = (),
    agent: Agent = no_agent,
    reviewer: Reviewer = no_reviewer,
    connection: Any = None,
) -> Worked:
    """Run one Task alone, from its class, on one Transaction. `children` are those that a join is given.

    Raises:
        ProcessDeclarationError: the class is no Task, or a provider is missing for its constructor.
        Exception: whatever the Task raises, as it is.
    """

    async def family(_of: Transaction) -> Family:
        return Family(len(children), tuple(children))

    async def found(_of: Transaction) -> Sequence[ErrorEntity]:
        return errors

    spec = spec_of(cls)
    path = f"{spec.name}.1"
    key = str(step_key(transaction.claim_id or transaction.uuid, path, transaction.uuid))
    ctx = TaskContext("", path, key, attempt, transaction.start_time, connection)
    made = injector({f"Task {spec.name!r}": cls}, modules)
    try:
        async with made.made(cls, connection) as task:
            return await called(task, transaction, ctx, statuses, Reads(family, found), agent, reviewer)
    finally:
        await made.close()
