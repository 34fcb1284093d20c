"""What the local stack does between its servers and its services: tables, workflows, the local token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from casework.children.files import write_private
from casework.settings import Settings

if TYPE_CHECKING:
    from casework.app import App
    from casework.store.database import Database

PRINCIPAL = "local"
TENANT = "default"
ROLES = ("admin", "metrics", "operator", "reviewer", "viewer")
HEALTH_TIMEOUT_S = 2.0


def load(settings: Settings) -> App:
    """The settings' application.

    Raises:
        InputError: it cannot be found or is none.
    """
    from casework.app import load_app

    return load_app(settings.app.reference)


async def prepare(app: App, settings: Settings, tables: Sequence[Path] = ()) -> tuple[str, list[str]]:
    """Migrate, with `tables` of the project's own, publish the application's workflows and see to the local token.

    Returns the token, and what was applied and is no longer in force, as `AiWorkflow/desk`.

    Raises:
        CaseworkError: a migration, a free tree or one of the manifests is refused, or the database is away.
    """
    from casework.durable.publish import displaced, publish
    from casework.store.database import Database
    from casework.store.migrate import migrate, with_own

    for tree in app.trees:
        tree.place()  # else every worker would say so, and be started again
    await migrate(settings.database.owner_dsn(), migrations=with_own(tables))
    async with await Database.open(settings.database.runtime_dsn(), max_size=2, name="casework-dev") as db:
        lost = await displaced(app, db)
        await publish(app, db)
    async with await Database.open(settings.database.owner_dsn(), role=None, max_size=1, name="casework-dev") as db:
        return await _local_token(db, settings.app.home / "token"), lost


async def declare_schedules(app: App, settings: Settings) -> list[str]:
    """See that processes have the schedules that they declare; a sentence for each that has changed, or was kept.

    Raises:
        InputError: the engine refuses one, for a zone that it does not know for example.
        UnreachableError: the engine cannot be reached.
    """
    from casework.durable.client import RunClient
    from casework.durable.process_client import ProcessClient

    declared = {name: line.process.schedule for name, line in app.lines().items() if line.process.schedule is not None}
    if not declared:
        return []
    client = ProcessClient(await RunClient.open(settings), settings.histories)
    told = {
        "scheduled": "Process {0} is scheduled as it declares.",
        "kept": "The schedule of process {0} is kept as an operator set it; `casework process schedule {0} --declared` "
        "takes what it declares.",
    }
    states = {name: await client.declare(TENANT, name, wanted) for name, wanted in declared.items()}
    return [told[state].format(name) for name, state in states.items() if state in told]


async def is_healthy(url: str) -> bool:
    """Whether the API at `url` says that it lives."""
    import httpx2

    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=HEALTH_TIMEOUT_S) as client:
            return (await client.get(f"{url}/healthz")).status_code == 200
    except httpx2.HTTPError:
        return False


async def _local_token(db: Database, path: Path) -> str:
    """The token in the file while the database knows it, else a new one for the principal `local`."""
    from casework.store import tokens

    kept = _read(path)
    async with db.transaction() as conn:
        if kept and await tokens.find(conn, kept):
            return kept
        made = await tokens.create(conn, PRINCIPAL, TENANT, list(ROLES))
    write_private(path, made + "\n")
    return made


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
