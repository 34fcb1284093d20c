"""Roll-ups: every level is the sum of the one below, after any order of writes, races, kills and deletions."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from casework.errors import CaseworkError, ConflictError
from casework.projection import StepEntry
from casework.store import ledger, metrics, runs, totals
from casework.store.database import Database
from casework.store.migrate import migrate, shipped
from tests.integration.store.cases import (
    PATH,
    START,
    TENANT,
    apply,
    at,
    claim,
    commit,
    decision,
    done,
    execute,
    fetch,
    new_run,
    review,
    running,
    tool_claim,
)
from tests.integration.store.sums import assert_books_balance

WITHOUT = [each for each in shipped() if each.number not in {4, 5, 13}]
"""Tables without roll-ups, and otherwise as the code of today writes them, but for steps that only compute."""
TOOLS = ("credit_check", "income_verification", "debt_to_income_calc")


@dataclass
class Case:
    """One run that acts are done to, in any order; what the store refuses or ignores changes nothing."""

    db: Database
    run_id: UUID = field(default_factory=uuid4)
    version: int = 0
    asked: int = 0

    async def accept(self, **fields: Any) -> None:
        async with self.db.transaction() as conn:
            await runs.create_pending(conn, new_run(self.run_id, at=START, **fields))

    async def do(self, act: str, tool: int, number: int) -> None:
        await getattr(self, f"_{act}")(f"underwrite.1/exchange.1/{TOOLS[tool]}.1", TOOLS[tool], number)

    async def _claim(self, path: str, name: str, number: int) -> None:
        turn = 1 + number % 2 if path.endswith("calc.1") else 1
        await claim(self.db, tool_claim(self.run_id, path, name=name, turn=turn))

    async def _commit(self, path: str, name: str, number: int) -> None:
        figures = {"tokens_in": 10 * number, "tokens_out": number, "cost": Decimal("0.01") * number}
        await commit(self.db, done(self.run_id, number, path, result={"by": number}, **figures))

    async def _refuse(self, path: str, name: str, number: int) -> None:
        await commit(self.db, done(self.run_id, number, path, state="FAILED", result=None, error="no such applicant"))

    async def _fail(self, path: str, name: str, number: int) -> None:
        async with self.db.transaction() as conn:
            await ledger.attempt_failed(conn, TENANT, self.run_id, path, number, "503", 20, tokens_in=3)

    async def _give_up(self, path: str, name: str, number: int) -> None:
        await apply(self.db, self.run_id, StepEntry(path, "tool", name, "FAILED", at(3), error="given up"))

    async def _ask(self, path: str, name: str, number: int) -> None:
        self.asked, self.version = self.asked + 1, self.version + 1
        asked = review(self.run_id, f"decision.{self.asked}", turn=self.asked, at=at(10 * self.asked))
        await apply(self.db, self.run_id, asked, running(self.version, status="AWAITING_REVIEW"))

    async def _decide(self, path: str, name: str, number: int) -> None:
        given = decision(self.run_id, f"decision.{self.asked}", command="more_info", outcome=None, at=at(90),
                         decision_id=f"d-{self.asked}-{number}")  # fmt: skip
        self.version += 1
        await apply(self.db, self.run_id, given, running(self.version))

    async def _again(self, path: str, name: str, number: int) -> None:
        await apply(self.db, self.run_id, running(max(self.version, 1)))

    async def _approve(self, path: str, name: str, number: int) -> None:
        given = decision(self.run_id, f"decision.{self.asked}", at=at(95), decision_id=f"y-{self.asked}")
        self.version += 1
        await apply(
            self.db, self.run_id, given, running(self.version, status="COMPLETED", outcome="approved", at=at(95))
        )

    async def _end(self, path: str, name: str, number: int) -> None:
        self.version += 1
        status = ("COMPLETED", "FAILED", "CANCELLED")[number % 3]
        await apply(self.db, self.run_id, running(self.version, status=status, failure="why"))

    async def _sweep(self, path: str, name: str, number: int) -> None:
        async with self.db.transaction() as conn:
            await runs.close_from_outside(conn, TENANT, self.run_id, "terminated in the engine")


ACTS = [name[1:] for name in vars(Case) if name.startswith("_") and not name.startswith("__")]
ACT = st.tuples(
    st.integers(0, 1), st.sampled_from([*ACTS, "claim", "claim", "commit"]), st.integers(0, 2), st.integers(1, 3)
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(acts=[(0, "claim", 0, 1), (0, "end", 0, 1), (0, "commit", 0, 1)])
@example(acts=[(0, "claim", 0, 1), (0, "claim", 0, 1), (0, "commit", 0, 1), (0, "commit", 0, 2), (0, "sweep", 0, 1)])
@example(acts=[(0, "ask", 0, 1), (0, "sweep", 0, 1), (0, "approve", 0, 1)])
@example(acts=[(0, "claim", 0, 1), (0, "fail", 0, 1), (0, "end", 0, 1), (0, "commit", 0, 1), (0, "fail", 0, 1)])
@given(acts=st.lists(ACT, min_size=1, max_size=14))
def test_any_order_of_acts_leaves_the_books_balanced(database_dsn: str, acts: list[tuple[int, str, int, int]]) -> None:
    """DA-29. DA-30. Claims, ends, late results, reviews, closes from inside and outside: every level is a sum."""
    asyncio.run(_act(database_dsn, acts))


async def _act(dsn: str, acts: list[tuple[int, str, int, int]]) -> None:
    async with await Database.open(dsn, max_size=1) as db:
        cases = [Case(db), Case(db)]
        for case in cases:
            await case.accept()
        for number, act, tool, attempt in acts:
            try:
                await cases[number].do(act, tool, attempt)
            except ConflictError:
                continue  # refused as a whole: it must have counted nothing
        await assert_books_balance(db)


async def test_a_storm_of_writers_leaves_the_books_balanced(db: Database) -> None:
    """DA-29. DA-30. Runs of two workflows side by side, eight writers at once, acts in random order, no deadlock."""
    draw = random.Random(7)
    cases = [Case(db) for _ in range(16)]
    for number, case in enumerate(cases):
        await case.accept(workflow_name=f"w-{number % 2}", workflow_version=1 + number % 3)
    todo = [(case, draw.choice(ACTS), draw.randrange(3), draw.randint(1, 3)) for _ in range(40) for case in cases]
    draw.shuffle(todo)
    faults: list[CaseworkError] = []

    async def work() -> None:
        while todo:
            case, act, tool, number = todo.pop()
            try:
                await case.do(act, tool, number)
            except ConflictError:
                continue
            except CaseworkError as error:
                faults.append(error)

    await asyncio.gather(*(work() for _ in range(8)))
    assert faults == []
    await assert_books_balance(db)
    assert await fetch(db, "select 1 from agent_ops.agent_workflow_totals") != []


async def one_case(db: Database, **fields: Any) -> UUID:
    """An approved run with one tool call."""
    case = Case(db)
    await case.accept(**fields)
    for act in ("claim", "commit", "ask", "approve"):
        await case.do(act, 0, 1)
    return case.run_id


async def test_a_run_that_ends_again_counts_once(db: Database) -> None:
    """DA-29. The end, written twice, and closed from outside after it, is one run."""
    run_id = await one_case(db)
    for _ in range(2):
        await apply(db, run_id, running(2, status="COMPLETED", outcome="approved"))
        async with db.transaction() as conn:
            assert (await runs.close_from_outside(conn, TENANT, run_id, "gone")).outcome == "noop"
    assert await fetch(db, "select sum(runs)::integer as runs from agent_ops.agent_workflow_totals") == [{"runs": 1}]
    await assert_books_balance(db)


async def test_what_is_rolled_back_counts_nothing(db: Database, run_id: UUID) -> None:
    """DA-29. A transaction that ends an attempt and the run, and then fails, leaves no figure."""
    await claim(db, tool_claim(run_id))

    async def cut_short() -> None:
        async with db.transaction() as conn:
            await ledger.commit(conn, done(run_id, 1))
            await runs.close_from_outside(conn, TENANT, run_id, "gone")
            raise ConflictError("cut short")

    with pytest.raises(ConflictError, match="cut short"):
        await cut_short()
    for table in ("agent_workflow_metrics", "agent_workflow_totals", "agent_operation_metrics"):
        assert await fetch(db, f"select 1 from agent_ops.{table}") == []


async def test_a_person_at_a_console_is_counted_too(db: Database, admin_db: Database, run_id: UUID) -> None:
    """DA-29. Whoever ends a run: no writer can forget to count it."""
    statement = """update agent_ops.agent_runs
        set status = 'FAILED', version = version + 1, failure = 'by hand', ended_at = now() where run_id = %s"""
    assert await execute(admin_db, statement, run_id) == 1
    assert await fetch(db, "select status, runs from agent_ops.agent_workflow_totals") == [
        {"status": "FAILED", "runs": 1}
    ]
    await assert_books_balance(db)


async def test_deleted_runs_stay_in_the_figures(db: Database, database_dsn: str) -> None:
    """DA-29. Retention takes the rows of old runs and nothing from a roll-up."""
    run_id = await one_case(db)
    tables = ("agent_workflow_metrics", "agent_workflow_totals", "agent_operation_metrics")
    before = [await fetch(db, f"select * from agent_ops.{table}") for table in tables]
    async with await Database.open(database_dsn, role="casework_retention") as retention:
        assert await execute(retention, "delete from agent_ops.agent_runs where run_id = %s", run_id) == 1
    assert [await fetch(db, f"select * from agent_ops.{table}") for table in tables] == before
    async with db.transaction() as conn:
        (row,) = await metrics.workflows(conn, TENANT, START)
    assert (row.runs, row.completed, row.outcomes, row.tool_calls) == (1, 1, {"approved": 1}, 1)


async def test_a_late_attempt_counts_in_the_ended_run(db: Database) -> None:
    """DA-24. DA-29. A result that comes after the run's end is LATE, in the row its run was counted in."""
    case = Case(db)
    await case.accept()
    for act in ("claim", "end", "commit"):
        await case.do(act, 0, 1)
    (row,) = await fetch(
        db, "select attempts_lost, attempts_late, tokens_in, runs from agent_ops.agent_workflow_totals"
    )
    assert row == {"attempts_lost": 0, "attempts_late": 1, "tokens_in": 10, "runs": 1}
    async with db.transaction() as conn:
        (operation,) = (await totals.read(conn)).operations
    assert (operation.lost, operation.late) == (1, 1)
    await assert_books_balance(db)


