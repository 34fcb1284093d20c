"""Agent and manual tasks: two calls of the Task, with a run between them that nobody waits for in here.

It moves like this. The first activity asks the Task for the run's input, or for the question, and writes the run's row
PENDING beside a link to the Transaction; the tray then starts the run as its child. A manual task is a run as well, of
the built-in workflow with one question, so that a person answers it like any other. The second activity asks the Task
what follows from the end, as a plain Task is let act: claim, act, commit. Whatever is done again finds the row of the
run, and the step in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from temporalio import activity

from casework.durable.activities.faults import fault_point
from casework.durable.activities.operation import operation
from casework.durable.activities.plain_tasks import PlainStation
from casework.durable.activities.remedying import ended_by_remedy, hand_over
from casework.durable.activities.services import Services, patiently
from casework.durable.activities.stations import Item, Station, leaves, unfit
from casework.durable.activities.tray import utc
from casework.durable.activities.unstepped import GoneStation
from casework.durable.contracts import RunEnd, RunStart
from casework.durable.manual_tasks import manual_workflow
from casework.durable.process_contracts import Outcome, TrayWork
from casework.durable.starting import start_of
from casework.durable.task_run_contracts import BEGIN_TASK_RUN, END_TASK_RUN, EndTaskRun, TaskRunBegun
from casework.errors import (
    FatalError,
    InputError,
    NotFoundError,
    RunCancelledError,
    RunFailedError,
    StoreUnavailableError,
)
from casework.graph.json_schemas import misfits
from casework.graph.problems import unknown
from casework.graph.state import DEFAULT_TURN_LIMIT
from casework.process.answers import chosen, offered
from casework.process.failures import ErrorEntity
from casework.process.identities import agent_run_id
from casework.process.lines import Line
from casework.process.tasks import AgentTask, Decision, Kind, ManualTask, Remedy
from casework.process.tasks import RunEnd as TaskRunEnd
from casework.process.transactions import Transaction, touched
from casework.process.working import Worked, applied
from casework.store import reviews, runs, workflows
from casework.store.database import Connection
from casework.store.processes import linked_runs, task_errors, task_steps, transactions
from casework.store.processes.task_steps import Begun, Ended, TaskEnd, TaskStep
from casework.store.rows import RunRow
from casework.trees.bundle import Pinned, pinned_from_plain
from casework.values import bounded, content_hash, instant


@dataclass(frozen=True)
class _Wanted:
    """The run that a Task asks for: of a workflow by name, or of the question with `words` to choose from."""

    given: Mapping[str, Any]
    workflow: str = ""
    words: tuple[str, ...] = ()


class RunStation(PlainStation):
    """An agent or manual task. `end` is how its run ended, once it has."""

    def __init__(
        self,
        services: Services,
        work: TrayWork,
        line: Line,
        now: Callable[[], datetime],
        end: RunEnd | None = None,
    ) -> None:
        super().__init__(services, work, line, now)
        self._run_end = end
        self._decision: Decision | None = None
        self._clone: Transaction | None = None

    # ---------------------------------------------------------------- before the run

    async def begin(self, item: Item) -> TaskRunBegun:
        """The run that is to be carried out, its row written; or what came of the work without one."""
        if (other := self.not_ours(item)) is not None:
            return TaskRunBegun(outcome=other)
        step, at = self.step(item), self.now()
        run_id = agent_run_id(step.step_id, self.asked.attempt)
        async with self.services.db.transaction() as conn:
            begun = await task_steps.begin(conn, step)
            row = await runs.get(conn, step.tenant, run_id)
            errors = await task_errors.of(conn, step.tenant, item.uuid)
        if (known := self.met(item, begun)) is not None:
            return TaskRunBegun(outcome=known)
        if row is not None:
            return TaskRunBegun(await self._start(row, step))
        fault_point("claimed", f"{step.path}/{item.uuid}/begin")
        try:
            wanted = await self._wanted(begun, errors)
            made = await self._entered(step, begun, wanted, run_id)
        except StoreUnavailableError:
            raise
        except BaseException as error:
            if leaves(error):
                raise
            outcome, end = await self.failure_of(step, begun, error, at)
            return TaskRunBegun(outcome=await self.written(item, outcome, end))
        fault_point("committed", f"{step.path}/{item.uuid}/begin")
        return TaskRunBegun(outcome=made) if isinstance(made, Outcome) else TaskRunBegun(await self._start(made, step))

    async def _wanted(self, begun: Begun, errors: Sequence[ErrorEntity]) -> _Wanted:
        """What the Task asks for; its errors are its own."""
        assert self.spec is not None
        assert self.line is not None
        assert begun.transaction is not None
        transaction = self.placed(begun.transaction)
        async with self.deadline(), self.services.injector.made(self.spec.cls) as task:
            if isinstance(task, AgentTask):
                given = bounded(dict(await task.input(transaction)), "the input of the run")
                return _Wanted(given, workflow=task.workflow)
            assert isinstance(task, ManualTask)
            question = await task.question(transaction, errors)
        words = offered(question, self.line, self.policy, self.services.lines.values())
        return _Wanted(bounded(form(question.text, transaction, errors), "the question"), words=words)

    async def _entered(self, step: TaskStep, begun: Begun, wanted: _Wanted, run_id: UUID) -> RunRow | Outcome:
        """The run's row, the link to it, and the Transaction at this task: all in one database transaction.

        Raises:
            NotFoundError: there is no such workflow.
            InputError: the input does not fit it.
        """
        before, at = begun.transaction, self.now()
        assert before is not None
        async with self.services.db.transaction() as conn:
            now = await transactions.lock(conn, step.tenant, step.transaction)
            if now is None or (now.status, now.claim_id) != (before.status, before.claim_id):
                return unfit(step.transaction, now, step.claim_id)
            row = await runs.get(conn, step.tenant, run_id)
            if row is None:  # else another attempt was here meanwhile
                version, pinned = await _pinned(conn, step.tenant, wanted, run_id)
                new = _row(step, run_id, wanted, version, pinned, self.services.settings.temporal.task_queue)
                row, _ = await runs.create_pending(conn, new)
                await linked_runs.link(conn, step, run_id, at)
                await transactions.write(conn, now, self.placed(now), step.process, step.task, at)
        return row

    async def _start(self, row: RunRow, step: TaskStep) -> RunStart:
        bundle = await self.services.bundle(row.tenant, row.workflow_name, row.workflow_version)
        histories = self.services.settings.histories
        return replace(
            start_of(row, bundle.to_plain()),
            roll_over_events=histories.roll_over_events,
            roll_over_bytes=histories.roll_over_bytes,
            sends_mentioned=True,
            transaction=str(step.transaction),
            form=step.kind == Kind.MANUAL,
        )

    # ---------------------------------------------------------------- after the run

    async def work(self, item: Item) -> Outcome:
        """What follows from the end of the run."""
        if self.spec is not None and self.spec.kind is Kind.MANUAL:
            self._decision = await self._decided(item)
        return await super().work(item)

    async def _decided(self, item: Item) -> Decision | None:
        """What the person has decided; it is a row before the run ends."""
        assert self.line is not None
        run_id = agent_run_id(self.step(item).step_id, self.asked.attempt)
        async with self.services.db.transaction() as conn:
            given = await reviews.decisions(conn, self.asked.tenant, run_id)
        made = next((each for each in given if each.accepted), None)
        return None if made is None else chosen(made.command, self.line, reason=made.reason, reviewer=made.reviewer)

    async def _act(self, step: TaskStep, begun: Begun, at: datetime, since: float) -> Worked:  # noqa: ARG002
        assert self.spec is not None
        assert begun.transaction is not None
        end = self._completed(step)
        transaction, statuses = self.placed(begun.transaction), self.services.app.statuses
        async with self.deadline(), self.services.injector.made(self.spec.cls) as task:
            if isinstance(task, AgentTask):
                return Worked(applied(statuses, transaction, await task.outcome(transaction, end), at))
            assert isinstance(task, ManualTask)
            if self._decision is None:
                raise FatalError(f"The decision on run {end.run_id} is not there any more. Clone the Transaction.")
            seen = touched(transaction)
            found = await task.decided(seen, self._decision)
        return Worked(seen, remedy=found) if isinstance(found, Remedy) else Worked(applied(statuses, seen, found, at))

    def _completed(self, step: TaskStep) -> TaskRunEnd:
        """How the run ended.

        Raises:
            RunFailedError, RunCancelledError: it did not complete.
        """
        end, run_id = self._run_end, agent_run_id(step.step_id, self.asked.attempt)
        assert end is not None
        if end.status == "CANCELLED":
            raise RunCancelledError(
                f"Run {run_id} was {end.failure or 'cancelled'}. Clone the Transaction, or abort it."
            )
        if end.status == "FAILED":
            raise RunFailedError(f"Run {run_id} ended FAILED: {end.failure}. Look at its events.")
        return TaskRunEnd(run_id, end.outcome, end.output)

    def done(self, step: TaskStep, begun: Begun, made: Worked, at: datetime) -> tuple[Outcome, TaskEnd]:
        """How the step ends; by a remedy the Transaction leaves the line."""
        if made.remedy is None:
            return super().done(step, begun, made, at)
        outcome, end, ended = ended_by_remedy(self, step, begun, made, at)
        self._clone = ended.clone
        return outcome, end

    async def _ended(self, ends: list[TaskEnd]) -> Sequence[Ended | Exception]:
        """With a clone, which takes over in the same database transaction; a tray with such a task has one."""
        clone = self._clone
        if clone is None or ends[0].state == "FAILED":
            return await super()._ended(ends)

        async def write() -> Sequence[Ended]:
            async with self.services.db.transaction() as conn:
                met = await task_steps.end_all(conn, ends)
                if met == ["written"]:
                    await hand_over(conn, self, ends[0], clone)
            return met

        return await patiently(write)


class TaskRunActivities:
    """`casework.begin_task_run` and `casework.end_task_run`."""

    def __init__(self, services: Services, now: Callable[[], datetime] = utc) -> None:
        self._services = services
        self._now = now

    def all(self) -> tuple[Callable[..., Any], ...]:
        """What a worker registers."""
        return (self.begin_task_run, self.end_task_run)

    @activity.defn(name=BEGIN_TASK_RUN)
    @operation
    async def begin_task_run(self, work: TrayWork) -> TaskRunBegun:
        """Write the row of the run that the task waits for. A failure of the Task is an outcome.

        Raises:
            StoreUnavailableError: the database cannot be reached; what is done is found again.
        """
        (item,), station = _items(work), self._station(work, None)
        if (limit := station.limit_ms) is not None:
            return TaskRunBegun(apart_ms=limit)
        return (
            await station.begin(item)
            if isinstance(station, RunStation)
            else TaskRunBegun(None, await station.work(item))
        )

    @activity.defn(name=END_TASK_RUN)
    @operation
    async def end_task_run(self, ended: EndTaskRun) -> Outcome:
        """Take what the run ended with. A failure, the run's or the Task's, is an outcome.

        Raises:
            StoreUnavailableError: the database cannot be reached; what is done is found again.
        """
        (item,) = _items(ended.work)
        return await self._station(ended.work, ended.end).work(item)

    def _station(self, work: TrayWork, end: RunEnd | None) -> Station:
        line = self._services.lines.get(work.process)
        spec = None if line is None else line.specs.get(work.station)
        if line is None or spec is None or not spec.alone:
            return GoneStation(self._services, work, line, self._now)
        return RunStation(self._services, work, line, self._now, end)


def _items(work: TrayWork) -> list[Item]:
    return [Item(uuid, each.status) for each in work.standing for uuid in each.transactions]


def form(text: str, transaction: Transaction, errors: Sequence[ErrorEntity]) -> dict[str, Any]:
    """What the person sees: the question, the Transaction, and of its errors the last."""
    made: dict[str, Any] = {
        "question": text,
        "transaction": str(transaction.uuid),
        "status": transaction.status_before_error or transaction.status,
        "process": transaction.process,
        "task": transaction.task,
    }
    for error in errors[-1:]:
        made["error"] = {
            "type": str(error.type),
            "code": error.code,
            "severity": str(error.severity),
            "root": str(error.root),
            "process": error.process,
            "task": error.task,
            "attempt": error.attempt,
            "time": instant(error.failed),
            "short": error.short,
            "full": error.full,
        }
    return made


async def _pinned(conn: Connection, tenant: str, wanted: _Wanted, run_id: UUID) -> tuple[int, Pinned]:
    """The version that the run is pinned to."""
    if wanted.words:
        made = manual_workflow(wanted.words)
        version = await workflows.version_of(conn, tenant, made.name, made.hash())
        if version is None:
            plain = made.to_plain()
            version = await workflows.publish_for_session(conn, tenant, made.name, plain, made.hash(), run_id)
        return version, made
    found = await workflows.latest(conn, tenant, wanted.workflow)
    if found is None:
        what = unknown("workflow", wanted.workflow, await workflows.names(conn, tenant))
        raise NotFoundError(f"{what[0].upper()}{what[1:]}")
    pinned = pinned_from_plain(found[1])
    if wrong := [] if pinned.input_schema is None else misfits(pinned.input_schema, dict(wanted.given), limit=1):
        field = f"input.{wrong[0].field}" if wrong[0].field else "input"
        raise InputError(f"{field} of workflow {wanted.workflow!r}: {wrong[0].message}", field=field)
    return found[0], pinned


def _row(step: TaskStep, run_id: UUID, wanted: _Wanted, version: int, pinned: Pinned, task_queue: str) -> runs.NewRun:
    return runs.NewRun(
        tenant=step.tenant,
        run_id=run_id,
        workflow_name=pinned.name,
        workflow_version=version,
        user=f"process:{step.process}",
        request=dict(wanted.given),
        request_hash=content_hash(wanted.given),
        turn_limit=DEFAULT_TURN_LIMIT,
        policy_adoption=pinned.policy_adoption,
        task_queue=task_queue,
    )
