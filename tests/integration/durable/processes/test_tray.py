"""A tray on real servers: claimed Transactions walk their line as one durable workflow."""

from __future__ import annotations

from casework.errors import BusinessError
from casework.process import Change, PlainTask, TaskContext, Transaction, TransactionalTask, bot_task
from casework.process.tasks import Task
from tests.integration.durable.conftest import House
from tests.integration.durable.processes.trays import project, yard
from tests.unit.process.lines import plain, process


def noting(name: str) -> type[Task]:
    """A transactional task that notes that it was there."""

    @bot_task(name)
    class Noted(TransactionalTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return Change(data={"seen": [*transaction.data.get("seen", []), name]})

    return Noted


async def test_a_tray_of_three_walks_through_three_tasks_and_the_finalizer(house: House) -> None:
    """BP-10. One workflow carries three Transactions along the line; each step is in the ledger and the stage log."""
    line = process(plain("a"), noting("b"), plain("c"), tray_size=3)
    async with yard(house, project(line)) as here:
        uuids = [await here.add({"n": number}) for number in range(3)]
        end = await here.walk()
        assert (end.transactions, end.left) == (3, 0)
        for number, uuid in enumerate(uuids):
            made = await here.get(uuid)
            assert (made.status, made.claim_id, made.task) == ("PROCESSING_COMPLETED", None, None)
            assert made.data == {"n": number, "seen": ["a", "b", "c"]}
            assert [(step.path, step.state, step.attempt) for step in await here.steps(uuid)] == [
                ("a.1", "COMPLETED", 1),
                ("b.1", "COMPLETED", 1),
                ("c.1", "COMPLETED", 1),
            ]
            assert [(stage.after, stage.made_by) for stage in await here.stages(uuid)] == [
                ("INTAKE_COMPLETED", "test"),
                ("PROCESSING_IN_PROGRESS", "ProcessingMonitor"),
                ("PROCESSING_COMPLETED", "finalizer"),
            ]


async def test_one_that_fails_does_not_hold_up_the_others(house: House) -> None:
    """BP-10, BP-23. Of five one fails: it becomes HAS_ERROR with its error, the other four come through."""

    @bot_task("check", effects=False)
    class Check(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            if transaction.data["n"] == 2:
                raise BusinessError("the amount is missing", code="NO_AMOUNT")
            return None

    line = process(Check, noting("b"), tray_size=5)
    async with yard(house, project(line)) as here:
        uuids = [await here.add({"n": number}) for number in range(5)]
        end = await here.walk()
        assert (end.transactions, end.left) == (5, 1)
        done = "PROCESSING_COMPLETED"
        assert await here.statuses(uuids) == [done, done, "HAS_ERROR", done, done]
        failed = await here.get(uuids[2])
        assert (failed.claim_id, failed.status_before_error, failed.task) == (None, "PROCESSING_IN_PROGRESS", "check")
        (error,) = await here.errors(uuids[2])
        assert (error.type, error.code, error.task, error.attempt) == ("BUSINESS", "NO_AMOUNT", "check", 1)
        (step,) = await here.steps(uuids[2])
        assert (step.path, step.state) == ("check.1", "FAILED")
        assert "seen" not in failed.data
