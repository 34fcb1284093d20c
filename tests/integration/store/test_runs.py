"""Runs: accepted once, listed by index, swept, closed from outside."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from casework import ids
from casework.errors import BlankIdError, ConflictError, IdempotencyConflictError, InputError
from casework.store import queries, reviews, runs, sweeping
from casework.store.database import Connection, Database
from casework.store.incidents import clear_incident, raise_incident
from casework.store.paging import Cursor, Page, place
from casework.store.results import NOOP, WRITTEN, WriteResult
from casework.store.runs import NewRun
from tests.integration.store.cases import START, TENANT, apply, at, claim, fetch, new_run, review, running, tool_claim

MANY = 6_000


async def create(db: Database, new: NewRun) -> bool:
    async with db.transaction() as conn:
        return (await runs.create_pending(conn, new))[1]


async def test_accepted_run_is_pending_at_version_0(db: Database) -> None:
    """DA-8. DA-25. The row is there before the workflow: PENDING, version 0, the run's id as the workflow's."""
    run_id = ids.run_id_for_key(TENANT, "ada", "key-1")
    async with db.transaction() as conn:
        row, created = await runs.create_pending(conn, new_run(run_id, model="m", turn_limit=3, actor="operator"))
    assert created
    assert (row.status, row.version, row.temporal_workflow_id) == ("PENDING", 0, str(run_id))
    assert (row.user_id, row.actor, row.turn_limit, row.model) == ("ada", "operator", 3, "m")
    assert row.request == {"applicant_id": "A-1", "amount": 12_000, "purpose": "car"}


async def test_same_key_and_body_is_the_same_run(db: Database) -> None:
    """DA-8. The same request again returns the run, even when it has moved on; another body is a conflict."""
    run_id = uuid4()
    assert await create(db, new_run(run_id))
    await apply(db, run_id, running(1))
    assert not await create(db, new_run(run_id))
    with pytest.raises(IdempotencyConflictError, match="Send the same body, or another key"):
        await create(db, new_run(run_id, request_hash="other"))


async def test_same_request_many_times_at_once_is_one_run(db: Database) -> None:
    """DA-8. Of requests at the same moment exactly one creates."""
    run_id = uuid4()
    made = await asyncio.gather(*(create(db, new_run(run_id)) for _ in range(8)))
    assert sorted(made) == [False] * 7 + [True]


@pytest.mark.parametrize("field", ["tenant", "user", "workflow_name"])
async def test_blank_ids_are_refused(db: Database, field: str) -> None:
    """Blank ids are refused at the door, naming which."""
    with pytest.raises(BlankIdError, match=field.partition("_")[0]):
        await create(db, new_run(uuid4(), **{field: " \t"}))


async def test_tenants_do_not_see_each_other(db: Database) -> None:
    """One run id in two tenants is two runs; each tenant reads its own."""
    run_id = uuid4()
    assert await create(db, new_run(run_id))
    assert await create(db, new_run(run_id, tenant="other", request_hash="x"))
    await apply(db, run_id, running(1))
    async with db.transaction() as conn:
        other = await runs.get(conn, "other", run_id)
        assert await runs.get(conn, "third", run_id) is None
    assert other is not None
    assert other.status == "PENDING"


async def all_pages(conn: Connection, **filters: Any) -> list[UUID]:
    found: list[UUID] = []
    after: Cursor | None = None
    while True:
        page = await runs.list_page(conn, TENANT, **filters, after=after, limit=7)
        found += [row.run_id for row in page.rows]
        if page.next is None:
            return found
        after = Cursor.decode(page.next.encode())


async def test_pages_are_newest_first_and_whole(db: Database) -> None:
    """DA-30. DA-31. Keyset pages: newest first, every run once, also where many have one moment; with filters."""
    made = [uuid4() for _ in range(30)]
    async with db.transaction() as conn:
        for number, run_id in enumerate(made):
            when = START + timedelta(minutes=number // 10)
            user, flow = ("ada", "loan") if number % 2 else ("bob", "intake")
            await runs.create_pending(conn, new_run(run_id, at=when, user=user, workflow_name=flow))
    await apply(db, made[1], running(1))
    expected = sorted(range(30), key=lambda n: (n // 10, made[n]), reverse=True)
    async with db.transaction() as conn:
        assert await all_pages(conn) == [made[n] for n in expected]
        assert await all_pages(conn, user="ada") == [made[n] for n in expected if n % 2]
        assert await all_pages(conn, workflow="intake") == [made[n] for n in expected if not n % 2]
        assert await all_pages(conn, user="ada", status="RUNNING") == [made[1]]
        assert await all_pages(conn, user="nobody\x00") == []


async def test_new_run_does_not_shift_the_pages(db: Database) -> None:
    """DA-31. A run that arrives between two pages neither repeats nor hides one."""
    made = [uuid4() for _ in range(4)]
    async with db.transaction() as conn:
        for number, run_id in enumerate(made):
            await runs.create_pending(conn, new_run(run_id, at=START + timedelta(minutes=number)))
        first = await runs.list_page(conn, TENANT, limit=2)
        await runs.create_pending(conn, new_run(uuid4(), at=START + timedelta(hours=1)))
        second = await runs.list_page(conn, TENANT, after=first.next, limit=2)
    assert [row.run_id for row in first.rows + second.rows] == made[::-1]
    assert second.next is None


@pytest.mark.parametrize("limit", [0, -1, 501])
async def test_limit_out_of_range_is_refused(db: Database, limit: int) -> None:
    """The message says the range."""
    async with db.transaction() as conn:
        with pytest.raises(InputError, match=f"limit={limit} is not between 1 and 500"):
            await runs.list_page(conn, TENANT, limit=limit)


@pytest.fixture
async def crowded(db: Database, database_dsn: str) -> Database:
    """Some thousand runs of many users, workflows and states, each fifth with a pending review."""
    async with (
        await Database.open(database_dsn, role=None, statement_timeout_s=60) as admin,
        admin.transaction() as conn,
    ):
        await conn.execute(
            b"""
            insert into agent_ops.agent_runs (run_id, temporal_workflow_id, workflow_name, workflow_version, user_id,
                actor, request, request_hash, turn_limit, status, version, ended_at, created_at)
            select gen_random_uuid(), n, 'w' || n %% 40, 1, 'user' || n %% 300, 'a', '{}', 'h', 5,
                case when n %% 5 = 0 then 'AWAITING_REVIEW' when n %% 500 = 1 then 'PENDING' else 'CANCELLED' end, n,
                case when n %% 5 = 0 or n %% 500 = 1 then null else now() end, now() - n * interval '1 minute'
            from generate_series(1, %s) n
            """,
            (MANY,),
        )
        await conn.execute(
            b"""
            insert into agent_ops.agent_reviews
                (review_id, run_id, path, node, turn, decisions, status, created_at, ended_at)
            select gen_random_uuid(), run_id, 'decision.1', 'decision', 1, '[]',
                case when version % 100 = 0 then 'pending' else 'decided' end, created_at,
                case when version % 100 = 0 then null else now() end
            from agent_ops.agent_runs where status = 'AWAITING_REVIEW'
            """
        )
        await conn.execute(b"analyze agent_ops.agent_runs, agent_ops.agent_reviews")
    return db


async def plan(db: Database, module: str, name: str, params: dict[str, Any]) -> str:
    async with db.transaction() as conn:
        found = await conn.execute(b"explain " + queries.load(module)[name].sql, params)
        return "\n".join(row[0] for row in await found.fetchall())


LISTS: list[tuple[dict[str, str], str]] = [
    ({}, "agent_runs_newest"),
    ({"user": "user7"}, "agent_runs_by_user"),
    ({"user": "user7", "status": "AWAITING_REVIEW"}, "agent_runs_by_user_and_status"),
    ({"status": "PENDING"}, "agent_runs_by_status"),
    ({"workflow": "w3"}, "agent_runs_by_workflow"),
]


async def test_first_pages_read_an_index_in_order(crowded: Database) -> None:
    """DA-30. With default planner settings a first page, and the next, is an index scan with no sort of history."""
    for filters, index in LISTS:
        for after in (None, Cursor(START + timedelta(days=10_000), uuid4())):
            params = {"tenant": TENANT, "user": None, "status": None, "workflow": None, "limit": 20}
            shown = await plan(crowded, "runs", "list_page", {**params, **filters, **place(after)})
            assert f"using {index} " in shown, shown
            assert "Seq Scan" not in shown, shown
            assert "Sort" not in shown.replace("Incremental Sort", ""), shown


async def test_list_is_planned_for_its_filters_each_time(db: Database, run_id: UUID) -> None:
    """DA-30. No prepared statement fixes one plan for all combinations of filters."""
    async with db.transaction() as conn:
        for _ in range(20):
            await runs.list_page(conn, TENANT, user="ada")
            await reviews.waiting(conn, TENANT)
        found = await conn.execute(b"select statement from pg_prepared_statements where statement like '%limit%'")
        assert await found.fetchall() == []


async def test_waiting_reviews_read_an_index_in_order(crowded: Database) -> None:
    """DA-30. The oldest waiting reviews come from the index of what waits, not from all reviews."""
    shown = await plan(crowded, "reviews", "waiting", {"tenant": TENANT, "limit": 20, **place(None)})
    assert "using agent_reviews_waiting " in shown, shown
    assert "Seq Scan" not in shown, shown
    assert "Sort" not in shown, shown


async def test_sweep_reads_what_is_open_by_index(crowded: Database) -> None:
    """DA-8. DA-30. The sweep's pages come from the index of open runs."""
    shown = await plan(crowded, "sweeping", "open_page", {"limit": 20, **place(None)})
    assert "Seq Scan" not in shown, shown
    assert "Sort" not in shown, shown