async def test_open_and_ended_runs_are_one_figure(db: Database) -> None:
    """DA-29. DA-50. What is open and what has ended is added, by workflow, hour and day; states add up to runs."""
    for minutes in (0, 30, 60, 60 * 24):
        moment = START + timedelta(minutes=minutes)
        case = Case(db)
        async with db.transaction() as conn:
            await runs.create_pending(conn, new_run(case.run_id, at=moment))
        for act in ("claim", "commit", *(("ask", "approve") if minutes == 30 else ())):
            await case.do(act, 0, 1)

    async def found(**options: Any) -> list[tuple[Any, ...]]:
        async with db.transaction() as conn:
            rows = await metrics.workflows(conn, TENANT, **{"since": START, **options})
        for row in rows:
            states = (row.pending, row.running, row.awaiting_review, row.completed, row.failed, row.cancelled)
            assert row.runs == sum(states)
        return [(row.begin, row.runs, row.completed, row.tokens_in) for row in rows]

    hour, day = timedelta(hours=1), timedelta(days=1)
    assert await found() == [(None, 4, 1, 40)]
    assert await found(since=START + timedelta(minutes=59)) == [(None, 4, 1, 40)]
    assert await found(since=START + hour) == [(None, 2, 0, 20)]
    assert await found(by="hour") == [(START, 2, 1, 20), (START + hour, 1, 0, 10), (START + day, 1, 0, 10)]
    midnight = START.replace(hour=0)
    assert await found(by="day") == [(midnight, 3, 1, 30), (midnight + day, 1, 0, 10)]
    async with db.transaction() as conn:
        (row,) = await metrics.workflows(conn, TENANT, START)
    assert (row.mean_seconds, row.mean_review_seconds) == (Decimal(65 * 60), Decimal(85 * 60))
    assert (row.mean_tokens_in, row.mean_tokens_out, row.mean_cost) == (Decimal(10), Decimal(1), Decimal("0.01"))


