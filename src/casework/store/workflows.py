"""Workflows as applied: immutable numbered bundles, told apart by their hash.

A workflow that was deleted has no latest version until it is published again; the runs that are pinned to an older one
still find it by its number.
"""

from __future__ import annotations

from uuid import UUID

from casework.errors import BlankIdError, FatalError
from casework.store import queries
from casework.store.database import Connection
from casework.values import Plain, clean, plain

__all__ = ["get", "latest", "latest_hash", "names", "publish", "publish_for_session", "remove"]
_SQL = queries.load("workflows")


async def publish(conn: Connection, tenant: str, name: str, bundle: Plain, hash: str) -> int:  # noqa: A002  # its name
    """Write a bundle as the next version and return its number; the latest again is that version.

    An older bundle applied again is a new version with the same content, so that the latest is what was applied last.

    Raises:
        BlankIdError: the name is blank.
        FatalError: the bundle holds text or numbers that a row cannot, and would no longer have its hash.
    """
    if not name.strip():
        raise BlankIdError("workflow name", name)
    if clean(plain(bundle, name)).replaced:
        raise FatalError(
            f"Workflow {name!r} holds NUL, a lone surrogate, NaN or Infinity. Remove it from the manifest."
        )
    params = queries.Writing(tenant=tenant, name=name, hash=hash).json(bundle=bundle)
    await queries.value(conn, _SQL["lock"], params)
    return int(await queries.value(conn, _SQL["publish"], params))


async def publish_for_session(conn: Connection, tenant: str, name: str, bundle: Plain, hash: str, session: UUID) -> int:  # noqa: A002  # its name
    """Write a bundle as a version that one run is pinned to and that no other run gets; returns its number."""
    params = queries.Writing(tenant=tenant, name=name, hash=hash, session=session).json(bundle=bundle)
    await queries.value(conn, _SQL["lock"], params)
    return int(await queries.value(conn, _SQL["publish_for_session"], params))


async def remove(conn: Connection, tenant: str, name: str, by: str) -> bool:
    """Hide a workflow from new starts; whether there was one. Its versions stay, for the runs pinned to them."""
    params = queries.Writing(tenant=tenant, name=name)
    await queries.value(conn, _SQL["lock"], params)
    found = await latest(conn, tenant, name)
    if found is None:
        return False
    await queries.run(conn, _SQL["remove"], queries.Writing(tenant=tenant, name=name, version=found[0], by=by))
    return True


async def latest(conn: Connection, tenant: str, name: str) -> tuple[int, Plain] | None:
    """Number and bundle of what was applied last."""
    found = await queries.dicts(conn, _SQL["latest"], queries.Writing(tenant=tenant, name=name))
    return (found[0]["version"], found[0]["bundle"]) if found else None


async def latest_hash(conn: Connection, tenant: str, name: str) -> tuple[int, str] | None:
    """Number and hash of what was applied last."""
    found = await queries.dicts(conn, _SQL["latest"], queries.Writing(tenant=tenant, name=name))
    return (found[0]["version"], found[0]["hash"]) if found else None


async def get(conn: Connection, tenant: str, name: str, version: int) -> Plain | None:
    """The bundle of a version, or None."""
    return await queries.value(conn, _SQL["get"], queries.Writing(tenant=tenant, name=name, version=version))


async def version_of(conn: Connection, tenant: str, name: str, hash: str) -> int | None:  # noqa: A002  # its name
    """The newest version with this content, also one that nothing new is started of; None where there is none."""
    found = await queries.value(conn, _SQL["version_of"], queries.Writing(tenant=tenant, name=name, hash=hash))
    return None if found is None else int(found)


async def names(conn: Connection, tenant: str) -> dict[str, int]:
    """The latest version of each workflow, by name."""
    return {row["name"]: row["version"] for row in await queries.dicts(conn, _SQL["names"], {"tenant": tenant})}
