"""What runners do to Transactions, each as its runner writes it: claims, steps, errors, answers, families, runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

from casework.app import App
from casework.process import (
    DEFAULT_STATUSES,
    ERRORS,
    PROCESSING,
    SUBMISSION,
    Answer,
    ErrorPolicy,
    Remedy,
    StatusSet,
    Transaction,
)
from casework.process.remedies import Remedied, remedied
from casework.process.transactions import child, failed, moved, touched
from casework.store.database import Database
from casework.store.processes import claims, linked_runs, remedies, task_errors, task_steps, transactions
from casework.store.processes.task_steps import Begun, TaskEnd, TaskStep
from tests.integration.store.processes.making import TENANT, at, made
from tests.integration.store.processes.test_task_steps import an_error
from tests.unit.process.lines import plain

WAITING, WORKING, DONE = "INTAKE_COMPLETED", "PROCESSING_IN_PROGRESS", "PROCESSING_COMPLETED"
ALL = ErrorPolicy(resume=True, complete_by_hand=True)
APP = App(processes=[replace(PROCESSING, tasks=(plain("check"), plain("pay"))), SUBMISSION, ERRORS], errors=ALL)
CLAIMS = {
    "processing": (WAITING, WORKING, "ProcessingMonitor"),
    "submission": (DONE, "SUBMISSION_IN_PROGRESS", "SubmissionMonitor"),
    "errors": ("HAS_ERROR", "ERROR_IN_PROGRESS", "ErrorMonitor"),
    "again": (WORKING, WORKING, "AgainMonitor"),
}
"""Of each process: what its Monitor takes, into which status, and its class."""


@dataclass
class Play:
    """Plays histories in one tenant. The clock goes on by a minute with each thing that is done."""

    db: Database
    tenant: str = TENANT
    statuses: StatusSet = DEFAULT_STATUSES
    _minute: int = field(default=0)

    def now(self) -> Any:
        self._minute += 1
        return at(self._minute)

    async def get(self, uuid: UUID) -> Transaction:
        async with self.db.transaction() as conn:
            found = await transactions.get(conn, self.tenant, uuid)
        assert found is not None
        return found

    async def born(self, *, business_key: str | None = None, **fields: Any) -> Transaction:
        """One that waits, as an intake leaves it."""
        new = made(tenant=self.tenant, **{"status": WAITING, **fields})
        async with self.db.transaction() as conn:
            assert await transactions.insert(conn, new, "intake", "Mailbox", self.now(), business_key=business_key)
        return new

    async def claim(self, most: int = 100, process: str = "processing", **more: Any) -> list[Transaction]:
        """What waits for a process, in a tray."""
        status, into, by = CLAIMS[process]
        known = {"status": status, "into": into, "process": process, "by": by, "claim_id": uuid4()}
        async with self.db.transaction() as conn:
            return await claims.claim(conn, self.tenant, **{**known, "most": most, "at": self.now(), **more})

    async def taken(self, process: str = "processing", **fields: Any) -> Transaction:
        """A new one, alone in a tray."""
        await self.born(**fields)
        (one,) = await self.claim(1, process)
        return one

    async def begin(self, one: Transaction, task: str = "check", **more: Any) -> tuple[TaskStep, Begun]:
        """A step of a task that is under way."""
        known: dict[str, Any] = {"path": f"{task}.1", "kind": "plain", **more}
        step = TaskStep(
            tenant=self.tenant,
            claim_id=one.claim_id or uuid4(),
            transaction=one.uuid,
            status=one.status,
            process=one.process or "",
            task=task,
            **known,
        )
        async with self.db.transaction() as conn:
            begun = await task_steps.begin(conn, step)
        assert begun.met == "begun"
        return step, begun

    async def end(self, step: TaskStep, begun: Begun, after: Transaction, **more: Any) -> Transaction:
        """The end of one."""
        assert begun.transaction is not None
        assert begun.attempt is not None
        known: dict[str, Any] = {"by": step.task, "at": self.now(), **more}
        end = TaskEnd(step=step, attempt=begun.attempt, before=begun.transaction, after=after, **known)
        async with self.db.transaction() as conn:
            assert await task_steps.end_all(conn, [end]) == ["written"]
        return await self.get(after.uuid)

    async def work(self, one: Transaction, task: str = "check", *, to: str | None = None, **more: Any) -> Transaction:
        """A step, done; `to` is the status that the task sets, and some of `more` are of the step, some of its end."""
        of_step = {name: more.pop(name) for name in ("path", "kind", "work_attempt") if name in more}
        step, begun = await self.begin(one, task, **of_step)
        after = replace(one, task=task) if to is None else moved(self.statuses, one, to, self.now())
        return await self.end(step, begun, replace(after, claim_id=None) if after.end_time else after, **more)

    async def fail(self, one: Transaction, task: str = "check", *, then: str = "hold", **step: Any) -> Transaction:
        """A step that failed: the Transaction has an error, or (`then` is "again" or "forget") rides on as it is."""
        of, begun = await self.begin(one, task, **step)
        when = self.now()
        async with self.db.transaction() as conn:
            error = an_error(one, root=await transactions.root(conn, one), task=task, failed=when)
        after = failed(self.statuses, one) if then == "hold" else one
        return await self.end(of, begun, after, state="FAILED", error="no", failure=error, by="error", at=when)

    async def orphaned(self, one: Transaction) -> Transaction:
        """Found by the sweep, or given up: no step of its own fails."""
        when = self.now()
        async with self.db.transaction() as conn:
            error = an_error(one, root=await transactions.root(conn, one), code="ORPHANED", failed=when)
            await transactions.write(conn, one, failed(self.statuses, one), one.process or "", "error", when)
            await task_errors.record(conn, self.tenant, error)
        return await self.get(one.uuid)

    async def finalize(self, one: Transaction, status: str = DONE) -> Transaction:
        """The Finalizer's write."""
        when = self.now()
        after = replace(moved(self.statuses, one, status, when), claim_id=None, task=None)
        async with self.db.transaction() as conn:
            await transactions.write(conn, one, after, one.process or "", "finalizer", when)
        return await self.get(one.uuid)

    async def complete(self, one: Transaction) -> Transaction:
        """From a tray of Processing to COMPLETED, through a tray of Submission."""
        await self.finalize(one)
        (sent,) = await self.claim(1, "submission")
        return await self.finalize(sent, "COMPLETED")

    async def release(self, claim_id: UUID | None) -> None:
        """What a tray does at its end for those that it still holds."""
        assert claim_id is not None
        async with self.db.transaction() as conn:
            await transactions.release(conn, self.tenant, claim_id)

    async def by_hand(self, one: Transaction, answer: Answer, entities: Sequence[str] = (), **more: Any) -> Remedied:
        """`casework transaction abort`, `clone`, `retry` and `complete`."""
        async with self.db.transaction() as conn:
            return await remedies.by_hand(
                conn,
                self.tenant,
                one.uuid,
                Remedy(answer, **more),
                statuses=self.statuses,
                policy=ALL,
                lines=APP.lines().values(),
                entities=entities,
                by="rita",
                at=self.now(),
            )

    async def answer(self, one: Transaction, answer: Answer, *, asked: bool = True, **more: Any) -> Remedied:
        """A remedy in a tray of the Error process: of a manual task, or (not `asked`) of an error task."""
        step, begun = await self.begin(one, "ask-about-error", kind="manual" if asked else "error")
        if asked:
            await self.link(step)
        seen, when = touched(one) if asked else one, self.now()
        ended = remedied(
            seen, Remedy(answer, **more), statuses=self.statuses, policy=ALL, lines=APP.lines().values(), at=when
        )
        async with self.db.transaction() as conn:
            if ended.clone is not None:
                await remedies.hand_over(conn, one, ended.clone, (), "errors", step.task, when)
            end = TaskEnd(
                step=step,
                attempt=begun.attempt or 0,
                before=one,
                after=ended.transaction,
                by=step.task,
                at=when,
                by_hand=ended.by_hand,
            )
            assert await task_steps.end_all(conn, [end]) == ["written"]
        return ended

    async def link(self, step: TaskStep) -> None:
        """The run that a step waits for."""
        async with self.db.transaction() as conn:
            await linked_runs.link(conn, step, uuid4(), self.now())

    async def split(self, one: Transaction, count: int = 2, task: str = "split") -> list[Transaction]:
        """Children in its tray."""
        kids = [child(one, f"{task}.1", number, {"part": number}, self.now()) for number in range(1, count + 1)]
        await self.work(one, task, kind="split", children=kids)
        return [await self.get(kid.uuid) for kid in kids]

    async def arrive(self, one: Transaction) -> Transaction:
        """At the join."""
        return await self.work(one, "join", kind="join", arrived=True)
