"""The rows of Monitors: the flag that stops one, its configuration, and what its rounds came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from casework.process.monitor_settings import VALUES
from casework.store import queries
from casework.store.database import Connection

_SQL = queries.load("monitors")


@dataclass(frozen=True, slots=True)
class MonitorRow:
    """A Monitor; `monitor_id` is the name of its process, loops and last poll are those of its newest life."""

    uuid: UUID
    monitor_id: str
    creation_time: datetime
    completed_loops: int
    last_polling_time: datetime | None
    stopped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRow:
    """A round that polled, or the last one of a life (`stopped` says why). The counts are those of a PollReport."""

    monitor_class: str
    life: UUID
    round: int
    polled: bool
    at: datetime
    claimed: int = 0
    trays: int = 0
    taken_in: int = 0
    repeated: int = 0
    bad: int = 0
    failure: str | None = None
    loop_record: bool = False
    stopped: str | None = None


@dataclass(frozen=True, slots=True)
class RecordRow:
    """What a Monitor emitted: a Transaction, or the loop record of a round (`sys_repeat`)."""

    transaction_uuid: UUID | None
    claim_id: UUID | None
    sys_repeat: bool
    at: datetime


async def ensure(conn: Connection, tenant: str, monitor_id: str, at: datetime) -> None:
    """See that the Monitor has its row."""
    await queries.run(conn, _SQL["ensure"], queries.Writing(tenant=tenant, monitor_id=monitor_id, at=at))


async def get(conn: Connection, tenant: str, monitor_id: str) -> MonitorRow | None:
    """The row of a Monitor."""
    return await queries.one(conn, _SQL["get"], {"tenant": tenant, "monitor_id": monitor_id}, MonitorRow)


async def stopped(conn: Connection, tenant: str, monitor_id: str) -> bool:
    """Whether the flag is set; one without a row is not stopped."""
    return bool(await queries.value(conn, _SQL["stopped"], {"tenant": tenant, "monitor_id": monitor_id}))


async def set_stopped(conn: Connection, tenant: str, monitor_id: str, flag: bool) -> bool:
    """Set or take down the flag; False where the Monitor has no row."""
    params = {"tenant": tenant, "monitor_id": monitor_id, "stopped": int(flag)}
    return await queries.run(conn, _SQL["set_stopped"], params) > 0


async def configuration(conn: Connection, tenant: str, monitor_class: str) -> Mapping[str, Any] | None:
    """What its row of `monitor_configuration` says, column by column, as it stands there."""
    rows = await queries.dicts(conn, _SQL["configuration"], {"tenant": tenant, "monitor_class": monitor_class})
    return rows[0] if rows else None


async def configure(conn: Connection, tenant: str, monitor_class: str, values: Mapping[str, str | int | None]) -> None:
    """Set some columns of its row of `monitor_configuration`; None takes a value back, others stay as they are."""
    params = queries.Writing(
        tenant=tenant,
        monitor_class=monitor_class,
        given=list(values),
        **{name: values.get(name) for name in VALUES},
    )
    await queries.run(conn, _SQL["configure"], params)


async def told(
    conn: Connection, tenant: str, monitor_id: str, *, loops: int, last_poll: datetime | None, row: RoundRow
) -> None:
    """Write what a round came to; the same round again changes nothing. Of loops and polls the newer counts."""
    params = queries.Writing(
        tenant=tenant,
        monitor_id=monitor_id,
        loops=loops,
        last_poll=last_poll,
        **{name: getattr(row, name) for name in RoundRow.__dataclass_fields__},
    )
    await queries.run(conn, _SQL["told"], params)


async def rounds(conn: Connection, tenant: str, monitor_id: str, most: int = 100) -> list[RoundRow]:
    """The newest rounds of a Monitor that polled or were the last."""
    return await queries.many(
        conn, _SQL["rounds"], {"tenant": tenant, "monitor_id": monitor_id, "most": most}, RoundRow
    )


async def records(conn: Connection, tenant: str, monitor_id: str, most: int = 100) -> list[RecordRow]:
    """The newest records that a Monitor emitted."""
    return await queries.many(
        conn, _SQL["records"], {"tenant": tenant, "monitor_id": monitor_id, "most": most}, RecordRow
    )