async def test_rows_of_the_release_before_are_counted_by_the_migration(empty_database_dsn: str) -> None:
    """DA-29. Runs and attempts from before the roll-ups: the migration counts them, and what comes after goes on."""
    await migrate(empty_database_dsn, migrations=WITHOUT)
    async with await Database.open(empty_database_dsn) as db:
        await one_case(db)
        waiting, late = Case(db), Case(db)
        for case in (waiting, late):
            await case.accept()
            await case.do("claim", 0, 1)
        await waiting.do("ask", 0, 1)
        await late.do("end", 0, 1)
        assert await migrate(empty_database_dsn) == [each.name for each in shipped() if each not in WITHOUT]
        await assert_books_balance(db)
        await late.do("commit", 0, 1)
        await waiting.do("approve", 0, 1)
        await assert_books_balance(db)
        found = await fetch(db, "select sum(runs)::integer as runs from agent_ops.agent_workflow_totals")
    assert found == [{"runs": 3}]


async def test_writers_that_meet_the_migration_wait_for_it(empty_database_dsn: str) -> None:
    """A run that is being written while the tables change is counted by the one or the other, and once."""
    await migrate(empty_database_dsn, migrations=WITHOUT)
    async with await Database.open(empty_database_dsn) as db:
        case = Case(db)
        await case.accept()
        await case.do("claim", 0, 1)
        async with db.transaction() as conn:
            await ledger.commit(conn, done(case.run_id, 1, PATH.replace("credit_check", TOOLS[0])))
            migrating = asyncio.create_task(migrate(empty_database_dsn))
            await _waits_for_the_lock(empty_database_dsn)
            await runs.close_from_outside(conn, TENANT, case.run_id, "gone")
        await migrating
        await assert_books_balance(db)
        assert len(await fetch(db, "select 1 from agent_ops.agent_workflow_totals")) == 1


async def _waits_for_the_lock(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn, asyncio.timeout(60):
        while True:
            found = await conn.execute("select 1 from pg_locks where not granted and mode = 'ExclusiveLock'")
            if found.rowcount:
                return
            await asyncio.sleep(0.02)
