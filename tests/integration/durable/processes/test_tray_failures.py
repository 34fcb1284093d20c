"""What becomes of failures on the way: by the error policy, by deadlines, by what a Task gives that cannot be kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from casework.errors import BusinessError
from casework.process import (
    Change,
    ErrorPolicy,
    OnError,
    PlainTask,
    TaskContext,
    Transaction,
    TransactionalTask,
    bot_task,
)
from casework.process.tasks import Task
from tests.integration.durable.conftest import House
from tests.integration.durable.processes.test_tray import noting
from tests.integration.durable.processes.trays import project, yard
from tests.unit.process.lines import plain, process

DONE = "PROCESSING_COMPLETED"


def failing(times: int, error: type[Exception] = RuntimeError, base: type[Task] = TransactionalTask) -> Any:
    """A task that fails each Transaction with data `bad` so many times; it counts its calls and notes its keys."""
    calls: Counter[Any] = Counter()
    keys: set[str] = set()

    class Failing(base):  # type: ignore[misc, valid-type]  # one of two kinds
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            calls[transaction.uuid] += 1
            keys.add(ctx.key)
            if transaction.data.get("bad") and calls[transaction.uuid] <= times:
                raise error("the bureau is closed")
            return Change(data={"calls": calls[transaction.uuid]})

    Failing.keys = keys
    Failing.calls = calls
    return Failing


@pytest.mark.parametrize("base", [TransactionalTask, PlainTask])
async def test_an_application_error_is_tried_again_and_a_business_error_never(house: House, base: type[Task]) -> None:
    """BP-26. Two retries: what fails twice comes through, under one key; each failed attempt is an error of its own."""
    declared: dict[str, Any] = {"effects": False} if base is PlainTask else {}
    again = bot_task("again", errors=ErrorPolicy(retries=2), **declared)(failing(2, base=base))
    never = bot_task("never", errors=ErrorPolicy(retries=2), **declared)(failing(9, BusinessError, base=base))
    async with yard(house, project(process(again, never, tray_size=2))) as here:
        good, bad = await here.add(), await here.add({"bad": True})
        await here.walk()
        assert await here.statuses([good, bad]) == [DONE, "HAS_ERROR"]
        assert again.calls == {good: 1, bad: 3}
        assert never.calls[bad] == 1
        assert len(again.keys) == 2
        errors = await here.errors(bad)
        assert [(each.task, each.attempt, each.type) for each in errors] == [
            ("again", 1, "APPLICATION"),
            ("again", 2, "APPLICATION"),
            ("never", 1, "BUSINESS"),
        ]
        step = (await here.steps(bad))[0]
        assert (step.state, step.attempt, step.work_attempt) == ("COMPLETED", 3, 3)


async def test_retries_end(house: House) -> None:
    """BP-26. When the retries are used up the Transaction becomes HAS_ERROR."""
    task = bot_task("again", errors=ErrorPolicy(retries=1))(failing(9))
    async with yard(house, project(process(task))) as here:
        bad = await here.add({"bad": True})
        await here.walk()
        assert await here.statuses([bad]) == ["HAS_ERROR"]
        assert [each.attempt for each in await here.errors(bad)] == [1, 2]


async def test_fail_fast_takes_all_that_are_not_through(house: House) -> None:
    """BP-26. With fail-fast one failure takes the whole tray with it, each with a reason; nobody comes to task b."""
    task = bot_task("check", errors=ErrorPolicy(on_error=OnError.FAIL_FAST))(failing(9))
    async with yard(house, project(process(task, noting("b"), tray_size=3))) as here:
        uuids = [await here.add(), await here.add({"bad": True}), await here.add()]
        await here.walk()
        assert await here.statuses(uuids) == ["HAS_ERROR"] * 3
        (taken,) = await here.errors(uuids[0])
        assert f"it leaves with Transaction {uuids[1]}" in taken.full
        assert [step.path for step in await here.steps(uuids[2])] == ["check.1"]


async def test_log_and_forget_goes_on_as_if_nothing_had_been_changed(house: House) -> None:
    """BP-26. The error is recorded, the step FAILED, and the Transaction goes on without what the task did."""
    task = bot_task("enrich", errors=ErrorPolicy(on_error=OnError.LOG_AND_FORGET))(failing(9))
    async with yard(house, project(process(task, noting("b")))) as here:
        bad = await here.add({"bad": True})
        await here.walk()
        made = await here.get(bad)
        assert (made.status, made.data) == (DONE, {"bad": True, "seen": ["b"]})
        assert [each.code for each in await here.errors(bad)] == ["RuntimeError"]
        assert [step.state for step in await here.steps(bad)] == ["FAILED", "COMPLETED"]


@pytest.mark.parametrize("base", [TransactionalTask, PlainTask])
async def test_each_transaction_has_its_own_deadline(house: House, base: type[Task]) -> None:
    """BP-10. One that takes too long fails by itself; what it had written is undone, and the others come through."""

    class Slow(base):  # type: ignore[misc, valid-type]  # one of two kinds
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            if transaction.data.get("slow"):
                await asyncio.Event().wait()
            return None

    declared: dict[str, Any] = {"effects": False} if base is PlainTask else {}
    task = bot_task("slow", timeout=0.3, **declared)(Slow)
    async with yard(house, project(process(task, tray_size=3))) as here:
        uuids = [await here.add(), await here.add({"slow": True}), await here.add()]
        await here.walk()
        assert await here.statuses(uuids) == [DONE, "HAS_ERROR", DONE]
        (error,) = await here.errors(uuids[1])
        assert (error.code, error.type) == ("TimeoutError", "APPLICATION")
        assert "Task 'slow' took longer than its 0.3 s" in error.short


GIVES: dict[str, tuple[Any, str, str]] = {
    "illegal": (Change(status="SUBMISSION_IN_PROGRESS"), "TransitionError", "it may go to HAS_ERROR"),
    "unknown": (Change(status="SHIPPED"), "ProcessDeclarationError", "SHIPPED"),
    "nonsense": ("fine", "ProcessDeclarationError", "Return a Change, or None"),
    "large": (Change(data={"text": "x" * 3_000_000}), "UnserialisableError", "over the limit"),
    "unkept": (Change(data={"when": object()}), "UnserialisableError", "cannot be stored"),
    "exit": (SystemExit(3), "SystemExit", ""),
    "cancelled": (asyncio.CancelledError(), "CancelledError", ""),
}


@pytest.mark.parametrize("base", [TransactionalTask, PlainTask])
async def test_what_cannot_be_fails_the_transaction_alone(house: House, base: type[Task]) -> None:
    """BP-4, BP-23. An illegal or unknown status, nonsense, data that is too large or cannot be kept, an exit."""

    class Odd(base):  # type: ignore[misc, valid-type]  # one of two kinds
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            given = GIVES[transaction.data["gives"]][0] if "gives" in transaction.data else None
            if isinstance(given, BaseException):
                raise given
            return given

    declared: dict[str, Any] = {"effects": False} if base is PlainTask else {}
    task = bot_task("odd", **declared)(Odd)
    async with yard(house, project(process(task, plain("b"), tray_size=20))) as here:
        good = await here.add()
        bad = {name: await here.add({"gives": name}) for name in GIVES}
        await here.walk()
        assert await here.statuses([good]) == [DONE]
        for name, uuid in bad.items():
            (error,) = await here.errors(uuid)
            assert (error.code, (await here.get(uuid)).status) == (GIVES[name][1], "HAS_ERROR"), name
            assert GIVES[name][2] in error.full, name
            assert (await here.get(uuid)).data == {"gives": name}


async def test_a_statement_that_the_database_refuses_fails_its_transaction_alone(house: House) -> None:
    """BP-9. What a transactional task wrote before the refusal is undone with it; the others keep theirs."""

    @bot_task("write")
    class Write(TransactionalTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            await ctx.connection.execute("insert into notes values (%s, %s)", [transaction.uuid, ctx.key])
            if transaction.data.get("bad"):
                await ctx.connection.execute("insert into notes values (null, 'x')")
            return None

    async with yard(house, project(process(Write, tray_size=3))) as here:
        await here.rows("create table notes (uuid uuid not null, key text)")
        await here.rows("grant all on notes to casework_runtime")
        uuids = [await here.add(), await here.add({"bad": True}), await here.add()]
        await here.walk()
        assert await here.statuses(uuids) == [DONE, "HAS_ERROR", DONE]
        assert {row[0] for row in await here.rows("select uuid from notes")} == {uuids[0], uuids[2]}
        (error,) = await here.errors(uuids[1])
        assert (error.code, error.attempt) == ("NotNullViolation", 1)


async def test_a_task_that_ends_its_database_transaction_fails_and_leaves_nothing(house: House) -> None:
    """BP-9. The lent connection can be neither committed nor kept."""

    @bot_task("commit")
    class Commit(TransactionalTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            await ctx.connection.execute("commit")
            return None

    async with yard(house, project(process(Commit))) as here:
        uuid = await here.add()
        await here.walk()
        (error,) = await here.errors(uuid)
        assert error.code == "FatalError"
        assert await here.statuses([uuid]) == ["HAS_ERROR"]
