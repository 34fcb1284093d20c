"""The books of business processes: they balance after every legal history, and each fault is found and told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from casework.store.database import Database
from casework.store.processes import audit
from casework.store.processes.audit import Books
from casework.store.processes.audit_checks import CHECKS
from casework.testing.databases import Databases
from tests.integration.store.processes.breaking import break_, copy, played
from tests.integration.store.processes.breaks import BREAKS, STEPS
from tests.integration.store.processes.histories import (
    HISTORIES,
    aborted,
    cloned,
    parted_and_joined,
    resumed,
    straight_through,
)
from tests.integration.store.processes.making import TENANT
from tests.integration.store.processes.playing import Play

TWIN = "twin"


async def books(db: Database, tenant: str = TENANT, most: int = audit.MOST) -> Books:
    async with db.transaction() as conn:
        return await audit.books(conn, tenant, most)


async def test_no_legal_history_is_a_fault(db: Database) -> None:
    """Each in a tenant of its own, all side by side in one database."""
    for history in HISTORIES:
        await history(Play(db, history.__name__))
        found = await books(db, history.__name__)
        assert found.faults == [], (history.__name__, [(f.check.fault, f.found) for f in found.faults])
        assert found.balance
        assert found.counts.transactions > 0


@pytest.fixture(scope="module")
def ground(casework_databases: Databases) -> Iterator[tuple[str, dict[str, UUID]]]:
    """A database of Transactions of every sort, each in two tenants, to be broken and rolled back; and their ids."""

    async def play(dsn: str) -> dict[str, UUID]:
        async with await Database.open(dsn) as db:
            ids = await played(db)
            await copy(db, TWIN)
            assert ((await books(db)).faults, (await books(db, TWIN)).faults) == ([], [])
        return {**ids, "gone": uuid4()}

    with casework_databases.migrated() as dsn:
        yield dsn, asyncio.run(play(dsn))


async def broken(ground: tuple[str, dict[str, UUID]], *statements: str) -> Books:
    """The books with what is broken, which is rolled back. Those of the other tenant balance."""
    dsn, ids = ground
    async with await Database.open(dsn, max_size=1) as db, db.transaction() as conn:
        await break_(conn, statements, ids)
        found, beside = await audit.checked(conn, TENANT), await audit.checked(conn, TWIN)
        await conn.rollback()
    assert beside.faults == []
    assert beside.counts.transactions > 10
    return found


@pytest.mark.parametrize("what", BREAKS)
async def test_each_fault_is_found_and_nothing_else(ground: tuple[str, dict[str, UUID]], what: str) -> None:
    """What is written past the product is the one fault of its check, told with its id and with what to do."""
    fault, name, statements = BREAKS[what]
    found, wanted = await broken(ground, *statements), ground[1][name]
    assert [(each.check.fault, each.id) for each in found.faults] == [(fault, wanted)], found.faults
    assert {fault: number for fault, number in found.totals.items() if number} == {fault: 1}
    assert not found.balance
    plain: Any = found.to_plain()
    (told,) = plain["faults"]
    assert told["found"]
    assert told["remedy"]
    assert told["of"] == next(check.of for check in CHECKS if check.fault == fault)


async def test_a_fault_of_another_tenant_is_none_here(ground: tuple[str, dict[str, UUID]]) -> None:
    """One break of each check, at the same ids."""
    dsn, ids = ground
    one_of_each = {fault: statements for fault, _, statements in BREAKS.values() if " values (" not in str(statements)}
    async with await Database.open(dsn, max_size=1) as db:
        for fault, statements in one_of_each.items():
            async with db.transaction() as conn:
                await break_(conn, statements, ids, TWIN)
                found = await audit.checked(conn, TENANT)
                await conn.rollback()
            assert found.faults == [], fault


async def test_children_without_their_split_are_each_a_fault(ground: tuple[str, dict[str, UUID]]) -> None:
    """The step that split them off is gone: none of them was born by any work."""
    found = await broken(ground, f"delete from {STEPS} where kind = 'split' and transaction_uuid = %(parent)s")
    assert {(each.check.fault, each.id) for each in found.faults} == {
        ("work is not in the ledger", ground[1][name]) for name in ("arrived", "away")
    }


def test_every_check_has_a_fault_that_it_finds() -> None:
    """No check is there that could not fail."""
    assert {fault for fault, _, _ in BREAKS.values()} == {check.fault for check in CHECKS}


async def test_what_is_not_told_is_counted(db: Database) -> None:
    """Of each check so many faults as are asked for, and how many there are."""
    play = Play(db)
    for _ in range(5):
        await play.born()
    async with db.transaction() as conn:
        await conn.execute("update process_ops.transactions set status = 'PROCESSING_COMPLETED'")
    found = await books(db, most=2)
    plain: Any = found.to_plain()
    assert (len(found.faults), found.totals["stage log ends otherwise"], plain["untold"]) == (2, 5, 3)
    assert len((await books(db)).faults) == 5


async def test_all_checks_see_one_instant(db: Database) -> None:
    """What others write between two checks is seen by none of them; the audit itself writes nothing."""
    play = Play(db)
    await play.born()
    async with db.transaction() as conn:
        before = await audit.books(conn, TENANT)
        await play.born()
        again = await audit.checked(conn, TENANT)
        assert (before.counts, again.counts.transactions) == (again.counts, 1)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await conn.execute("update process_ops.transactions set status = 'CHECKED'")
        await conn.rollback()
    assert (await books(db)).counts.transactions == 2


async def test_what_is_at_work_meanwhile_is_no_fault(db: Database) -> None:
    """Histories are written while the books are read, again and again."""

    async def work() -> None:
        for history in (straight_through, cloned, resumed, parted_and_joined, aborted):
            for _ in range(2):
                await history(Play(db))

    working, looks = asyncio.create_task(work()), 0
    while not working.done():
        found = await books(db)
        assert found.faults == []
        looks += found.counts.open > 0
    await working
    assert looks > 10
