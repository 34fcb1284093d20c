"""Claims that keep to a limit for each business key."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import uuid4

import pytest

from casework.errors import InputError
from casework.process import Transaction
from casework.store.database import Database
from casework.store.processes import transactions
from tests.integration.store.cases import execute, fetch
from tests.integration.store.processes.making import PROCESS, TENANT, WAITING, WORKING, add, made, take, uuids


async def test_no_more_of_one_key_are_under_way_than_it_may(db: Database) -> None:
    """BP-32. What is over the limit is passed over, for less urgent ones too; what has no key is not limited."""
    acme = [made(priority=9 - number) for number in range(4)]
    free = [made(priority=0), made(priority=-1)]
    await add(db, *acme, business_key="ACME")
    await add(db, *free)
    first, second = uuid4(), uuid4()
    async with db.transaction() as conn:
        found = await take(conn, first, 3, per_key=2)
        assert uuids(found) == uuids([*acme[:2], free[0]])
        assert all((each.status, each.claim_id, each.process) == (WORKING, first, PROCESS) for each in found)
        assert uuids(await take(conn, second, 3, per_key=2)) == [free[1].uuid]
        assert uuids(await take(conn, first, 3, per_key=2)) == uuids(found)
    async with db.transaction() as conn:
        await transactions.release(conn, TENANT, first)
        assert uuids(await take(conn, uuid4(), 9, per_key=3, process="other", status=WORKING)) == uuids(found)
        assert uuids(await take(conn, uuid4(), 9, per_key=1)) == [acme[2].uuid]
    stages = await fetch(db, "select from process_ops.transaction_stages where made_by = 'ProcessingMonitor'")
    claims = await fetch(db, "select taken from process_ops.transaction_claims order by taken")
    assert (len(stages), [row["taken"] for row in claims]) == (3 + 1 + 1, [1, 1, 3, 3])


@pytest.mark.parametrize("per_key", [0, -1])
async def test_a_limit_below_one_is_refused(db: Database, per_key: int) -> None:
    """The message says what to pass."""
    async with db.transaction() as conn:
        with pytest.raises(InputError, match="Pass 1 or more, or None"):
            await take(conn, uuid4(), per_key=per_key)


MANY = """
insert into process_ops.transactions (uuid, root_uuid, status, start_time, business_key, updated_at)
select md5(n::text)::uuid, md5(n::text)::uuid, %s, timestamptz '2026-03-01' + n * interval '1 second',
       'key ' || n %% 12, now()
from generate_series(1, %s) n
"""


async def test_claimers_that_race_keep_to_the_limit(db: Database) -> None:
    """BP-32. Eight claimers at once: at no time are more of one key under way than it may, and each row comes once."""
    await execute(db, MANY, WAITING, 240)
    taken: list[Transaction] = []
    most = 0

    async def claimer() -> None:
        nonlocal most
        empty = 0
        while len(taken) < 240 and empty < 2000:
            claim_id = uuid4()
            async with db.transaction() as conn:
                found = await take(conn, claim_id, 7, per_key=2)
            empty = 0 if found else empty + 1
            if not found:
                continue
            taken.extend(found)
            counted = await fetch(
                db,
                "select count(*) as n from process_ops.transactions where claim_id is not null and end_time is null"
                " group by business_key order by n desc limit 1",
            )
            most = max(most, *(row["n"] for row in counted))
            await execute(
                db,
                "update process_ops.transactions set status = 'COMPLETED', end_time = now() where claim_id = %s",
                claim_id,
            )

    await asyncio.gather(*(claimer() for _ in range(8)))
    assert most == 2
    assert len(taken) == 240
    assert max(Counter(uuids(taken)).values()) == 1


async def test_two_claims_that_make_the_same_keys_do_not_wait_for_each_other(db: Database) -> None:
    """BP-32. Each in another order: the second passes over what the first is about to take."""
    one, two = made(priority=2), made(priority=1)
    await add(db, one, business_key="A")
    await add(db, two, business_key="B")
    three, four = made(priority=2, status="LATER"), made(priority=1, status="LATER")
    await add(db, three, business_key="B")
    await add(db, four, business_key="A")
    async with db.transaction() as first, db.transaction() as second:
        assert uuids(await take(first, uuid4(), 1, per_key=1)) == [one.uuid]
        assert uuids(await take(second, uuid4(), 2, per_key=1, status="LATER")) == [three.uuid]
        assert await take(first, uuid4(), 1, per_key=1) == []
