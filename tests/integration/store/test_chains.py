"""Links of a chain of steps: the expected case in one statement, and what else can be met."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from casework.errors import ConflictError, StoreUnavailableError
from casework.projection import ContextEntry, EventEntry
from casework.store import chains
from casework.store.chains import Link, OvertakenError
from casework.store.database import Database
from casework.store.incidents import raise_incident
from casework.store.ledger import StepClaim, StepCommit
from tests.integration.store.cases import TENANT, apply, at, fetch, running
from tests.integration.store.sums import assert_books_balance

Rows = list[dict[str, Any]]


def link(run_id: UUID, number: int, **parts: Any) -> Link:
    """The claim of step `number`, and the end of the one before, whose result is its number."""
    path, before = f"count.{number}", f"count.{number - 1}"
    made: dict[str, Any] = {
        "events": [EventEntry(path, "agent.node_started", at(number), {"node": "count"})],
        "run": running(number),
        "next": StepClaim(TENANT, run_id, path, "tool", "add_one", "1", {"n": number}, 1, "count"),
    }
    if number > 1:
        made |= {
            "done": StepCommit(TENANT, run_id, before, 1, "COMPLETED", number - 1, None, 7),
            "done_turn": 1,
            "output": ContextEntry(before, "n", number - 1, number - 1, at(number)),
        }
    return Link(TENANT, run_id, **made | parts)


async def steps(db: Database) -> list[tuple[str, str, Any]]:
    rows = await fetch(db, "select path, state, result from agent_ops.agent_steps order by started_at, path")
    return [(row["path"], row["state"], row["result"]) for row in rows]


async def context(db: Database) -> Rows:
    return await fetch(db, "select path, key, version, value from agent_ops.agent_context order by path")


async def kinds(db: Database) -> list[str]:
    return [row["kind"] for row in await fetch(db, "select kind from agent_ops.agent_events order by seq")]


async def test_a_link_ends_one_step_and_claims_the_next(db: Database, run_id: UUID) -> None:
    """By itself, or in a transaction of others, which may undo it."""
    assert await chains.write_alone(db, link(run_id, 1))
    async with db.transaction() as conn:
        assert await chains.write(conn, link(run_id, 2))
        await conn.rollback()
    assert await steps(db) == [("count.1", "STARTED", None)]
    async with db.transaction() as conn:
        assert await chains.write(conn, link(run_id, 2))
    assert await steps(db) == [("count.1", "COMPLETED", 1), ("count.2", "STARTED", None)]
    assert [row["value"] for row in await context(db)] == [1]
    [run] = await fetch(db, "select version, status, current_node from agent_ops.agent_runs")
    assert tuple(run.values()) == (2, "RUNNING", "underwrite")
    [figures] = await fetch(db, "select tool_calls, attempts_completed, latency_ms from agent_ops.agent_run_metrics")
    assert tuple(figures.values()) == (1, 1, 7)


async def test_a_step_that_was_claimed_anew_is_not_ended(db: Database, run_id: UUID) -> None:
    """DA-26. Nothing of the link is written, however it is written."""
    await chains.write_alone(db, link(run_id, 1))
    await chains.write_alone(db, link(run_id, 2))
    before = await steps(db), await context(db), await kinds(db)
    with pytest.raises(OvertakenError, match=r"count\.1"):
        await chains.write_alone(db, link(run_id, 2))
    with pytest.raises(OvertakenError, match=r"count\.1"):
        async with db.transaction() as conn:
            await chains.write(conn, link(run_id, 2))
    assert (await steps(db), await context(db), await kinds(db)) == before


async def test_a_step_that_has_a_row_is_not_claimed(db: Database, run_id: UUID) -> None:
    """The rest of the link is written."""
    assert await chains.write_alone(db, link(run_id, 1))
    assert not await chains.write_alone(db, link(run_id, 1, run=running(2)))
    assert await steps(db) == [("count.1", "STARTED", None)]


async def test_the_flag_of_an_incident_comes_down(db: Database, run_id: UUID) -> None:
    """DA-19. The run moves: a link tells it in the same transaction."""
    async with db.transaction() as conn:
        await raise_incident(conn, TENANT, run_id, "engine", "no worker can advance it")
    assert await chains.write_alone(db, link(run_id, 1))
    assert await steps(db) == [("count.1", "STARTED", None)]
    [run] = await fetch(db, "select incident from agent_ops.agent_runs")
    assert run["incident"] is None
    assert [kind.split(":")[0] for kind in await kinds(db)] == [
        "incident_raised",
        "agent.node_started",
        "incident_cleared",
    ]


async def test_a_newer_row_of_the_run_stays(db: Database, run_id: UUID) -> None:
    """DA-25. That is no surprise, and nothing is told of it; steps and outputs are written."""
    await apply(db, run_id, running(5))
    assert await chains.write_alone(db, link(run_id, 1))
    assert await steps(db) == [("count.1", "STARTED", None)]
    [run] = await fetch(db, "select version from agent_ops.agent_runs")
    assert run["version"] == 5
    assert "run_stale:1" not in await kinds(db)


async def test_an_output_that_says_something_else_is_a_conflict(db: Database, run_id: UUID) -> None:
    """DA-25. Another value at the same version: it stands, and nothing of the link is written."""
    await chains.write_alone(db, link(run_id, 1))
    await apply(db, run_id, ContextEntry("count.1", "n", 1, "another", at(1)))
    with pytest.raises(ConflictError, match=r"context 'n' of count\.1"):
        await chains.write_alone(db, link(run_id, 2))
    assert await steps(db) == [("count.1", "STARTED", None)]
    assert [row["value"] for row in await context(db)] == ["another"]


async def test_an_ended_run_claims_nothing(db: Database, run_id: UUID) -> None:
    """The end of what was under way is written, and nothing begins."""
    await chains.write_alone(db, link(run_id, 1))
    await apply(db, run_id, running(9, status="FAILED", failure="enough"))
    [closed] = await steps(db)
    assert not await chains.write_alone(db, link(run_id, 7, done=None, output=None))
    assert await steps(db) == [closed]


async def test_a_step_that_was_never_claimed_is_not_made(db: Database, run_id: UUID) -> None:
    """A result without a claim is refused, and nothing of the link is written."""
    with pytest.raises(ConflictError, match="agent_steps"):
        await chains.write_alone(db, link(run_id, 2))
    assert (await steps(db), await context(db), await kinds(db)) == ([], [], [])


async def test_a_connection_that_breaks_in_a_statement_is_passing(db: Database) -> None:
    """It is the database that is away, also where the statement was to be committed by itself."""
    with pytest.raises(StoreUnavailableError):
        async with db.autocommit() as conn:
            await conn.execute("select pg_terminate_backend(pg_backend_pid())")
    async with db.autocommit() as conn:
        await conn.execute("select 1")
    async with db.transaction() as conn:
        assert not conn.autocommit


async def test_a_run_without_a_row(db: Database) -> None:
    """Named, and nothing is written."""
    unknown = uuid4()
    with pytest.raises(ConflictError, match=str(unknown)):
        await chains.write_alone(db, link(unknown, 1))


async def test_what_the_database_cannot_hold_is_replaced_and_counted(db: Database, run_id: UUID) -> None:
    """NUL and a lone surrogate, in arguments and result."""
    odd = StepClaim(TENANT, run_id, "count.1", "tool", "add_one", "1", {"t": "a\x00b"}, 1, "count")
    await chains.write_alone(db, link(run_id, 1, next=odd))
    done = StepCommit(TENANT, run_id, "count.1", 1, "COMPLETED", ["\ud800", "\x00"], None, 7)
    await chains.write_alone(db, link(run_id, 2, done=done))
    first = (await fetch(db, "select arguments, result, cleaned from agent_ops.agent_steps where path = 'count.1'"))[0]
    assert tuple(first.values()) == ({"t": "a␀b"}, ["�", "␀"], 3)
    assert [row["value"] for row in await context(db)] == [["�", "␀"]]


def computed(run_id: UUID, number: int, **parts: Any) -> Link:
    """The end of a step that only computes and was not claimed; the next one is such a step too."""
    made = link(run_id, number, **parts)
    return replace(made, unclaimed=link(run_id, number - 1).next, next=None)


@pytest.mark.parametrize("alone", [True, False])
async def test_a_step_that_was_not_claimed_gets_its_whole_row(db: Database, run_id: UUID, alone: bool) -> None:
    """DA-26, DA-29. One row and one attempt, at once, and all sums know of them; what is replaced is counted."""

    async def written(link: Link) -> None:
        if alone:
            assert not await chains.write_alone(db, link)
            return
        async with db.transaction() as conn:
            assert not await chains.write(conn, link)

    asked = StepClaim(TENANT, run_id, "count.2", "tool", "add_one", "1", {"n": "a\x00"}, 1, "count")
    made = StepCommit(TENANT, run_id, "count.2", 1, "COMPLETED", ["b\x00", 2], None, 7)
    await written(computed(run_id, 2))
    await written(replace(computed(run_id, 3), done=made, unclaimed=asked))
    steps = await fetch(
        db,
        "select path, kind, name, node, turn, tool_version, arguments, hash, state, attempt, result, error, cleaned,"
        " extract(epoch from ended_at - started_at)::float as seconds from agent_ops.agent_steps order by started_at",
    )
    first, second = [tuple(row.values()) for row in steps]
    known = link(run_id, 1).next
    assert known is not None
    assert first == (
        ("count.1", "tool", "add_one", "count", 1, "1", {"n": 1}, known.hash, "COMPLETED", 1, 1, None, 0, 0.007)
    )
    assert second[6:] == ({"n": "a\u2400"}, asked.hash, "COMPLETED", 1, ["b\u2400", 2], None, 2, 0.007)
    attempts = await fetch(db, "select attempt, outcome, latency_ms from agent_ops.agent_step_attempts")
    assert [tuple(row.values()) for row in attempts] == [(1, "COMPLETED", 7)] * 2
    assert [(row["version"], row["value"]) for row in await context(db)] == [(1, 1), (2, ["b\u2400", 2])]
    [figures] = await fetch(db, "select attempts_completed, latency_ms from agent_ops.agent_operation_metrics")
    assert tuple(figures.values()) == (2, 14)
    await assert_books_balance(db)


@pytest.mark.parametrize("state", ["claimed", "ended"])
async def test_a_step_that_was_not_claimed_is_not_written_over_a_row(db: Database, run_id: UUID, state: str) -> None:
    """DA-26. Somebody has claimed it meanwhile, or ended it: nothing of the link is written, however it is written."""
    await chains.write_alone(db, link(run_id, 1))
    if state == "ended":
        await chains.write_alone(db, link(run_id, 2))
    before = await steps(db), await context(db), await kinds(db)
    with pytest.raises(OvertakenError, match=r"count\.1"):
        await chains.write_alone(db, computed(run_id, 2, run=running(5)))
    with pytest.raises(OvertakenError, match=r"count\.1"):
        async with db.transaction() as conn:
            await chains.write(conn, computed(run_id, 2, run=running(5)))
    assert (await steps(db), await context(db), await kinds(db)) == before


async def test_an_ended_run_gets_no_step_any_more(db: Database, run_id: UUID) -> None:
    """DA-16. What was computed after the end is thrown away."""
    await apply(db, run_id, running(9, status="FAILED", failure="enough"))
    with pytest.raises(OvertakenError):
        await chains.write_alone(db, computed(run_id, 2))
    assert await steps(db) == []
