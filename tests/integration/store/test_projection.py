"""Outbox entries on their way into rows: in order, twice, late, wrong."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from casework import ids
from casework.errors import ConflictError, FatalError
from casework.projection import ContextEntry, Entry, LogEntry, MessageEntry, StepEntry, to_plain
from casework.store import events, messages, projection, runs
from casework.store.database import Database
from casework.store.results import NOOP, STALE, WRITTEN
from casework.store.rows import RunRow
from tests.integration.store.cases import (
    PATH,
    TENANT,
    apply,
    at,
    claim,
    decision,
    event,
    fetch,
    review,
    running,
    tool_claim,
)


async def get(db: Database, run_id: UUID) -> RunRow:
    async with db.transaction() as conn:
        found = await runs.get(conn, TENANT, run_id)
    assert found is not None
    return found


async def seqs(db: Database) -> list[tuple[int, str]]:
    rows = await fetch(db, "select seq, kind from agent_ops.agent_events order by seq")
    return [(row["seq"], row["kind"]) for row in rows]


async def test_run_entry_is_the_row_as_a_whole(db: Database, run_id: UUID) -> None:
    """DA-25. A higher version is written whole; start and end are taken from the entries' times."""
    await apply(db, run_id, running(1, recommendation={"action": "refer", "ratio": Decimal("37.90")}))
    row = await get(db, run_id)
    assert (row.status, row.version, row.turn, row.current_node, row.loop_count) == ("RUNNING", 1, 1, "underwrite", 1)
    assert row.recommendation == {"action": "refer", "ratio": Decimal("37.90")}
    assert str(row.recommendation["ratio"]) == "37.90"
    await apply(db, run_id, running(2, status="FAILED", failure="loop limit 50 reached"))
    row = await get(db, run_id)
    assert row.started_at is not None
    assert row.ended_at is not None
    assert (row.started_at.isoformat(), row.ended_at.isoformat()) == (at(1)[:19] + "+00:00", at(2)[:19] + "+00:00")
    assert (row.failure, row.recommendation) == ("loop limit 50 reached", None)


async def test_run_entry_again_is_a_noop(db: Database, run_id: UUID) -> None:
    """DA-25. Zero rows, read back equal: expected; the same version with another content is a conflict."""
    assert await apply(db, run_id, running(1)) == [WRITTEN]
    assert await apply(db, run_id, running(1)) == [NOOP]
    with pytest.raises(ConflictError, match="version 1 holds something else"):
        await apply(db, run_id, running(1, status="AWAITING_REVIEW"))


async def test_older_run_entry_is_stale_and_recorded(db: Database, run_id: UUID) -> None:
    """DA-25. A lower version is not written, and an event says that it came, once."""
    await apply(db, run_id, running(5))
    assert await apply(db, run_id, running(3)) == [STALE]
    assert await apply(db, run_id, running(3)) == [STALE]
    assert await seqs(db) == [(1, "run_stale:3")]
    assert (await get(db, run_id)).version == 5


async def test_repeated_parcel_is_not_stale(db: Database, run_id: UUID) -> None:
    """DA-26. A parcel with several run entries applied again changes nothing and records nothing."""
    parcel: list[Entry] = [running(1), event("agent.started", ""), running(2, turn=2)]
    assert await apply(db, run_id, *parcel) == [WRITTEN] * 3
    assert await apply(db, run_id, *parcel) == [NOOP] * 3
    assert await seqs(db) == [(1, "agent.started")]


async def test_ended_run_takes_no_entry_back(db: Database, run_id: UUID) -> None:
    """DA-25. Over a terminal row every run entry is a no-op, be its version higher or lower."""
    await apply(db, run_id, running(4, status="CANCELLED"))
    assert await apply(db, run_id, running(9)) == [NOOP]
    assert await apply(db, run_id, running(2)) == [NOOP]
    row = await get(db, run_id)
    assert (row.status, row.version) == ("CANCELLED", 4)


async def test_failed_without_words_still_says_something(db: Database, run_id: UUID) -> None:
    """DA-19. A FAILED run always has a reason."""
    await apply(db, run_id, running(1, status="FAILED"))
    assert (await get(db, run_id)).failure == "no reason was given"


async def test_outcome_without_decision_is_a_conflict_and_nothing_of_the_parcel_stays(
    db: Database, run_id: UUID
) -> None:
    """DA-12. The projection too is refused by the database, whatever the workflow says."""
    with pytest.raises(ConflictError, match="no person's accepted decision"):
        await apply(db, run_id, event("agent.ended"), running(1, status="COMPLETED", outcome="approved"))
    assert await seqs(db) == []
    assert (await get(db, run_id)).status == "PENDING"


async def test_whole_case_in_one_parcel(db: Database, run_id: UUID) -> None:
    """DA-33. DA-36. Review, wait, decision, outcome: the rows in the order in which they were told."""
    waiting: list[Entry] = [
        running(1),
        review(run_id),
        event("agent.review_pending", "decision.1"),
        running(2, status="AWAITING_REVIEW"),
    ]
    answered: list[Entry] = [
        StepEntry("decision.1", "decision", "decision", "COMPLETED", at(20), {"command": "approve"}),
        decision(run_id),
        running(3, status="COMPLETED", outcome="approved", at=at(21)),
    ]
    assert await apply(db, run_id, *waiting, *answered) == [WRITTEN] * 7
    assert await apply(db, run_id, *waiting, *answered) == [NOOP] * 7
    row = await get(db, run_id)
    assert (row.status, row.outcome) == ("COMPLETED", "approved")


