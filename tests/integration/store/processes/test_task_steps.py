"""The ledger of Tasks: what a begin meets, the fence, and what an end writes at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from casework.errors import FatalError, StoreUnavailableError
from casework.process import ErrorEntity, ErrorType, Severity, Transaction
from casework.process.transactions import child
from casework.store.database import Connection, Database
from casework.store.processes import task_errors, task_steps, transactions
from casework.store.processes.task_steps import StepRow
from tests.integration.store.cases import execute, fetch
from tests.integration.store.processes.making import (
    DONE,
    PROCESS,
    TENANT,
    WORKING,
    at,
    begin,
    claimed,
    end,
    end_of,
    get,
    rows_read,
    step_of,
    write,
)


def an_error(transaction: Transaction, **changes: Any) -> ErrorEntity:
    """A failure of the task `check`."""
    known: dict[str, Any] = {
        "uuid": uuid4(),
        "transaction": transaction.uuid,
        "root": transaction.uuid,
        "type": ErrorType.BUSINESS,
        "code": "NO_AMOUNT",
        "severity": Severity.WARNING,
        "short": "the amount is missing",
        "full": "BusinessError: the amount is missing",
        "process": PROCESS,
        "task": "check",
        "attempt": 1,
        "started": at(1),
        "failed": at(2),
    }
    return ErrorEntity(**{**known, **changes})


async def ledger(db: Database, transaction: Transaction) -> list[StepRow]:
    """Its rows."""
    async with db.transaction() as conn:
        return await task_steps.of(conn, transaction.tenant, transaction.uuid)


async def test_a_step_begins_and_ends_once(db: Database) -> None:
    """BP-9. What is done is skipped: a begin after the end gives the result, also when the status moved on."""
    (one,) = await claimed(db)
    step = step_of(one)
    (begun,) = await begin(db, step)
    assert (begun.met, begun.attempt, begun.state, begun.transaction) == ("begun", 1, "STARTED", one)
    to: dict[str, Any] = {"status": "CHECKED", "task": "check", "data": {"sum": Decimal("1.50")}}
    done = end_of(step, begun, result={"to": "pay", "exact": Decimal("2.10")}, to=to)
    assert await end(db, done) == ["written"]
    (again,) = await begin(db, step)
    assert (again.met, again.attempt, again.state, again.result) == ("done", 1, "COMPLETED", done.result)
    assert again.transaction == replace(one, **to)
    assert await end(db, done) == ["overtaken"]
    (row,) = await ledger(db, one)
    assert (row.step_id, row.path, row.task, row.kind, row.task_version) == (
        step.step_id,
        "check.1",
        "check",
        "plain",
        "1",
    )
    assert (row.state, row.attempt, row.result, row.claim_id) == ("COMPLETED", 1, done.result, one.claim_id)
    assert row.ended_at


async def test_a_late_attempt_writes_nothing(db: Database) -> None:
    """BP-9. The attempt is a fence: of two that are under way the later one counts."""
    (one,) = await claimed(db)
    step = step_of(one)
    (first,) = await begin(db, step)
    (second,) = await begin(db, step)
    assert (second.met, second.attempt) == ("begun", 2)
    late = end_of(step, first, result="first", to={"priority": 1}, failure=an_error(one))
    assert await end(db, late) == ["overtaken"]
    assert await get(db, one.uuid) == one
    assert await end(db, end_of(step, second, result="second", to={"priority": 2})) == ["written"]
    assert (await get(db, one.uuid)).priority == 2
    assert await fetch(db, "select from process_ops.transaction_errors") == []


@pytest.mark.parametrize("change", [{"status": "HAS_ERROR", "claim_id": None}, {"claim_id": UUID(int=7)}])
async def test_what_was_changed_from_outside_is_left_alone(db: Database, change: dict[str, Any]) -> None:
    """BP-24. Another status or claim than those of the tray: it neither begins nor ends, and no field changes."""
    (one,) = await claimed(db)
    step = step_of(one)
    (begun,) = await begin(db, step)
    changed = replace(one, **change)
    await write(db, one, changed)
    (met,) = await begin(db, step)
    assert (met.met, met.transaction) == ("moved", changed)
    assert await end(db, end_of(step, begun, result=1, to={"priority": 3})) == ["moved"]
    assert await get(db, one.uuid) == changed
    (row,) = await ledger(db, one)
    assert (row.state, row.attempt) == ("STARTED", 1)


async def test_what_has_ended_or_is_not_there_does_not_begin(db: Database) -> None:
    """BP-24. The begin says so, and writes nothing."""
    (one,) = await claimed(db)
    done = replace(one, status=DONE, end_time=at(4))
    await write(db, one, done)
    absent = replace(one, uuid=uuid4())
    met = await begin(db, step_of(done), step_of(absent))
    assert [(each.met, each.transaction) for each in met] == [("ended", done), ("absent", None)]
    assert await ledger(db, one) == []


async def test_a_failure_is_one_with_its_error_and_the_status(db: Database) -> None:
    """BP-23. Step, ErrorEntity and HAS_ERROR are written at once; the same attempt of the walk finds them again."""
    (one,) = await claimed(db)
    step = step_of(one)
    (begun,) = await begin(db, step)
    error = an_error(one, short="short\x00")
    to: dict[str, Any] = {"status": "HAS_ERROR", "status_before_error": WORKING, "claim_id": None, "task": "check"}
    left = {"kind": "left", "takes": "all"}
    failed = end_of(step, begun, state="FAILED", error="no amount", result=left, failure=error, by="error", to=to)
    assert await end(db, failed) == ["written"]
    (again,) = await begin(db, step)
    assert (again.met, again.result, again.error, again.state) == ("failed", left, "no amount", "FAILED")
    assert await get(db, one.uuid) == replace(one, **to)
    async with db.transaction() as conn:
        assert await task_errors.of(conn, TENANT, one.uuid) == [replace(error, short="short\u2400")]
        assert await task_errors.of(conn, "other", one.uuid) == []
        assert not await task_errors.record(conn, TENANT, replace(error, code="other"))
        (birth, _, stage) = await transactions.stages(conn, TENANT, one.uuid)
    assert birth.before is None
    assert (stage.before, stage.after, stage.made_by, stage.claim_id) == (WORKING, "HAS_ERROR", "error", one.claim_id)


async def test_a_step_that_failed_begins_again_for_a_later_attempt_only(db: Database) -> None:
    """BP-26. A retry is a further attempt of the walk; the activity that reported the failure does not act again."""
    (one,) = await claimed(db)
    step = step_of(one)
    (begun,) = await begin(db, step)
    await end(db, end_of(step, begun, state="FAILED", error="e", result={"kind": "again"}, failure=an_error(one)))
    (same,) = await begin(db, step)
    (later,) = await begin(db, replace(step, work_attempt=2))
    assert [same.met, later.met, later.attempt, later.result, later.error] == ["failed", "begun", 2, None, None]
    assert await end(db, end_of(step, later, result="well")) == ["written"]
    assert [(row.state, row.work_attempt, row.error) for row in await ledger(db, one)] == [("COMPLETED", 2, None)]


async def test_many_begin_and_end_in_one_trip_each_for_itself(db: Database) -> None:
    """BP-10. Of a tray what can begin begins, what can be written is written, and answers are in the order asked."""
    tray = await claimed(db, 5)
    steps = [step_of(each) for each in tray]
    moved = replace(tray[1], claim_id=uuid4())
    await write(db, tray[1], moved)
    (done,) = await begin(db, steps[3])
    await end(db, end_of(steps[3], done, result=3))
    met = await begin(db, *steps)
    assert [each.met for each in met] == ["begun", "moved", "begun", "done", "begun"]
    assert [each.transaction.uuid for each in met if each.transaction] == [each.uuid for each in tray]
    await begin(db, steps[4])
    ends = [end_of(steps[n], met[n], result=n, to={"task": "check"}) for n in (4, 2, 0)]
    assert await end(db, *ends) == ["overtaken", "written", "written"]
    assert [(await get(db, each.uuid)).task for each in tray] == ["check", None, "check", None, None]
    assert await begin(db) == []
    assert await end(db) == []


async def test_a_split_writes_its_children_with_its_step(db: Database) -> None:
    """BP-8. Children are in the tray of their parent, each with the stage of its birth; a grandchild has its root."""
    (one,) = await claimed(db)
    step = step_of(one, kind="split")
    (begun,) = await begin(db, step)
    children = [child(one, "check.1", number, {"n": number}, at(2)) for number in (1, 2)]
    assert await end(db, end_of(step, begun, children=children)) == ["written"]
    assert [await get(db, each.uuid) for each in children] == children
    below = step_of(children[1], path="check.2")
    (begun,) = await begin(db, below)
    grandchild = child(children[1], "check.2", 1, {}, at(3))
    assert await end(db, end_of(below, begun, children=[grandchild], arrived=True)) == ["written"]
    async with db.transaction() as conn:
        assert await transactions.root(conn, grandchild) == one.uuid
        family = await transactions.family(conn, one)
        assert [stage.after for stage in await transactions.stages(conn, TENANT, grandchild.uuid)] == [WORKING]
    assert (family.children, family.arrived) == (2, (children[1],))


async def test_a_transactional_task_is_wholly_done_or_not_at_all(db: Database, admin_db: Database) -> None:
    """BP-9. Begin, the task's own rows and the end are one database transaction."""
    await execute(admin_db, "create table public.own (n integer)")
    await execute(admin_db, "grant select, insert on public.own to casework_runtime")
    (one,) = await claimed(db)
    step = step_of(one, kind="transactional")

    async def run(breaks: bool) -> None:
        async with db.transaction() as conn:
            begun = await task_steps.begin(conn, step)
            await conn.execute("insert into public.own values (1)")
            await task_steps.end(conn, end_of(step, begun, to={"status": "CHECKED"}))
            if breaks:
                await conn.execute("select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(StoreUnavailableError):
        await run(breaks=True)
    assert (await get(db, one.uuid), await ledger(db, one)) == (one, [])
    assert await fetch(db, "select n from public.own") == []
    await run(breaks=False)
    assert (await get(db, one.uuid)).status == "CHECKED"
    assert await fetch(db, "select n from public.own") == [{"n": 1}]


async def test_an_end_in_another_transaction_than_its_begin_is_refused(db: Database) -> None:
    """BP-9. A task that ends the transaction which it was lent is found out; what another one took is not written."""
    (one,) = await claimed(db)
    step = step_of(one, kind="transactional")

    async def run(ended_by: Callable[[Connection], Awaitable[None]]) -> None:
        async with db.transaction() as conn:
            begun = await task_steps.begin(conn, step)
            await ended_by(conn)
            await task_steps.end(conn, end_of(step, begun, to={"priority": 1}))

    with pytest.raises(FatalError, match=r"in which step .* was begun was ended by its task"):
        await run(Connection.commit)
    with pytest.raises(StoreUnavailableError, match="is no longer the current one"):
        await run(Connection.rollback)
    assert await get(db, one.uuid) == one


async def test_a_result_that_cannot_be_held_is_replaced_and_counted(db: Database) -> None:
    """NUL and NaN in results and errors are replaced, and the row says how many."""
    (one,) = await claimed(db)
    step = step_of(one)
    (begun,) = await begin(db, step)
    await end(db, end_of(step, begun, state="FAILED", result={"x": float("nan")}, error="a\x00"))
    (row,) = await ledger(db, one)
    assert (row.result, row.error, row.cleaned) == ({"x": "NaN"}, "a\u2400", 2)


async def test_a_step_that_is_completed_stays_so(db: Database, admin_db: Database) -> None:
    """BP-9. Not even raw SQL rewrites a committed result, or turns the fence back."""
    (one,) = await claimed(db)
    step = step_of(one)
    await begin(db, step)
    (begun,) = await begin(db, step)
    with pytest.raises(FatalError, match="transaction_steps_attempt_grows"):
        await execute(admin_db, "update process_ops.transaction_steps set attempt = 1")
    await end(db, end_of(step, begun, result=1))
    with pytest.raises(FatalError, match="transaction_steps_terminal_stays"):
        await execute(admin_db, "update process_ops.transaction_steps set result = '2'")


async def test_a_step_is_found_by_its_key_alone(admin_db: Database, db: Database) -> None:
    """BP-33. Over tables that the planner knows nothing of, a begin and an end read no other rows than their own."""
    for table in ("transactions", "transaction_steps"):
        await execute(admin_db, f"alter table process_ops.{table} set (autovacuum_enabled = false)")
    tray = await claimed(db, 300)
    await begin(db, *(step_of(each, path="earlier.1") for each in tray))
    async with db.transaction() as conn:
        before = await rows_read(conn)
        for each in tray[:10]:
            begun = await task_steps.begin(conn, step_of(each))
            await task_steps.end(conn, end_of(step_of(each), begun, to={"status": "CHECKED"}))
        after = await rows_read(conn)
    assert after["transaction_steps"] - before["transaction_steps"] <= 10 * 5
    assert after["transactions"] - before["transactions"] <= 10 * 30
