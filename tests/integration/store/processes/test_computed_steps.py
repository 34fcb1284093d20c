"""Steps of Tasks that only compute: written without a claim, and only over the very version that was given."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from casework.errors import ConflictError, FatalError
from casework.process import Transaction
from casework.store.database import Database
from casework.store.processes import computed_steps, task_steps, transactions
from casework.store.processes.computed_steps import Computed, Seen
from casework.store.processes.task_steps import TaskEnd
from tests.integration.store.cases import execute, fetch
from tests.integration.store.processes.making import (
    DONE,
    PROCESS,
    WORKING,
    at,
    begin,
    claimed,
    ended,
    get,
    rows_read,
    step_of,
    write,
)


async def look(db: Database, *of: Transaction) -> list[Seen | None]:
    """What may be worked on."""
    steps = [step_of(each) for each in of]
    async with db.autocommit() as conn:
        found = await computed_steps.look(conn, steps)
    return [found.get(step.step_id) for step in steps]


async def complete(db: Database, *done: Computed) -> frozenset[UUID]:
    """Write them."""
    async with db.autocommit() as conn:
        return await computed_steps.complete(conn, done)


def computed(seen: Seen, **to: object) -> Computed:
    """The task `check` has made of it what `to` says."""
    before = seen.transaction
    after = replace(before, task="check", **to)  # type: ignore[arg-type]  # fields of a Transaction
    end = TaskEnd(
        step=step_of(before), attempt=1, before=before, after=after, by="check", at=at(2), result={"to": "pay"}
    )
    return Computed(end, seen.version, at(1))


async def seen_all(db: Database, of: Sequence[Transaction]) -> list[Seen]:
    """Of all."""
    found = await look(db, *of)
    assert None not in found
    return [each for each in found if each]


async def test_they_are_read_and_written_together(db: Database) -> None:
    """BP-9. Each has its row in the ledger, its stage and its data, as one that was claimed."""
    tray = await claimed(db, 3)
    seen = await seen_all(db, tray)
    assert [each.transaction for each in seen] == tray
    data = {"sum": Decimal("1.50"), "odd": "a\x00b", "wide": "é😀"}
    done = [computed(seen[0], data=data), computed(seen[1], status="CHECKED"), computed(seen[2])]
    assert await complete(db, *done) == {each.end.step.step_id for each in done}
    first = await get(db, tray[0].uuid)
    assert (first.data, first.task) == ({"sum": Decimal("1.50"), "odd": "a\u2400b", "wide": "é😀"}, "check")
    assert (await get(db, tray[1].uuid)).status == "CHECKED"
    async with db.transaction() as conn:
        (row,) = await task_steps.of(conn, "default", tray[1].uuid)
        stages = await transactions.stages(conn, "default", tray[1].uuid)
    assert (row.state, row.attempt, row.path, row.result) == ("COMPLETED", 1, "check.1", {"to": "pay"})
    assert (row.started_at, row.ended_at is not None) == (at(1), True)
    assert [(each.before, each.after, each.made_by) for each in stages][-1] == (WORKING, "CHECKED", "check")
    (again,) = await begin(db, step_of(tray[0]))
    assert (again.met, again.result) == ("done", {"to": "pay"})
    assert await complete(db, *done) == frozenset()


async def test_only_what_is_as_expected_is_given(db: Database) -> None:
    """BP-9. Not one that has another status or claim, that has ended, is not there, or has begun this step."""
    other, taken, begun, fit = await claimed(db, 4)
    await write(db, other, replace(other, status="CHECKED"))
    await write(db, taken, replace(taken, claim_id=uuid4()))
    await begin(db, step_of(begun))
    over = replace(await ended(db), claim_id=fit.claim_id)
    foreign = replace(fit, tenant="other")
    found = await look(db, other, taken, begun, over, replace(fit, uuid=uuid4()), fit)
    assert [each is not None for each in found] == [False] * 5 + [True]
    assert await look(db, foreign) == [None]


async def test_whoever_wrote_meanwhile_is_not_overwritten(db: Database) -> None:
    """BP-9. Of one that was written since it was given nothing is written, whatever the clocks say; the others are."""
    one, two = await claimed(db, 2)
    seen = await seen_all(db, [one, two])
    await write(db, one, replace(one, data={"by": "hand"}))
    done = [computed(each, data={"by": "task"}) for each in seen]
    assert await complete(db, *done) == {done[1].end.step.step_id}
    assert [(await get(db, each.uuid)).data for each in (one, two)] == [{"by": "hand"}, {"by": "task"}]
    assert [each is not None for each in await look(db, one)] == [True]


async def test_of_two_that_computed_it_one_writes(db: Database) -> None:
    """BP-9. Two attempts of one activity end at one time: each step is written once."""
    tray = await claimed(db, 20)
    seen = await seen_all(db, tray)
    here, there = (
        [computed(each, data={"by": name}) for each in order] for name, order in (("a", seen), ("b", seen[::-1]))
    )
    first, second = await asyncio.gather(complete(db, *here), complete(db, *there))
    assert first.isdisjoint(second)
    assert first | second == {each.end.step.step_id for each in here}
    steps = await fetch(db, "select count(*) from process_ops.transaction_steps where claim_id = %s", tray[0].claim_id)
    assert steps == [{"count": 20}]


async def test_one_that_ends_is_in_the_analytics(db: Database) -> None:
    """BP-5. A Task may complete a Transaction; its row is written with that, and nothing after it."""
    (one,) = await claimed(db)
    (seen,) = await seen_all(db, [one])
    done = computed(seen, status=DONE, end_time=at(3), claim_id=None)
    assert await complete(db, done) == {done.end.step.step_id}
    sql = "select process, stage_times from process_ops.transaction_analytics where transaction_uuid = %s"
    (row,) = await fetch(db, sql, one.uuid)
    assert (row["process"], sorted(row["stage_times"])) == (PROCESS, ["PROCESSING_IN_PROGRESS", "PROCESSING_READY"])
    assert await complete(db, done) == frozenset()


@pytest.mark.parametrize(
    ("to", "refused"), [({"status": "no status"}, ConflictError), ({"priority": 2**40}, FatalError)]
)
async def test_what_cannot_be_a_row_is_refused_for_all(
    db: Database, to: dict[str, object], refused: type[Exception]
) -> None:
    """BP-9. Nothing is written of any, so that each can go its own way."""
    one, two = await claimed(db, 2)
    seen = await seen_all(db, [one, two])
    with pytest.raises(refused):
        await complete(db, computed(seen[0], data={"new": 1}), computed(seen[1], **to))
    assert await get(db, one.uuid) == one
    assert await complete(db) == frozenset()


async def test_no_other_rows_are_read(admin_db: Database, db: Database) -> None:
    """BP-33. Over tables that the planner knows nothing of, a look and an end read no other rows than their own."""
    for table in ("transactions", "transaction_steps"):
        await execute(admin_db, f"alter table process_ops.{table} set (autovacuum_enabled = false)")
    tray = await claimed(db, 100)
    await begin(db, *(step_of(each, path="earlier.1") for each in tray))
    steps = [step_of(each) for each in tray]
    async with db.transaction() as conn:
        before = await rows_read(conn)
        seen = await computed_steps.look(conn, steps)
        looked = await rows_read(conn)
        done = [computed(each) for each in seen.values()]
        assert len(await computed_steps.complete(conn, done)) == 100
        ended = await rows_read(conn)
    for first, then, most in ((before, looked, 5), (looked, ended, 20)):
        read = {table: then[table] - first[table] for table in ("transactions", "transaction_steps")}
        assert max(read.values()) <= 100 * most, read