async def test_event_again_takes_no_number(db: Database, run_id: UUID) -> None:
    """DA-28. `seq` has no holes: a repeat is a no-op and burns none."""
    for kind in ("a", "b", "a", "b", "c"):
        await apply(db, run_id, event(kind))
    assert await seqs(db) == [(1, "a"), (2, "b"), (3, "c")]


async def test_reader_that_resumes_after_seq_misses_nothing(db: Database, run_id: UUID) -> None:
    """DA-28. With many writers at once, a reader that goes on from its last `seq` sees every event, in order."""
    writers = asyncio.gather(*(apply(db, run_id, event(f"k{n}-{m}")) for n in range(10) for m in range(4)))
    seen: list[int] = []
    while len(seen) < 40:
        async with db.transaction() as conn:
            seen += [row.seq for row in await runs.events(conn, TENANT, run_id, seen[-1] if seen else 0, 7)]
        if writers.done():
            await writers
    await writers
    assert seen == list(range(1, 41))


async def test_event_is_announced(db: Database, run_id: UUID, database_dsn: str) -> None:
    """Each event written wakes the listeners with the run's id; a repeat wakes nobody."""
    async with await psycopg.AsyncConnection.connect(database_dsn, autocommit=True) as conn:
        await conn.execute(f"listen {events.CHANNEL}".encode())
        await apply(db, run_id, event("a"))
        await apply(db, run_id, event("a"))
        await apply(db, run_id, event("b"))
        heard = [note.payload async for note in conn.notifies(timeout=10, stop_after=2)]
        assert heard == [str(run_id)] * 2
        assert [note async for note in conn.notifies(timeout=0)] == []


async def test_message_entry_and_note(db: Database, run_id: UUID) -> None:
    """DA-28. A message is written once at its position, a note fills only an empty one, another is a conflict."""
    said = MessageEntry(PATH, 1, "underwriter", "user", "Please look again.", at(1))
    note = MessageEntry(PATH, 1, "underwriter", "note", "the call failed", at(2))
    assert await apply(db, run_id, said) == [WRITTEN]
    assert await apply(db, run_id, said, note) == [NOOP, NOOP]
    with pytest.raises(ConflictError, match="Position 1"):
        await apply(db, run_id, MessageEntry(PATH, 1, "underwriter", "user", "Something else.", at(1)))
    with pytest.raises(ConflictError, match="Position 1"):
        await apply(db, run_id, MessageEntry("other.1", 1, "underwriter", "user", "Please look again.", at(1)))


async def test_told_failure_gives_way_to_the_steps_own_message(db: Database, run_id: UUID) -> None:
    """DA-25. The run gave up a step that was committed after all: the result's message is what the model reads."""
    fields: dict[str, Any] = {"path": PATH, "position": 1, "agent": "underwriter"}
    async with db.transaction() as conn:
        await messages.write(conn, TENANT, run_id, **fields, role="tool", content='{"score":665}', tool="credit_check")
    told = MessageEntry(**fields, role="tool", content='{"error":"given up"}', at=at(3), tool="credit_check")
    assert await apply(db, run_id, told) == [NOOP]
    assert (await fetch(db, "select content from agent_ops.agent_messages")) == [{"content": '{"score":665}'}]
    with pytest.raises(ConflictError, match="Position 1"):
        await apply(db, run_id, MessageEntry(**{**fields, "path": "other.1"}, role="tool", content="x", at=at(3)))


async def test_context_keeps_one_row_per_output(db: Database, run_id: UUID) -> None:
    """DA-29. One row per visit and key; the highest version of a key counts; the same again is a no-op."""
    first = ContextEntry("underwrite.1", "memo", 1, {"n": Decimal("1.10")}, at(1))
    second = ContextEntry("underwrite.2", "memo", 2, {"n": 2}, at(2))
    assert await apply(db, run_id, first, second, first) == [WRITTEN, WRITTEN, NOOP]
    async with db.transaction() as conn:
        latest = await runs.context(conn, TENANT, run_id)
    assert [(row.key, row.path, row.value) for row in latest] == [("memo", "underwrite.2", {"n": 2})]
    assert len(await fetch(db, "select 1 from agent_ops.agent_context")) == 2
    with pytest.raises(ConflictError, match="context 'memo'"):
        await apply(db, run_id, ContextEntry("underwrite.1", "memo", 1, {"n": 9}, at(1)))


async def test_context_older_than_its_row_is_stale(db: Database, run_id: UUID) -> None:
    """DA-25. At one path and key a higher version takes the row, a lower one is recorded and not written."""
    await apply(db, run_id, ContextEntry("a.1", "k", 2, "new", at(1)))
    assert await apply(db, run_id, ContextEntry("a.1", "k", 1, "old", at(1))) == [STALE]
    assert await apply(db, run_id, ContextEntry("a.1", "k", 3, "newer", at(1))) == [WRITTEN]
    assert await seqs(db) == [(1, "context_stale:k:1")]


