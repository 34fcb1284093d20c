"""Transactions: what comes in once, what is written over what is expected, and what a row can hold."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from uuid import uuid4

import pytest

from casework.errors import ConflictError, InputError
from casework.process import Transaction
from casework.process.transactions import child
from casework.store.database import Database
from casework.store.processes import transactions
from tests.integration.store.cases import fetch
from tests.integration.store.processes.making import PROCESS, WAITING, WORKING, add, at, claimed, get, made, write


async def test_a_transaction_is_read_as_it_was_added(db: Database) -> None:
    """BP-1. Every field comes back."""
    full = made(
        parent_uuid=uuid4(),
        status="INTAKE_IN_PROGRESS",
        status_before_error="X",
        claim_id=uuid4(),
        process="intake",
        task="read",
        natural_key="mail-1",
        priority=-3,
        due_time=at(60),
        data={"amount": Decimal("12.3400"), "deep": [{"a": None, "b": True}]},
        skip_until="check",
        straight_through=False,
    )
    assert await add(db, full) == [True]
    assert await get(db, full.uuid) == full
    terminal = made(status="ABORTED", end_time=at(3))
    assert await add(db, terminal) == [True]
    assert await get(db, terminal.uuid) == terminal


async def test_a_natural_key_comes_in_once(db: Database) -> None:
    """BP-20. A repeated entity is a no-op, and leaves no stage; another tenant has keys of its own."""
    first, again = made(natural_key="mail-1"), made(natural_key="mail-1", data={"x": 1})
    assert await add(db, first, again, made(natural_key="mail-1", tenant="other"), first) == [True, False, True, False]
    assert (await get(db, first.uuid)).data == {}
    assert len(await fetch(db, "select from process_ops.transaction_stages")) == 2


async def test_two_that_bring_one_key_at_once(db: Database) -> None:
    """BP-20. Of two inserts that race, in transactions that are both open, one is written."""

    async def bring() -> bool:
        async with db.transaction() as conn:
            written = await transactions.insert(conn, made(natural_key="mail-1"), "intake", "Mailbox", at(0))
            if written:
                # Not before the other waits for this one's key.
                await _until_somebody_waits(db)
            return written

    assert sorted(await asyncio.gather(bring(), bring())) == [False, True]
    assert len(await fetch(db, "select from process_ops.transactions")) == 1


async def _until_somebody_waits(db: Database) -> None:
    async with asyncio.timeout(20):
        while not await fetch(db, "select from pg_locks where not granted"):  # noqa: ASYNC110 - no event for a lock
            await asyncio.sleep(0)


@pytest.mark.parametrize("key", ["", "  ", "x" * 501])
async def test_a_key_that_cannot_be_one_is_refused(db: Database, key: str) -> None:
    """The message names the field."""
    for fields in ({"natural_key": key}, {}):
        with pytest.raises(InputError, match=r"Pass a text of 1 to 500 characters") as caught:
            await add(db, made(**fields), business_key=key)
        assert caught.value.field == ("natural_key" if fields else "business_key")


async def test_a_write_needs_the_status_and_the_claim_that_it_expects(db: Database) -> None:
    """BP-9. Whoever takes the Transaction for another writes nothing, and is told."""
    (one,) = await claimed(db)
    for other in (replace(one, status=WAITING), replace(one, claim_id=uuid4()), replace(one, claim_id=None)):
        with pytest.raises(ConflictError, match=rf"Transaction {one.uuid} .* is not any more in status"):
            await write(db, other, replace(other, priority=9))
    with pytest.raises(ConflictError, match="is not there"):
        await write(db, made(), made())
    assert await get(db, one.uuid) == one
    await write(db, one, replace(one, priority=9, data={"a": 1}))
    assert await get(db, one.uuid) == replace(one, priority=9, data={"a": 1})


async def test_each_status_is_a_stage(db: Database) -> None:
    """BP-29. The log of stages tells who set which status, from the birth on; a change of other fields is none."""
    (one,) = await claimed(db)
    await write(db, one, replace(one, task="check"))
    await write(db, replace(one, task="check"), replace(one, status="PROCESSING_COMPLETED", claim_id=None))
    async with db.transaction() as conn:
        found = await transactions.stages(conn, one.tenant, one.uuid)
    assert [(s.before, s.after, s.process, s.made_by, s.claim_id, s.at) for s in found] == [
        (None, WAITING, "intake", "Mailbox", None, at(0)),
        (WAITING, WORKING, PROCESS, "ProcessingMonitor", one.claim_id, at(1)),
        (WORKING, "PROCESSING_COMPLETED", PROCESS, "check", one.claim_id, at(5)),
    ]


async def test_what_the_database_cannot_hold_is_replaced_and_counted(db: Database) -> None:
    """NUL, lone surrogates and NaN are replaced by the one rule, the row says how many; digits of a Decimal stay."""
    odd = {"text": "a\x00b\ud800", "nan": float("nan"), "exact": Decimal("1.10"), "κ": "𝄞"}
    kept = {"text": "a\u2400b\ufffd", "nan": "NaN", "exact": Decimal("1.10"), "κ": "𝄞"}
    one = made(data=odd, natural_key="k\x00", process="p\x00")
    await add(db, one)
    found = await get(db, one.uuid)
    assert (found.data, found.natural_key, found.process) == (kept, "k\u2400", "p\u2400")
    assert str(found.data["exact"]) == "1.10"
    await write(db, found, replace(found, data={"more": "\x00"}, task="\x00"))
    assert (await get(db, one.uuid)).data == {"more": "\u2400"}
    rows = await fetch(db, "select cleaned from process_ops.transactions")
    assert rows == [{"cleaned": 5 + 2}]


async def test_tenants_do_not_see_each_other(db: Database) -> None:
    """One id in two tenants is two Transactions; a write touches its own."""
    one = made()
    other = replace(one, tenant="other", data={"b": 2})
    await add(db, one, other)
    await write(db, other, replace(other, priority=5))
    assert (await get(db, one.uuid)).priority == 0
    assert (await get(db, one.uuid, "other")).priority == 5
    async with db.transaction() as conn:
        assert await transactions.get(conn, "third", one.uuid) is None
        assert await transactions.stages(conn, "third", one.uuid) == []


async def test_a_family_is_told_in_the_order_of_the_split(db: Database) -> None:
    """BP-8. A join counts children across trays; a child that was cloned counts by its clone."""
    (parent,) = await claimed(db)
    children = [child(parent, "split.1", number, {"n": number}, at(3)) for number in range(1, 12)]
    await add(db, *children)
    grandchild = child(children[0], "split.2", 1, {}, at(4))
    await add(db, grandchild)

    async def family() -> tuple[int, list[Transaction]]:
        async with db.transaction() as conn:
            found = await transactions.family(conn, parent)
            roots = [await transactions.root(conn, each) for each in (parent, children[3], grandchild)]
        assert roots == [parent.uuid] * 3
        return found.children, list(found.arrived)

    assert await family() == (11, [])
    async with db.transaction() as conn:
        for each in (children[5], children[1], children[1], parent):
            await transactions.arrive(conn, each, "join")
    assert await family() == (11, [children[1], children[5]])
    clone = replace(children[2], uuid=uuid4(), start_time=at(9))
    await add(db, clone, cloned_from=children[2].uuid)
    async with db.transaction() as conn:
        await transactions.arrive(conn, clone, "join")
    assert await family() == (11, [children[1], children[5], clone])


async def test_what_a_tray_lets_go_waits_again(db: Database) -> None:
    """BP-4. At the end of a process what is left is unclaimed, and stays as it is; what has ended is not touched."""
    first, second, third = await claimed(db, 3)
    done = replace(third, status="COMPLETED", end_time=at(5))
    await write(db, third, done)
    assert first.claim_id
    async with db.transaction() as conn:
        assert {each.uuid for each in await transactions.of_claim(conn, first.tenant, first.claim_id)} == {
            first.uuid,
            second.uuid,
            third.uuid,
        }
        assert await transactions.release(conn, first.tenant, first.claim_id) == 2
        assert await transactions.release(conn, first.tenant, first.claim_id) == 0
    assert await get(db, first.uuid) == replace(first, claim_id=None)
    assert await get(db, third.uuid) == done
