"""Transactions whose rows can be broken past every guard, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from casework.process import Answer
from casework.store.database import Connection, Database
from casework.store.processes import monitors
from tests.integration.store.processes.histories import watched
from tests.integration.store.processes.making import TENANT
from tests.integration.store.processes.playing import DONE, Play


@dataclass
class _Kept:
    ids: dict[str, UUID] = field(default_factory=dict)

    def keep(self, name: str, uuid: UUID, claim_id: UUID | None = None) -> None:
        self.ids[name] = uuid
        if claim_id is not None:
            self.ids[f"{name}_claim"] = claim_id


async def played(db: Database) -> dict[str, UUID]:
    """Transactions of every sort, whose books balance; ids of some and of their claims by name, and of a Monitor."""
    play, made = Play(db), _Kept()
    one = await play.taken(natural_key="mail-1")
    made.keep("done", one.uuid)
    await play.complete(await play.work(one))
    one = await play.taken()
    made.keep("aborted", one.uuid, one.claim_id)
    await play.fail(one)
    (one,) = await play.claim(1, "errors")
    await play.answer(one, Answer.ABORT)
    one = await play.taken()
    made.keep("by_hand", one.uuid)
    await play.by_hand(await play.fail(one), Answer.COMPLETE)
    one = await play.taken()
    made.keep("replaced", one.uuid)
    clone = (await play.by_hand(await play.fail(one), Answer.CLONE, into=DONE)).clone
    assert clone is not None
    made.keep("clone", clone.uuid)
    parent = await play.taken()
    made.keep("parent", parent.uuid)
    arrived, away = await play.split(parent)
    await play.arrive(arrived)
    made.keep("arrived", arrived.uuid)
    made.keep("away", away.uuid)
    joined = await play.taken()
    made.keep("joined", joined.uuid)
    (came,) = await play.split(joined, 1)
    await play.arrive(came)
    made.keep("came", came.uuid)
    await play.arrive(joined)
    one = await play.taken()
    made.keep("moved", one.uuid)
    await play.work(one, to=DONE)
    one = await play.taken()
    made.keep("working", one.uuid, one.claim_id)
    await play.begin(one)
    await play.work(one, "pay")
    for _ in range(2):
        await play.born()
    first, _ = await play.claim()
    made.keep("pair", first.uuid, first.claim_id)
    one = await play.taken()
    made.keep("failed", one.uuid)
    await play.fail(one)
    await watched(play)
    one = await play.born(natural_key="mail-2")
    made.keep("waiting", one.uuid)
    async with db.transaction() as conn:
        seen = await monitors.get(conn, TENANT, "processing")
    assert seen is not None
    made.keep("monitor", seen.uuid)
    return made.ids


TABLES = (
    "transactions",
    "transaction_claims",
    "transaction_stages",
    "transaction_steps",
    "transaction_errors",
    "transaction_arrivals",
    "transaction_runs",
    "transaction_analytics",
    "monitor",
    "monitor_rounds",
)
COLUMNS = """
select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
where attrelid = %s::regclass and attnum > 0 and not attisdropped and attidentity = '' and attname <> 'tenant'
"""


async def copy(db: Database, tenant: str) -> None:
    """All rows once more, in another tenant: the same ids mean other Transactions there."""
    async with db.transaction() as conn:
        await _past_guards(conn)
        for name in TABLES:
            table = f"process_ops.{name}"
            found = await (await conn.execute(COLUMNS, [table])).fetchone()
            assert found is not None
            order = "order by id" if name in ("transactions", "transaction_stages") else ""
            statement = f"insert into {table} (tenant, {found[0]}) select %s, {found[0]} from {table} {order}"
            await conn.execute(statement.encode(), [tenant])


async def break_(conn: Connection, statements: tuple[str, ...], ids: Mapping[str, UUID], tenant: str = TENANT) -> None:
    """As the owner, past every guard: what no writer of the product may do, to rows of one tenant.

    New rows (`values`) are of the default one.
    """
    await _past_guards(conn)
    for statement in statements:
        whose = f" and tenant = '{tenant}'" if " where " in statement else ""
        cursor = await conn.execute(f"{statement}{whose}".encode(), ids)
        assert cursor.rowcount in (1, -1), statement  # one row, or a definition


async def _past_guards(conn: Connection) -> None:
    await conn.execute("set local role none")
    await conn.execute("set local session_replication_role = replica")
