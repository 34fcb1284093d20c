"""Applied resources and deleted workflows: generations, versions, and what stays for the runs that are pinned."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from casework.errors import ConflictError
from casework.store import resources, workflows
from casework.store.database import Database
from casework.values import Plain, content_hash

AGENT: Plain = {"kind": "AiAgent", "spec": {"provider": "p"}}


def new(name: str = "writer", manifest: Plain = AGENT, kind: str = "AiAgent") -> resources.NewResource:
    assert isinstance(manifest, dict)
    return resources.NewResource("default", kind, name, content_hash(manifest), manifest, "ada")


async def test_generations_are_numbered_and_immutable(db: Database, admin_db: Database) -> None:
    """AW-2. The same content is the same generation; a change is the next; neither can be rewritten."""
    async with db.transaction() as conn:
        first, created = await resources.add(conn, new())
        again, unchanged = await resources.add(conn, new())
        second, configured = await resources.add(conn, new(manifest={"kind": "AiAgent", "spec": {"provider": "q"}}))
    assert (created, unchanged, configured) == ("created", "unchanged", "configured")
    assert (first.generation, again.generation, second.generation) == (1, 1, 2)
    with pytest.raises(ConflictError, match="resource_versions_immutable"):
        async with admin_db.transaction() as conn:
            await conn.execute("update agent_ops.resource_versions set manifest = '{}'")


async def test_a_deleted_resource_is_gone_and_its_number_is_not_used_again(db: Database) -> None:
    """AW-2."""
    async with db.transaction() as conn:
        await resources.add(conn, new())
        assert await resources.remove(conn, "default", "AiAgent", "writer", "bob")
        assert not await resources.remove(conn, "default", "AiAgent", "writer", "bob")
        assert await resources.current(conn, "default", "AiAgent", "writer") is None
        assert await resources.page(conn, "default", None, ("", ""), 10) == ([], False)
        row, outcome = await resources.add(conn, new())
        assert (row.generation, outcome) == (3, "created")
        shown = await resources.generations(conn, "default", "AiAgent", "writer")
    assert [(each.generation, each.manifest is None, each.applied_by) for each in shown] == [
        (3, False, "ada"), (2, True, "bob"), (1, False, "ada")]  # fmt: skip


async def test_pages_go_by_kind_and_name(db: Database) -> None:
    """Other tenants' resources are not seen; a page goes on after the last row."""
    async with db.transaction() as conn:
        for name in ("b", "a", "c"):
            await resources.add(conn, new(name))
        await resources.add(conn, new("s", {"kind": "WorkflowSession"}, "WorkflowSession"))
        rows, more = await resources.page(conn, "default", None, ("", ""), 2)
        assert ([row.name for row in rows], more) == (["a", "b"], True)
        rows, more = await resources.page(conn, "default", None, ("AiAgent", "b"), 2)
        assert ([row.name for row in rows], more) == (["c", "s"], False)
        assert [row.name for row in await resources.definitions(conn, "default")] == ["a", "b", "c"]
        assert await resources.page(conn, "other", None, ("", ""), 2) == ([], False)


async def test_appliers_at_one_time_make_no_two_rows_of_one_number(db: Database) -> None:
    """AW-2. Ten at once: ten generations, or one where the content is the same."""

    async def apply(number: int) -> int:
        async with db.transaction() as conn:
            await resources.lock(conn, "default")
            row, _ = await resources.add(conn, new(manifest={"number": number % 5}))
            return row.generation

    found = await asyncio.gather(*(apply(number) for number in range(5)))
    assert sorted(found) == [1, 2, 3, 4, 5]


async def test_a_deleted_workflow_is_hidden_and_its_versions_stay(db: Database) -> None:
    """AW-2. A run that is pinned finds its version; publishing again, even the same, shows it as a new version."""
    async with db.transaction() as conn:
        assert await workflows.publish(conn, "default", "loan", {"a": 1}, "h1") == 1
        assert await workflows.remove(conn, "default", "loan", "ada")
        assert not await workflows.remove(conn, "default", "loan", "ada")
        assert await workflows.latest(conn, "default", "loan") is None
        assert await workflows.names(conn, "default") == {}
        assert await workflows.get(conn, "default", "loan", 1) == {"a": 1}
        assert await workflows.publish(conn, "default", "loan", {"a": 1}, "h1") == 2
        assert await workflows.latest(conn, "default", "loan") == (2, {"a": 1})
        assert await workflows.names(conn, "default") == {"loan": 2}


async def test_a_sessions_own_version_is_nobodys_newest(db: Database) -> None:
    """AW-2. A run may be pinned to it by its number; the next version is counted after it."""
    async with db.transaction() as conn:
        await workflows.publish(conn, "default", "loan", {"a": 1}, "h1")
        assert await workflows.publish_for_session(conn, "default", "loan", {"a": 9}, "h9", uuid4()) == 2
        assert await workflows.latest_hash(conn, "default", "loan") == (1, "h1")
        assert await workflows.get(conn, "default", "loan", 2) == {"a": 9}
        assert await workflows.publish(conn, "default", "loan", {"a": 1}, "h1") == 1
        assert await workflows.publish(conn, "default", "loan", {"a": 2}, "h2") == 3
