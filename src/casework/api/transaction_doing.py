"""What the routes of Transactions do: put one in, read one with all that belongs to it, answer for one that failed."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

from casework.api import process_render as render
from casework.api.access import Caller
from casework.api.inputs import check_bounds
from casework.api.process_requests import AddTransaction
from casework.api.services import Services
from casework.durable.answering import answer as answered
from casework.durable.answering import answers_of
from casework.errors import FieldsError, NotFoundError
from casework.process import Transaction
from casework.process.statuses import IN_ERROR
from casework.process.tasks import Remedy
from casework.process.transactions import begin
from casework.process.working import Family
from casework.store.database import Connection
from casework.store.processes import linked_runs, lists, task_errors, task_steps, transactions, waiting_parents
from casework.store.processes.lists import TransactionRow, Wanted
from casework.values import Plain

BELOW = 200
"""Most children, and most clones, in one answer."""


async def add(services: Services, caller: Caller, body: AddTransaction) -> tuple[TransactionRow, bool]:
    """The Transaction of a request, and whether it is new: what came before with its natural key is left as it is.

    Raises:
        FieldsError: a Transaction cannot begin in that status.
        InputError: data or key are too large.
    """
    check_bounds(body.data, "data")
    made = begin(
        services.app.statuses,
        _status(services, body.status),
        uuid=uuid4(),
        at=datetime.now(UTC),
        data=body.data,
        natural_key=body.natural_key,
        tenant=caller.tenant,
        priority=body.priority,
        due_time=body.due_time,
    )
    async with services.db.transaction() as conn:
        new = await transactions.insert(conn, made, "", caller.name, made.start_time, business_key=body.business_key)
        return await _written(conn, made, new=new), new


async def _written(conn: Connection, made: Transaction, *, new: bool) -> TransactionRow:
    if new:
        return await found(conn, made.tenant, made.uuid)
    assert made.natural_key is not None  # a fresh id is never there before
    uuid = await lists.of_natural_key(conn, made.tenant, made.natural_key)
    assert uuid is not None
    return await found(conn, made.tenant, uuid)


def _status(services: Services, asked: str | None) -> str:
    initial = sorted(services.app.statuses.initial)
    if asked is None and len(initial) == 1:
        return initial[0]
    if asked not in initial:
        told = f"a Transaction cannot begin in {asked!r}" if asked else "say in which status it begins"
        message = f"{told}; it can in {', '.join(initial)}"
        raise FieldsError(f"{message[0].upper()}{message[1:]}.", [{"field": "status", "message": message}])
    return asked


async def found(conn: Connection, tenant: str, uuid: UUID) -> TransactionRow:
    """The row of a Transaction.

    Raises:
        NotFoundError: there is none.
    """
    row = await lists.detail(conn, tenant, uuid)
    if row is None:
        raise NotFoundError(f"There is no Transaction {uuid}.")
    return row


async def detail(services: Services, tenant: str, uuid: UUID) -> dict[str, Plain]:
    """`process_shapes.TransactionDetail`.

    Raises:
        NotFoundError: there is no such Transaction.
    """
    async with services.db.transaction() as conn:
        row = await found(conn, tenant, uuid)
        children = await lists.page(conn, Wanted(tenant, parent=uuid), limit=BELOW)
        clones = await lists.page(conn, Wanted(tenant, clone_of=uuid), limit=BELOW)
        waits = await waiting_parents.of(conn, tenant, uuid)
        family = Family(0) if waits is None else await _family(conn, tenant, uuid)
        answers = answers_of(services.app).answers if row.status in IN_ERROR else ()
        return {
            **render.transaction(row),
            "stages": [render.stage(each) for each in await transactions.stages(conn, tenant, uuid)],
            "steps": [render.step(each) for each in await task_steps.of(conn, tenant, uuid)],
            "errors": [render.error(each) for each in await task_errors.of(conn, tenant, uuid)],
            "runs": [render.linked_run(each) for each in await linked_runs.of(conn, tenant, uuid)],
            "children": [render.transaction(each) for each in children.rows],
            "clones": [render.transaction(each) for each in clones.rows],
            "waits": render.join_wait(waits, family),
            "analytics": render.analytics(await lists.analytics(conn, tenant, uuid)),
            "answers": [str(each) for each in answers],
        }


async def _family(conn: Connection, tenant: str, uuid: UUID) -> Family:
    found = await transactions.get(conn, tenant, uuid)
    assert found is not None  # its row was read
    return await transactions.family(conn, found)


async def answer(services: Services, caller: Caller, uuid: UUID, remedy: Remedy) -> dict[str, Plain]:
    """`process_shapes.Answered`.

    Raises:
        NotFoundError: there is no such Transaction.
        StateError: it has no error, or the policy has not this answer.
        InputError: the status to clone into, or the task to go on at, is none that there is.
    """
    check_bounds(dict(remedy.data), "data")
    made = await answered(services.db, services.app, services.runs, caller.tenant, uuid, remedy, caller.name)
    async with services.db.transaction() as conn:
        row = await found(conn, caller.tenant, uuid)
        clone = None if made.clone is None else await found(conn, caller.tenant, made.clone.uuid)
    return {"transaction": render.transaction(row), "clone": None if clone is None else render.transaction(clone)}
