"""Runs as sessions: the views' columns, what they show, whose rows, and that nobody writes through them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from casework.errors import StoreUnavailableError
from casework.projection import ContextEntry, EventEntry, LogEntry, MessageEntry
from casework.store import runs
from casework.store.database import Database
from tests.integration.store.cases import apply, at, decision, execute, fetch, new_run, review, running

COLUMNS = {
    "workflow_sessions": [
        ("session_id", "uuid"),
        ("workflow_name", "text"),
        ("status", "text"),
        ("current_node_id", "text"),
        ("loop_count", "integer"),
        ("context_data", "jsonb"),
        ("created_at", "timestamp with time zone"),
        ("updated_at", "timestamp with time zone"),
    ],
    "session_short_memory": [
        ("id", "bigint"),
        ("session_id", "uuid"),
        ("agent_name", "text"),
        ("role", "text"),
        ("content", "text"),
        ("created_at", "timestamp with time zone"),
    ],
    "workflow_session_logs": [
        ("id", "bigint"),
        ("session_id", "uuid"),
        ("node_id", "text"),
        ("log_level", "text"),
        ("message", "text"),
        ("created_at", "timestamp with time zone"),
    ],
}
SESSION = "select * from agent_ops.workflow_sessions where session_id = %s"
MEMORY = "select * from agent_ops.session_short_memory where session_id = %s order by id"
LOGS = "select * from agent_ops.workflow_session_logs where session_id = %s order by id"


def message(position: int, role: Any, content: str) -> MessageEntry:
    return MessageEntry(f"underwrite.1/exchange.1/m.{position}", position, "underwriter", role, content, at(position))


async def fill(db: Database, run_id: UUID) -> None:
    """Two messages and a note, two logs, two keys of context of which one was written twice."""
    await apply(
        db,
        run_id,
        running(1),
        message(1, "user", "Assess A-1."),
        message(2, "note", "given up"),
        message(3, "assistant", "Refer: é \u2028 'quoted'"),
        LogEntry("underwrite.1", "underwrite", "WARNING", "slow", at(2)),
        LogEntry("", "", "INFO", "begun", at(1)),
        ContextEntry("underwrite.1", "assessment", 1, {"action": "approve"}, at(2)),
        ContextEntry("underwrite.2", "assessment", 2, {"action": "refer"}, at(3)),
        ContextEntry("look.1", "nothing", 1, None, at(3)),
    )


async def status_of(db: Database, run_id: UUID) -> str:
    (row,) = await fetch(db, SESSION, run_id)
    return str(row["status"])


@pytest.mark.parametrize("view", COLUMNS)
async def test_columns_are_exactly_these(db: Database, view: str) -> None:
    """AW-13. Names, order and types of the columns; nothing besides."""
    found = await fetch(
        db,
        "select attname, format_type(atttypid, atttypmod) as type from pg_attribute"
        " where attrelid = %s::regclass and attnum > 0 order by attnum",
        f"agent_ops.{view}",
    )
    assert [(row["attname"], row["type"]) for row in found] == COLUMNS[view]


async def test_a_run_is_seen_as_a_session(db: Database, run_id: UUID) -> None:
    """AW-13. The views show the run's row, its newest context, its messages and its logs."""
    (fresh,) = await fetch(db, SESSION, run_id)
    assert (fresh["status"], fresh["current_node_id"], fresh["context_data"]) == ("PENDING", None, {})
    await fill(db, run_id)
    (row,) = await fetch(db, SESSION, run_id)
    (truth,) = await fetch(db, "select * from agent_ops.agent_runs where run_id = %s", run_id)
    assert row["workflow_name"] == "loan-underwriting"
    assert (row["status"], row["current_node_id"], row["loop_count"]) == ("RUNNING", "underwrite", 1)
    assert row["context_data"] == {"assessment": {"action": "refer"}, "nothing": None}
    assert (row["created_at"], row["updated_at"]) == (truth["created_at"], truth["updated_at"])
    said = [(line["agent_name"], line["role"], line["content"]) for line in await fetch(db, MEMORY, run_id)]
    assert said == [
        ("underwriter", "user", "Assess A-1."),
        ("underwriter", "assistant", "Refer: é \u2028 'quoted'"),
    ]
    logs = [(line["node_id"], line["log_level"], line["message"]) for line in await fetch(db, LOGS, run_id)]
    assert logs == [("underwrite", "WARNING", "slow"), (None, "INFO", "begun")]


async def test_ids_stay_as_the_run_goes_on(db: Database, run_id: UUID) -> None:
    """AW-13. A message and a log keep their numbers when they are written again and when more is written."""
    await fill(db, run_id)
    before = (
        [row["id"] for row in await fetch(db, MEMORY, run_id)],
        [row["id"] for row in await fetch(db, LOGS, run_id)],
    )
    await fill(db, run_id)
    await apply(db, run_id, message(4, "user", "And now?"), LogEntry("x.1", "x", "DEBUG", "more", at(9)))
    after = [row["id"] for row in await fetch(db, MEMORY, run_id)], [row["id"] for row in await fetch(db, LOGS, run_id)]
    assert (after[0][:-1], after[1][:-1]) == before
    assert all(isinstance(number, int) for number in (*after[0], *after[1]))


