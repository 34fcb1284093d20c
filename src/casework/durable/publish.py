"""Publishing what an application runs: each workflow and free tree becomes an immutable version, known by its hash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casework.app import App
from casework.store import resources, workflows
from casework.store.database import Database
from casework.values import content_hash


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


async def displaced(app: App, db: Database, tenant: str = "default") -> list[str]:
    """What was applied, is in force, and will not be once `app` is published, as `AiWorkflow/desk`; call it before.

    Raises:
        ManifestError: as `publish`.
        StoreUnavailableError: the database cannot be reached.
    """
    found: set[str] = set()
    async with db.transaction() as conn:
        applied = await resources.definitions(conn, tenant)
        for name, pinned in app.bundles().items():
            latest = await workflows.latest(conn, tenant, name) if applied else None
            if latest is None:
                continue
            before, after = _parts(latest[1]), _parts(pinned.to_plain())
            for row in applied:
                key, wanted = f"{row.kind}/{row.name}", content_hash(row.manifest)
                if before.get(key) == wanted and after.get(key) != wanted:
                    found.add(key)
    return sorted(found)


def _parts(bundle: Any) -> Mapping[str, str]:
    """The hash of each manifest that a bundle holds; none of a free tree's workflow, which has no manifest."""
    whole = [bundle["workflow"]] if "workflow" in bundle else []
    made = [*whole, *bundle.get("agents", {}).values(), *bundle.get("providers", {}).values()]
    return {f"{one['kind']}/{one['metadata']['name']}": content_hash(one) for one in made}
