"""Manifests as applied: numbered generations of each resource; a deletion is a generation without manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from casework.store import queries
from casework.store.database import Connection
from casework.values import Plain

_SQL = queries.load("resources")
Outcome = Literal["created", "configured", "unchanged"]
SHOWN_GENERATIONS = 20
"""How many generations are read of one resource, the newest first."""
_ALL = 100_000


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """A generation of a resource. `manifest` None: deleted. `run_id` is that of a WorkflowSession."""

    kind: str
    name: str
    generation: int
    hash: str
    manifest: Plain
    applied_by: str
    run_id: UUID | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewResource:
    """A manifest that was admitted. `hash` is that of its content."""

    tenant: str
    kind: str
    name: str
    hash: str
    manifest: Mapping[str, Plain] | None
    by: str
    run_id: UUID | None = None


async def lock(conn: Connection, tenant: str) -> None:
    """Let no other apply or delete in this tenant until the transaction ends."""
    await queries.value(conn, _SQL["lock"], {"tenant": tenant})


async def add(conn: Connection, new: NewResource) -> tuple[ResourceRow, Outcome]:
    """Write the next generation, unless the newest has this content. Call `lock` before."""
    known = await current(conn, new.tenant, new.kind, new.name)
    if known is not None and known.hash == new.hash:
        return known, "unchanged"
    return await _add(conn, new), "configured" if known else "created"


async def remove(conn: Connection, tenant: str, kind: str, name: str, by: str) -> bool:
    """Write the generation that says it is deleted; whether there was such a resource. Call `lock` before."""
    if await current(conn, tenant, kind, name) is None:
        return False
    await _add(conn, NewResource(tenant, kind, name, "", None, by))
    return True


async def _add(conn: Connection, new: NewResource) -> ResourceRow:
    params = queries.Writing(
        tenant=new.tenant, kind=new.kind, name=new.name, hash=new.hash, by=new.by, run_id=new.run_id
    ).json(manifest=None if new.manifest is None else dict(new.manifest))
    made = await queries.one(conn, _SQL["add"], params, ResourceRow)
    assert made is not None, "an insert returns its row"
    return made


async def generations(
    conn: Connection, tenant: str, kind: str, name: str, limit: int = SHOWN_GENERATIONS
) -> list[ResourceRow]:
    """The generations of a resource, the newest first, deletions included."""
    params = queries.Writing(tenant=tenant, kind=kind, name=name, limit=limit)
    return await queries.many(conn, _SQL["generations"], params, ResourceRow)


async def current(conn: Connection, tenant: str, kind: str, name: str) -> ResourceRow | None:
    """The newest generation of a resource; None where there is none or it is deleted."""
    found = await generations(conn, tenant, kind, name, limit=1)
    return found[0] if found and found[0].manifest is not None else None


async def last_generation(conn: Connection, tenant: str, kind: str, name: str) -> int:
    """The number of the newest generation, deletions included; 0 where there is none."""
    found = await generations(conn, tenant, kind, name, limit=1)
    return found[0].generation if found else 0


async def page(
    conn: Connection, tenant: str, kind: str | None, after: tuple[str, str], limit: int
) -> tuple[list[ResourceRow], bool]:
    """Resources that are there, by kind and name, after one of them; whether there are more."""
    rows = await _page(conn, tenant, kind, after, limit + 1, definitions=False)
    return rows[:limit], len(rows) > limit


async def definitions(conn: Connection, tenant: str) -> list[ResourceRow]:
    """All that are there but sessions: what is admitted together."""
    return await _page(conn, tenant, None, ("", ""), _ALL, definitions=True)


async def _page(
    conn: Connection, tenant: str, kind: str | None, after: tuple[str, str], limit: int, *, definitions: bool
) -> list[ResourceRow]:
    params = queries.Writing(
        tenant=tenant, kind=kind, after_kind=after[0], after_name=after[1], limit=limit, definitions=definitions
    )
    return await queries.many(conn, _SQL["page"], params, ResourceRow)