async def test_logs_tell_what_the_run_did(db: Database, run_id: UUID) -> None:
    """AW-13. Each event of the run is a line, in the order of ids, with the level of what it means."""
    await apply(
        db,
        run_id,
        EventEntry("", "agent.run_started", at(1), {"workflow": "loan-underwriting"}),
        EventEntry("underwrite.1", "agent.node_started", at(2), {"node": "underwrite"}),
        LogEntry("underwrite.1", "underwrite", "WARNING", "slow", at(3)),
        EventEntry("underwrite.1/exchange.1/model.1", "attempt_lost:1", at(4), {"attempt": 1, "reason": "gone"}),
        EventEntry("underwrite.1", "context_stale:a_key:2", at(4)),
        EventEntry("underwrite.1", "agent.node_failed", at(5), {"node": "underwrite", "error": "it broke"}),
        EventEntry("call.1", "agent.sub_run_ended", at(6), {"run_id": "r-2", "status": "FAILED"}),
        EventEntry("", "agent.run_failed", at(7), {"outcome": None, "failure": "it broke"}),
    )
    rows = await fetch(db, LOGS, run_id)
    assert [(row["node_id"], row["log_level"], row["message"]) for row in rows] == [
        (None, "INFO", "run started: workflow loan-underwriting"),
        ("underwrite", "INFO", "node started"),
        ("underwrite", "WARNING", "slow"),
        ("underwrite", "WARNING", "attempt lost: reason gone, attempt 1"),
        ("underwrite", "WARNING", "context stale"),
        ("underwrite", "ERROR", "node failed: error it broke"),
        ("call", "ERROR", "sub run ended: run id r-2, status FAILED"),
        (None, "ERROR", "run failed: failure it broke"),
    ]
    assert len({row["id"] for row in rows}) == len(rows)
    assert [row["created_at"] for row in rows][:2] == [datetime.fromisoformat(at(1)), datetime.fromisoformat(at(2))]


@pytest.mark.parametrize(
    ("status", "changes", "shown"),
    [
        ("RUNNING", {}, "RUNNING"),
        ("AWAITING_REVIEW", {}, "WAITING_APPROVAL"),
        ("COMPLETED", {}, "COMPLETED"),
        ("FAILED", {"failure": "loop limit"}, "FAILED"),
        ("CANCELLED", {"failure": "by ada"}, "CANCELLED"),
    ],
)
async def test_status_as_session(db: Database, run_id: UUID, status: str, changes: dict[str, Any], shown: str) -> None:
    """AW-13. Each status of a run in the words of sessions."""
    ended = {"at": at(30)} if status in ("COMPLETED", "FAILED", "CANCELLED") else {}
    await apply(db, run_id, running(1), running(2, status=status, **changes, **ended))
    assert await status_of(db, run_id) == shown


@pytest.mark.parametrize(
    ("command", "outcome", "shown"),
    [("approve", "approved", "COMPLETED"), ("reject", "declined", "REJECTED")],
)
async def test_a_no_is_rejected(db: Database, run_id: UUID, command: str, outcome: str, shown: str) -> None:
    """AW-13. A run that a person's `reject` ended is REJECTED; an ignored one rejects nothing."""
    late = decision(run_id, decision_id="d-2", command="reject", accepted=False, ignored="late", outcome=None)
    await apply(db, run_id, running(1), review(run_id), decision(run_id, command=command, outcome=outcome), late)
    await apply(db, run_id, running(2, status="COMPLETED", outcome=outcome, at=at(30)))
    assert await status_of(db, run_id) == shown


async def test_deleting_a_run_takes_its_session_with_messages_and_logs(
    db: Database, database_dsn: str, run_id: UUID
) -> None:
    """AW-13. Retention deletes the run, and nothing of the session is left; another session stays whole."""
    other = uuid4()
    async with db.transaction() as conn:
        await runs.create_pending(conn, new_run(other))
    for one in (run_id, other):
        await fill(db, one)
    await apply(db, run_id, running(2, status="CANCELLED", failure="by ada", at=at(30)))
    async with await Database.open(database_dsn, role="casework_retention") as retention:
        assert await execute(retention, "delete from agent_ops.agent_runs where run_id = %s", run_id) == 1
    assert [len(await fetch(db, view, run_id)) for view in (SESSION, MEMORY, LOGS)] == [0, 0, 0]
    assert [len(await fetch(db, view, other)) for view in (SESSION, MEMORY, LOGS)] == [1, 2, 2]


async def test_one_tenant_is_seen_at_a_time(db: Database) -> None:
    """The same id in two tenants is two sessions; a reader sees those of the tenant it names, else of `default`."""
    shared = uuid4()
    async with db.transaction() as conn:
        for tenant, name in (("default", "ours"), ("other", "theirs")):
            await runs.create_pending(conn, new_run(shared, tenant=tenant, workflow_name=name))
    assert [row["workflow_name"] for row in await fetch(db, SESSION, shared)] == ["ours"]
    async with db.transaction() as conn:
        await conn.execute("select set_config('casework.tenant', 'other', true)")
        rows = await (await conn.execute("select workflow_name from agent_ops.workflow_sessions")).fetchall()
    assert rows == [("theirs",)]
    assert [row["workflow_name"] for row in await fetch(db, SESSION, shared)] == ["ours"], "a name left empty is none"


@pytest.mark.parametrize("view", COLUMNS)
async def test_nobody_writes_through_a_view(db: Database, database_dsn: str, run_id: UUID, view: str) -> None:
    """AW-13. Read only for the runtime; not even readable for the roles that have no business there."""
    for statement in (
        f"insert into agent_ops.{view} (session_id) values ('{run_id}')",
        f"update agent_ops.{view} set session_id = session_id",
        f"delete from agent_ops.{view}",
    ):
        with pytest.raises(StoreUnavailableError, match=r"lacks a right|not automatically updatable"):
            await execute(db, statement)
    for role in ("casework_retention", "casework_policy_owner"):
        async with await Database.open(database_dsn, role=role) as opened:
            with pytest.raises(StoreUnavailableError, match="lacks a right"):
                await fetch(opened, f"select * from agent_ops.{view}")