async def test_log_line_is_written_once(db: Database, run_id: UUID) -> None:
    """DA-29. A line applied twice is one row; the same words at another moment are another."""
    line = LogEntry("underwrite.1", "underwrite", "WARNING", "asked for an unknown tool", at(1))
    later = LogEntry("underwrite.1", "underwrite", "WARNING", "asked for an unknown tool", at(2))
    assert await apply(db, run_id, line, line, later) == [WRITTEN, NOOP, WRITTEN]
    async with db.transaction() as conn:
        assert [row.level for row in await runs.logs(conn, TENANT, run_id)] == ["WARNING"] * 2


async def test_end_closes_what_is_open(db: Database, run_id: UUID) -> None:
    """DA-29. A run that ends leaves no pending review and no step in flight."""
    await claim(db, tool_claim(run_id))
    await apply(db, run_id, running(1), review(run_id))
    await apply(db, run_id, running(2, status="CANCELLED"))
    rows = await fetch(db, "select status, ended_at is not null as ended from agent_ops.agent_reviews")
    assert rows == [{"status": "closed", "ended": True}]
    assert (await fetch(db, "select state, error from agent_ops.agent_steps"))[0] == {
        "state": "FAILED",
        "error": "the run ended CANCELLED",
    }
    assert (await fetch(db, "select outcome from agent_ops.agent_step_attempts"))[0] == {"outcome": "LOST"}


async def test_the_steps_own_reason_wins_over_the_runs_end(db: Database, run_id: UUID) -> None:
    """DA-25. A step closed in the parcel that ends the run keeps its own reason, in whatever order they come."""
    await claim(db, tool_claim(run_id))
    given_up = StepEntry(PATH, "tool", "credit_check", "FAILED", at(3), error="3 attempts used")
    await apply(db, run_id, running(1, status="FAILED", failure="a tool failed"), given_up)
    assert (await fetch(db, "select error from agent_ops.agent_steps"))[0] == {"error": "3 attempts used"}


async def test_conflict_is_recorded_in_its_own_transaction(db: Database, run_id: UUID) -> None:
    """DA-25. The conflict rolls its own transaction back; the event that tells of it stands, once."""
    await apply(db, run_id, running(1))
    for _ in range(2):
        with pytest.raises(ConflictError) as caught:
            await apply(db, run_id, event("never"), running(1, turn=7))
        await projection.record_conflict(db, TENANT, run_id, "underwrite.1", caught.value)
    rows = await fetch(db, "select seq, kind, data from agent_ops.agent_events")
    assert len(rows) == 1
    assert rows[0]["kind"].startswith("conflict:")
    assert "version 1 holds something else" in rows[0]["data"]["error"]


async def test_conflict_of_no_run_is_recorded_nowhere(db: Database) -> None:
    """Where the run itself has no row there is nothing to hang an event on."""
    absent = uuid4()
    with pytest.raises(ConflictError, match=f"Run {absent} of tenant 'default' has no row") as caught:
        await apply(db, absent, event("a"))
    assert await projection.record_conflict(db, TENANT, absent, "", caught.value) == NOOP


@pytest.mark.parametrize(
    "entry",
    [{"entry": "hologram"}, {}, {"entry": "event", "path": "a"}, {"entry": "review", "path": "a"}],
)
async def test_entry_that_this_release_cannot_read(db: Database, run_id: UUID, entry: dict[str, Any]) -> None:
    """An unknown kind or a missing field fails with its name, and writes nothing."""
    with pytest.raises(FatalError, match="cannot read"):
        async with db.transaction() as conn:
            await projection.apply(conn, TENANT, run_id, [to_plain(event("a")), entry])
    assert await seqs(db) == []


async def test_entry_with_no_time_is_refused_with_its_value(db: Database, run_id: UUID) -> None:
    """A text that is no instant is refused, naming the query and the value."""
    with pytest.raises(FatalError, match=r'events\.add.*"yesterday-ish"'):
        await apply(db, run_id, running(1), event("a").__class__("p", "a", "yesterday-ish"))
    assert (await get(db, run_id)).version == 0


async def test_nothing_to_apply_asks_nothing(db: Database) -> None:
    """An empty outbox takes no lock and needs no run."""
    assert await apply(db, uuid4()) == []


async def test_ids_of_rows_come_from_owner_and_path(db: Database, run_id: UUID) -> None:
    """DA-23. Events and messages have uuid5 of run and path as key, with the path beside."""
    await apply(db, run_id, event("a"), MessageEntry(PATH, 1, "u", "user", "hello", at(1)))
    rows = await fetch(db, "select event_id as id, path from agent_ops.agent_events")
    assert rows == [{"id": ids.event_id(run_id, PATH, "a"), "path": PATH}]
    rows = await fetch(db, "select message_id as id, path from agent_ops.agent_messages")
    assert rows == [{"id": ids.message_id(run_id, PATH, 1), "path": PATH}]
