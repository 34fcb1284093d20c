"""Claims: their order, a claim that is repeated, many claimers at once, and how much they read."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from casework.errors import InputError, StoreUnavailableError
from casework.process import Transaction
from casework.store.database import Database
from casework.store.processes import claims, transactions
from tests.integration.store.cases import execute, fetch
from tests.integration.store.processes.making import (
    PROCESS,
    TENANT,
    WAITING,
    WORKING,
    add,
    at,
    claimed,
    get,
    made,
    rows_read,
    take,
    uuids,
    write,
)


async def test_the_most_urgent_are_claimed_first(db: Database) -> None:
    """BP-18. By priority, then due time, none last, then age; the row bears claim, status and process."""
    rows = [
        made(priority=5, start_time=at(3)),
        made(priority=1, due_time=at(10), start_time=at(2)),
        made(priority=1, due_time=at(20), start_time=at(1)),
        made(priority=1, start_time=at(0)),
        made(start_time=at(4)),
        made(start_time=at(5)),
    ]
    await add(db, *reversed(rows))
    claim_id = uuid4()
    async with db.transaction() as conn:
        found = await take(conn, claim_id, 5)
    assert found == [replace(row, status=WORKING, claim_id=claim_id, process=PROCESS) for row in rows[:5]]
    assert [await get(db, each.uuid) for each in found] == found
    assert await get(db, rows[5].uuid) == rows[5]


async def test_only_what_waits_in_the_status_is_claimed(db: Database) -> None:
    """BP-19. Another status, another tenant, another claim, a Transaction that has ended: none of these."""
    await claimed(db, 2)
    await add(db, made(status="OTHER"), made(tenant="other"), made(status="DONE", end_time=at(1)))
    async with db.transaction() as conn:
        assert await take(conn, uuid4()) == []
        assert await take(conn, uuid4(), status="DONE") == []
        assert len(await take(conn, uuid4(), tenant="other")) == 1


async def test_a_claim_that_is_repeated_takes_nothing_new(db: Database) -> None:
    """BP-18. It returns the rows that bear it already, as they are now; none if all are through."""
    first, second = await claimed(db, 2)
    await add(db, *(made() for _ in range(5)))
    assert first.claim_id
    await write(db, first, replace(first, status="NEXT", claim_id=None))
    async with db.transaction() as conn:
        assert await take(conn, first.claim_id) == [second]
        assert await transactions.release(conn, TENANT, first.claim_id) == 1
        assert await take(conn, first.claim_id) == []


async def test_a_claim_that_found_nothing_may_find_something_later(db: Database) -> None:
    """An empty claim is no tray."""
    claim_id = uuid4()
    async with db.transaction() as conn:
        assert await take(conn, claim_id) == []
    await add(db, made())
    async with db.transaction() as conn:
        assert len(await take(conn, claim_id)) == 1


async def test_one_claim_made_twice_at_once_takes_once(db: Database) -> None:
    """BP-18. Of an activity that is repeated while it still runs, the second waits and gets the rows of the first."""
    await add(db, *(made() for _ in range(6)))
    claim_id = uuid4()

    async def once() -> set[UUID]:
        async with db.transaction() as conn:
            found = await take(conn, claim_id, 2)
            await asyncio.sleep(0)
            return set(uuids(found))

    sets = await asyncio.gather(*(once() for _ in range(6)))
    assert len(sets[0]) == 2
    assert all(found == sets[0] for found in sets)


async def test_several_trays_are_filled_one_after_the_other(db: Database) -> None:
    """BP-10. One statement for the trays of a poll: full ones first, then the rest, then empty ones."""
    rows = [made(priority=-number) for number in range(5)]
    await add(db, *rows)
    wanted = [uuid4() for _ in range(4)]

    async def poll() -> list[list[UUID]]:
        async with db.transaction() as conn:
            found = await claims.claim_trays(
                conn, TENANT, status=WAITING, into=WORKING, claim_ids=wanted, size=2, process=PROCESS, by="M", at=at(1)
            )
        assert list(found) == wanted
        return [uuids(tray) for tray in found.values()]

    ids = uuids(rows)
    assert await poll() == [ids[:2], ids[2:4], ids[4:], []]
    await add(db, made())
    assert await poll() == [ids[:2], ids[2:4], ids[4:], []]
    async with db.transaction() as conn:
        assert await claims.open_trays(conn, TENANT, PROCESS) == 3
        assert await claims.open_trays(conn, TENANT, "other") == 0
        await transactions.release(conn, TENANT, wanted[0])
        assert await claims.open_trays(conn, TENANT, PROCESS) == 2
    found = await fetch(db, "select claim_id, taken, made_by from process_ops.transaction_claims order by taken desc")
    assert [(row["taken"], row["made_by"]) for row in found] == [(2, "M"), (2, "M"), (1, "M")]


@pytest.mark.parametrize("most", [0, -1])
async def test_a_claim_of_nothing_is_refused(db: Database, most: int) -> None:
    """The message says what to pass."""
    async with db.transaction() as conn:
        with pytest.raises(InputError, match="Pass 1 or more"):
            await take(conn, uuid4(), most)


MANY = """
insert into process_ops.transactions (uuid, root_uuid, status, priority, start_time, data, updated_at)
select md5(n::text)::uuid, md5(n::text)::uuid, %s, n %% 7, timestamptz '2026-03-01' + n * interval '1 second', '{}',
       now()
