"""Publishing what an application runs: each workflow and free tree becomes an immutable version, known by its hash."""

from __future__ import annotations

from casework.app import App
from casework.store import workflows
from casework.store.database import Database


async def publish(app: App, db: Database, tenant: str = "default") -> dict[str, int]:
    """Write what runs can be started of; returns the version of each. The same content is the same version.

    Raises:
        ManifestError: a manifest is refused at admission.
        StoreUnavailableError: the database cannot be reached.
    """
    versions = {}
    async with db.transaction() as conn:
        for name, pinned in sorted(app.bundles().items()):
            versions[name] = await workflows.publish(conn, tenant, name, pinned.to_plain(), pinned.hash())
    return versions