async def test_waiting_reviews_oldest_first(db: Database) -> None:
    """DA-30. Reviews that wait, oldest first, page by page; one that was closed is not among them."""
    made = [uuid4() for _ in range(5)]
    for number, run_id in enumerate(made):
        assert await create(db, new_run(run_id))
        await apply(db, run_id, running(1), review(run_id, at=at(60 - number)))
    await apply(db, made[2], running(2, status="CANCELLED"))
    async with db.transaction() as conn:
        first = await reviews.waiting(conn, TENANT, limit=2)
        second = await reviews.waiting(conn, TENANT, after=first.next, limit=2)
        assert await reviews.waiting(conn, "other") == Page([], None)
    assert [row.run_id for row in first.rows + second.rows] == [made[4], made[3], made[1], made[0]]
    assert (first.rows[0].workflow_name, first.rows[0].user_id) == ("loan-underwriting", "ada")
    assert second.next is None


async def test_sweep_reads_every_open_run_once(db: Database) -> None:
    """DA-8. Open runs of all tenants, oldest first, page by page; what has ended is not among them."""
    made = [uuid4() for _ in range(5)]
    for number, run_id in enumerate(made):
        await create(
            db, new_run(run_id, at=START + timedelta(hours=number // 2), tenant="other" if number % 2 else TENANT)
        )
    await apply(db, made[0], running(1))
    await apply(db, made[4], running(1, status="CANCELLED"))
    found: list[sweeping.OpenRow] = []
    async with db.transaction() as conn:
        while page := await sweeping.open_page(conn, found[-1] if found else None, limit=2):
            found += page
        known = await sweeping.known(conn, [*made, uuid4()])
    assert [row.run_id for row in found] == [*sorted(made[:2]), *sorted(made[2:4])]
    assert {row.run_id: row.status for row in known} == {
        made[0]: "RUNNING",
        made[1]: "PENDING",
        made[2]: "PENDING",
        made[3]: "PENDING",
        made[4]: "CANCELLED",
    }


async def test_a_run_with_a_step_in_flight_is_busy(db: Database, run_id: UUID) -> None:
    """DA-8. A step that is in flight and has moved lately: its run is not asked where it stands."""
    await claim(db, tool_claim(run_id))
    async with db.transaction() as conn:
        assert await sweeping.busy(conn, [run_id, uuid4()], START) == {run_id}
        assert await sweeping.busy(conn, [run_id], datetime.now(UTC) + timedelta(hours=1)) == set()


async def test_close_from_outside(db: Database, run_id: UUID) -> None:
    """DA-8. A run whose workflow is gone is FAILED with that reason, as version + 1, with review and step closed."""
    await claim(db, tool_claim(run_id))
    await apply(db, run_id, running(4, status="AWAITING_REVIEW"), review(run_id))

    async def close() -> WriteResult:
        async with db.transaction() as conn:
            return await runs.close_from_outside(conn, TENANT, run_id, "the Temporal workflow was terminated")

    assert [await close(), await close()] == [WRITTEN, NOOP]
    async with db.transaction() as conn:
        detail = await runs.detail(conn, TENANT, run_id)
        kinds = [row.kind for row in await runs.events(conn, TENANT, run_id)]
    assert detail is not None
    assert (detail.run.status, detail.run.version) == ("FAILED", 5)
    assert detail.run.failure == "the Temporal workflow was terminated"
    assert [row.status for row in detail.reviews] == ["closed"]
    assert [row.state for row in detail.steps] == ["FAILED"]
    assert kinds == ["attempt_lost:1", "run_closed_from_outside"]
    assert await apply(db, run_id, running(9)) == [NOOP]


async def test_close_from_outside_of_an_ended_run_changes_nothing(db: Database, run_id: UUID) -> None:
    """DA-8. The sweep writes only over a row that is not terminal."""
    await apply(db, run_id, running(1, status="CANCELLED"))
    async with db.transaction() as conn:
        assert await runs.close_from_outside(conn, TENANT, run_id, "gone") == NOOP
        with pytest.raises(ConflictError, match="has no row"):
            await runs.close_from_outside(conn, TENANT, uuid4(), "gone")


async def test_incident_is_a_flag_on_an_open_run(db: Database, run_id: UUID) -> None:
    """DA-19. An incident has reason and time, leaves the run open, and goes when the run goes on. Events tell both."""
    await apply(db, run_id, running(1))
    async with db.transaction() as conn:
        assert await raise_incident(conn, TENANT, run_id, "engine", "non-determinism", START) == WRITTEN
        assert await raise_incident(conn, TENANT, run_id, "engine", "non-determinism, still") == NOOP
        row = await runs.get(conn, TENANT, run_id)
    assert row is not None
    assert (row.status, row.incident["reason"], row.incident["at"]) == ("RUNNING", "non-determinism", at(0))
    async with db.transaction() as conn:
        assert await clear_incident(conn, TENANT, run_id) == WRITTEN
        assert await clear_incident(conn, TENANT, run_id) == NOOP
        assert await raise_incident(conn, TENANT, run_id, "rows", "again") == WRITTEN
    await apply(db, run_id, running(2))
    assert await fetch(db, "select incident from agent_ops.agent_runs") == [{"incident": None}]
    async with db.transaction() as conn:
        told = [(row.kind.partition(":")[0], row.data["reason"]) for row in await runs.events(conn, TENANT, run_id)]
    assert told == [
        ("incident_raised", "non-determinism"),
        ("incident_cleared", "non-determinism"),
        ("incident_raised", "again"),
        ("incident_cleared", "again"),
    ]


async def test_an_ended_run_has_no_incident(db: Database, run_id: UUID) -> None:
    """DA-19. A run that is closed from outside loses the flag, and one that has ended gets none."""
    await apply(db, run_id, running(1))
    async with db.transaction() as conn:
        await raise_incident(conn, TENANT, run_id, "engine", "non-determinism")
        await runs.close_from_outside(conn, TENANT, run_id, "terminated")
        assert await raise_incident(conn, TENANT, run_id, "engine", "non-determinism") == NOOP
        row = await runs.get(conn, TENANT, run_id)
    assert row is not None
    assert row.incident is None


async def test_detail_of_no_run_is_none(db: Database) -> None:
    """What is not there is None, not an error."""
    async with db.transaction() as conn:
        assert await runs.detail(conn, TENANT, uuid4()) is None