from generate_series(1, %s) n
"""


async def test_claimers_that_race_take_every_row_once(db: Database) -> None:
    """BP-18. Eight claimers, some of which are killed with an open claim: every row is claimed once."""
    await execute(db, MANY, WAITING, 3000)
    taken: list[Transaction] = []

    async def claimer(number: int) -> None:
        rounds = 0
        while True:
            rounds += 1
            dies = (rounds + number) % 5 == 0
            try:
                async with db.transaction() as conn:
                    found = await take(conn, uuid4(), 40)
                    if dies and found:
                        await conn.execute("select pg_terminate_backend(pg_backend_pid())")
            except StoreUnavailableError:
                assert dies
                continue
            if not found:
                return
            taken.extend(found)

    await asyncio.gather(*(claimer(number) for number in range(8)))
    assert max(Counter(uuids(taken)).values()) == 1
    assert len(taken) == 3000
    left = await fetch(db, "select from process_ops.transactions where claim_id is null")
    stages = await fetch(db, "select from process_ops.transaction_stages")
    assert (left, len(stages)) == ([], 3000)
    found = await fetch(db, "select status, claim_id, count(*) from process_ops.transactions group by 1, 2")
    assert all(row["status"] == WORKING and row["count"] <= 40 for row in found)


@pytest.mark.parametrize("analysed", ["never", "empty", "full"])
async def test_a_claim_reads_no_more_than_it_takes(admin_db: Database, db: Database, analysed: str) -> None:
    """BP-33. Whatever the planner knows of the table, a claim goes along the index of what waits."""
    await execute(admin_db, "alter table process_ops.transactions set (autovacuum_enabled = false)")
    if analysed == "empty":
        await execute(admin_db, "analyze process_ops.transactions")
    async with db.transaction() as conn:
        assert await take(conn, uuid4(), 3) == []  # a plan that is kept was made over an empty table
    await execute(db, MANY, WAITING, 20_000)
    await execute(db, MANY.replace("md5(n::text)", "md5('b' || n)"), "OTHER", 5_000)
    if analysed == "full":
        await execute(admin_db, "analyze process_ops.transactions")
    async with db.transaction() as conn:
        before = await rows_read(conn)
        assert len(await take(conn, uuid4(), 50)) == 50
        after = await rows_read(conn)
    assert after["transactions"] - before["transactions"] <= 50 * 10
