"""How a failed Transaction ends, written: abort, clone with all that belonged to it, resume, complete by hand."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from casework.errors import ConflictError, InputError, NotFoundError, ProcessDeclarationError, StateError
from casework.process import Answer, ErrorPolicy, Remedy
from casework.process.remedies import Remedied
from casework.store.processes import remedies, task_errors, transactions
from tests.integration.durable.conftest import TENANT, House
from tests.integration.durable.processes.desk import Desk, now
from tests.integration.durable.processes.waiting_app import ASK_ALL, BY_PERSON, app
from tests.integration.store.processes.test_task_steps import an_error

ALL = ErrorPolicy(resume=True, complete_by_hand=True)
ENTITIES = ("shop.invoices", "shop.notes")


async def desk_of(house: House, errors: ErrorPolicy | None = ALL) -> Desk:
    """Two tables of a project, one of them with a column of another name, and tenants."""
    house.app = app(BY_PERSON, ASK_ALL, errors=errors, entities=ENTITIES)
    async with await psycopg.AsyncConnection.connect(house.dsn) as conn:
        await conn.execute("create schema shop")
        await conn.execute("create table shop.invoices (id integer primary key, transaction_uuid uuid not null)")
        await conn.execute('create table shop.notes (tenant text not null, "Of" uuid, words text)')
        await conn.execute("select process_ops.guard_entities('shop.invoices')")
        await conn.execute("select process_ops.guard_entities('shop.notes', 'Of')")
        await conn.execute("grant usage on schema shop to casework_runtime")
        await conn.execute("grant select, insert, update on all tables in schema shop to casework_runtime")
    return Desk(house)


async def failed(desk: Desk, **more: Any) -> UUID:
    """A failed Transaction with two invoices and a note, beside others of nobody's and of another tenant's."""
    uuid = await desk.add({"n": 5}, "HAS_ERROR", status_before_error="PROCESSING_IN_PROGRESS", **more)
    async with desk.house.db.transaction() as conn:
        one = await transactions.get(conn, TENANT, uuid)
        assert one is not None
        error = an_error(one, root=await transactions.root(conn, one), failed=one.start_time)
        await task_errors.record(conn, TENANT, error)
        await conn.execute("insert into shop.invoices values (1, %(u)s), (2, %(u)s), (3, %(o)s)", _ids(uuid))
        await conn.execute(
            "insert into shop.notes values ('default', %(u)s, 'mine'), ('other', %(u)s, 'theirs')", _ids(uuid)
        )
    return uuid


def _ids(uuid: UUID) -> dict[str, UUID]:
    return {"u": uuid, "o": uuid4()}


async def by_hand(desk: Desk, uuid: UUID, remedy: Remedy, *, entities: tuple[str, ...] = ENTITIES) -> Remedied:
    application = desk.house.app
    async with desk.house.db.transaction() as conn:
        return await remedies.by_hand(
            conn,
            TENANT,
            uuid,
            remedy,
            statuses=application.statuses,
            policy=application.errors or ErrorPolicy(),
            lines=application.lines().values(),
            entities=entities,
            by="rita",
            at=now(),
        )


async def owned(desk: Desk, uuid: UUID) -> tuple[list[int], list[str]]:
    """The invoices and notes of a Transaction."""
    async with desk.house.db.transaction() as conn:
        invoices = await conn.execute("select id from shop.invoices where transaction_uuid = %s order by id", [uuid])
        notes = await conn.execute("""select words from shop.notes where "Of" = %s order by 1""", [uuid])
        return [row[0] for row in await invoices.fetchall()], [row[0] for row in await notes.fetchall()]


async def test_a_clone_takes_over_what_belonged_to_the_failed_one(house: House) -> None:
    """BP-25: clone, reassignment and ABORTED are one database transaction, and the link back is a query."""
    desk = await desk_of(house)
    uuid = await failed(desk, natural_key="mail-1", priority=3)
    made = await by_hand(desk, uuid, Remedy(Answer.CLONE, into="INTAKE_COMPLETED", data={"n": 6}))
    assert made.clone is not None
    old, clone = await desk.get(uuid), await desk.get(made.clone.uuid)
    assert (old.status, old.claim_id, old.straight_through) == ("ABORTED", None, False)
    assert old.end_time is not None
    assert (clone.status, clone.claim_id, clone.natural_key, clone.priority) == ("INTAKE_COMPLETED", None, None, 3)
    assert (clone.data, clone.straight_through, clone.status_before_error) == ({"n": 6}, False, None)
    assert await owned(desk, clone.uuid) == ([1, 2], ["mine"])
    assert await owned(desk, uuid) == ([], ["theirs"])
    async with house.db.transaction() as conn:
        assert await remedies.clone_of(conn, TENANT, uuid) == clone.uuid
        assert await remedies.clone_of(conn, TENANT, clone.uuid) is None
    assert [(step.before, step.after, step.made_by) for step in await desk.stages(uuid)][1:] == [
        ("HAS_ERROR", "ABORTED", "rita")
    ]
    assert [(step.before, step.after, step.made_by) for step in await desk.stages(clone.uuid)] == [
        (None, "INTAKE_COMPLETED", "rita")
    ]


async def test_a_clone_is_whole_or_not_at_all(house: House) -> None:
    """BP-25: where one row cannot be taken over, nothing of it has happened, and the message names the table."""
    desk = await desk_of(house)
    uuid = await failed(desk)
    remedy = Remedy(Answer.CLONE, into="INTAKE_COMPLETED")
    with pytest.raises(ProcessDeclarationError, match=r"'shop\.nothing' is not there, or is not guarded"):
        await by_hand(desk, uuid, remedy, entities=(*ENTITIES, "shop.nothing"))
    assert (await desk.get(uuid)).status == "HAS_ERROR"
    assert await owned(desk, uuid) == ([1, 2], ["mine", "theirs"])
    async with house.db.transaction() as conn:
        assert await remedies.clone_of(conn, TENANT, uuid) is None


async def test_of_two_answers_at_one_time_one_counts(house: House) -> None:
    """BP-25. Two people clone and abort at once: one does it, the other is told that there is no error any more."""
    desk = await desk_of(house)
    uuid = await failed(desk)
    asked = [Remedy(Answer.CLONE, into="INTAKE_COMPLETED"), Remedy(Answer.ABORT)] * 2
    results = await asyncio.gather(*(by_hand(desk, uuid, each) for each in asked), return_exceptions=True)
    made = [each for each in results if isinstance(each, Remedied)]
    refused = [each for each in results if isinstance(each, StateError)]
    assert (len(made), len(refused)) == (1, 3)
    assert "is ABORTED and has no error" in str(refused[0])
    async with house.db.transaction() as conn:
        clone = await remedies.clone_of(conn, TENANT, uuid)
    assert clone == (None if made[0].clone is None else made[0].clone.uuid)


async def test_what_has_ended_keeps_its_rows(house: House) -> None:
    """BP-3: after ABORTED no row of an entity of the Transaction changes, and the message says what to do."""
    desk = await desk_of(house)
    uuid = await failed(desk)
    await by_hand(desk, uuid, Remedy(Answer.ABORT))
    with pytest.raises(ConflictError, match="is ABORTED and stays as it is"):
        async with house.db.transaction() as conn:
            await conn.execute("update shop.invoices set transaction_uuid = %(o)s where id = 1", _ids(uuid))


async def test_it_resumes_where_the_process_claims_it(house: House) -> None:
    """BP-26: resume puts it back to where its process claims from, to go on at the task; its rows stay its own."""
    desk = await desk_of(house)
    uuid = await failed(desk)
    made = await by_hand(desk, uuid, Remedy(Answer.RESUME, at="ask"))
    now_ = await desk.get(uuid)
    assert (made.clone, now_.status, now_.skip_until, now_.status_before_error) == (
        None,
        "INTAKE_COMPLETED",
        "ask",
        None,
    )
    assert await owned(desk, uuid) == ([1, 2], ["mine", "theirs"])


async def test_it_is_completed_by_hand_and_marked_so(house: House) -> None:
    """BP-26: completing by hand ends it COMPLETED and marks the row."""
    desk = await desk_of(house)
    uuid = await failed(desk)
    await by_hand(desk, uuid, Remedy(Answer.COMPLETE, data={"settled": "by phone"}))
    made = await desk.get(uuid)
    assert (made.status, made.data, made.straight_through) == ("COMPLETED", {"n": 5, "settled": "by phone"}, False)
    async with house.db.transaction() as conn:
        marked = await (await conn.execute("select by_hand from process_ops.transactions")).fetchall()
    assert marked == [(True,)]


@pytest.mark.parametrize("answer", [Answer.RESUME, Answer.COMPLETE])
async def test_an_answer_that_is_off_is_refused(house: House, answer: Answer) -> None:
    """BP-26: resume and complete by hand are off by default, also for whoever asks for them directly."""
    desk = await desk_of(house, errors=None)
    uuid = await failed(desk)
    with pytest.raises(StateError, match="is not on offer"):
        await by_hand(desk, uuid, Remedy(answer, at="ask"))


async def test_what_cannot_be_answered_is_refused(house: House) -> None:
    """The message names the Transaction, the status or the task, and what there is instead."""
    desk = await desk_of(house)
    uuid = await failed(desk)
    with pytest.raises(NotFoundError, match="There is no Transaction"):
        await by_hand(desk, uuid4(), Remedy(Answer.ABORT))
    with pytest.raises(InputError, match="Nothing can be cloned into it"):
        await by_hand(desk, uuid, Remedy(Answer.CLONE, into="COMPLETED"))
    with pytest.raises(InputError, match="It cannot resume there"):
        await by_hand(desk, uuid, Remedy(Answer.RESUME, at="asks"))
    well = await desk.add(status="INTAKE_COMPLETED")
    with pytest.raises(StateError, match="has no error"):
        await by_hand(desk, well, Remedy(Answer.ABORT))


@pytest.mark.unbalanced("work is not in the ledger")
async def test_the_clone_of_a_child_counts_in_its_place(house: House) -> None:
    """BP-25. The parent at its join waits for the clone, and no more for the child that was aborted."""
    desk = await desk_of(house)
    parent = await desk.add(status="PROCESSING_IN_PROGRESS")
    good = await desk.add(status="PROCESSING_COMPLETED", parent_uuid=parent)
    bad = await failed(desk, parent_uuid=parent)
    made = await by_hand(desk, bad, Remedy(Answer.CLONE, into="INTAKE_COMPLETED"))
    assert made.clone is not None
    async with house.db.transaction() as conn:
        for uuid in (good, made.clone.uuid):
            child = await transactions.get(conn, TENANT, uuid)
            assert child is not None
            await transactions.arrive(conn, child, "join")
        found = await transactions.get(conn, TENANT, parent)
        assert found is not None
        family = await transactions.family(conn, found)
    assert (family.children, family.missing) == (2, 0)
    assert [child.uuid for child in family.arrived] == [good, made.clone.uuid]
