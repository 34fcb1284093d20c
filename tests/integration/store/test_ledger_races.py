"""The ledger under concurrency and death: two of everything at once, a kill between any two statements, any order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from casework.errors import StoreUnavailableError
from casework.projection import StepEntry
from casework.store import ledger, messages, projection, runs
from casework.store.database import Database
from casework.store.ledger import Claimed
from casework.store.results import WriteResult
from tests.integration.store.cases import PATH, TENANT, apply, at, claim, commit, done, fetch, new_run, tool_claim

ROUNDS = 12


def path_of(number: int) -> str:
    return f"underwrite.1/exchange.{number}/credit_check.1"


async def test_claimers_at_once_get_different_attempts(db: Database, run_id: UUID) -> None:
    """DA-24. Of several claimers at the same moment each has its own attempt, and only the last is not LOST."""
    claimed = await asyncio.gather(*(claim(db, tool_claim(run_id)) for _ in range(6)))
    assert sorted(one.attempt for one in claimed) == [1, 2, 3, 4, 5, 6]
    rows = await fetch(db, "select attempt, outcome from agent_ops.agent_step_attempts order by attempt")
    assert [row["outcome"] for row in rows] == ["LOST"] * 5 + [None]
    seqs = await fetch(db, "select seq from agent_ops.agent_events order by seq")
    assert [row["seq"] for row in seqs] == [1, 2, 3, 4, 5]


async def test_commit_and_claim_at_once(db: Database, run_id: UUID) -> None:
    """DA-24. DA-26. Either the commit was first and the claimer gets the result, or it came late; never both."""
    for number in range(ROUNDS):
        path = path_of(number)
        await claim(db, tool_claim(run_id, path))
        written, claimed = await asyncio.gather(commit(db, done(run_id, 1, path)), claim(db, tool_claim(run_id, path)))
        assert (written.outcome, claimed.state) in {("written", "committed"), ("stale", "claimed")}


async def test_commits_of_two_attempts_at_once(db: Database, run_id: UUID) -> None:
    """DA-24. The first attempt is still alive when the second commits: one row, the second's; the first is LATE."""
    for number in range(ROUNDS):
        path = path_of(number)
        for _ in range(2):
            await claim(db, tool_claim(run_id, path))
        ends = (done(run_id, n, path, result={"by": n}) for n in (1, 2))
        outcomes = await asyncio.gather(*(commit(db, end) for end in ends))
        assert [one.outcome for one in outcomes] == ["stale", "written"]
        assert (await claim(db, tool_claim(run_id, path))).result == {"by": 2}


async def test_same_commit_twice_at_once(db: Database, run_id: UUID) -> None:
    """DA-26. The same commit from two connections: written once, a no-op once, counted once."""
    for number in range(ROUNDS):
        path = path_of(number)
        await claim(db, tool_claim(run_id, path))
        outcomes = await asyncio.gather(*(commit(db, done(run_id, 1, path)) for _ in range(2)))
        assert sorted(one.outcome for one in outcomes) == ["noop", "written"]
    calls = await fetch(db, "select tool_calls from agent_ops.agent_run_metrics")
    assert calls == [{"tool_calls": ROUNDS}]


async def test_commit_and_give_up_at_once(db: Database, run_id: UUID) -> None:
    """DA-25. Of a commit and the engine's close one wins, and the row says which."""
    for number in range(ROUNDS):
        path = path_of(number)
        await claim(db, tool_claim(run_id, path))
        entry = StepEntry(path, "tool", "credit_check", "FAILED", at(3), error="given up")
        written, closed = await asyncio.gather(commit(db, done(run_id, 1, path)), apply(db, run_id, entry))
        state = (await claim(db, tool_claim(run_id, path))).state
        assert (written.outcome, closed[0].outcome, state) in {
            ("written", "noop", "committed"),
            ("stale", "written", "closed"),
        }


async def test_parallel_tools_of_a_run_do_not_deadlock(db: Database, run_id: UUID) -> None:
    """DA-9. Tools side by side, each claiming with an outbox, failing, claiming again and committing."""

    async def work(number: int) -> WriteResult:
        path = path_of(number)
        async with db.transaction() as conn:
            await projection.add_event(conn, TENANT, run_id, path, "asked", None)
            await ledger.claim(conn, tool_claim(run_id, path))
        async with db.transaction() as conn:
            await ledger.attempt_failed(conn, TENANT, run_id, path, 1, "503", 5)
        await claim(db, tool_claim(run_id, path))
        async with db.transaction() as conn:
            assert await ledger.lock_attempt(conn, TENANT, run_id, path, 2)
            return await ledger.commit(conn, done(run_id, 2, path))

    outcomes = await asyncio.gather(*(work(number) for number in range(8)))
    assert {one.outcome for one in outcomes} == {"written"}
    seqs = [row["seq"] for row in await fetch(db, "select seq from agent_ops.agent_events order by seq")]
    assert seqs == list(range(1, 17))


def kill_backends(dsn: str) -> None:
    """As a crash of the worker's connection: the server ends every session of the runtime in this database."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            " where datname = current_database() and application_name = 'casework'"
        )


@pytest.mark.parametrize("statements", range(4))
async def test_death_inside_the_second_transaction_leaves_nothing(
    db: Database, run_id: UUID, database_dsn: str, statements: int
) -> None:
    """DA-28. Result, transcript and event commit together: cut after any statement, there is none of them."""
    await claim(db, tool_claim(run_id))

    async def cut_short() -> None:
        async with db.transaction() as conn:
            if statements > 0:
                await ledger.commit(conn, done(run_id, 1))
            if statements > 1:
                await messages.write(conn, TENANT, run_id, path=PATH, position=1, agent="a", role="tool", content="{}")
            if statements > 2:
                await projection.add_event(conn, TENANT, run_id, PATH, "agent.tool_completed", None)
            kill_backends(database_dsn)
            await ledger.commit(conn, done(run_id, 1))

    with pytest.raises(StoreUnavailableError):
        await cut_short()
    for table in ("agent_messages", "agent_events", "agent_run_metrics"):
        assert await fetch(db, f"select 1 from agent_ops.{table}") == []
    again = await claim(db, tool_claim(run_id))
    assert (again.state, again.attempt) == ("claimed", 2)
    assert (await commit(db, done(run_id, 2))).outcome == "written"


async def test_death_inside_the_first_transaction_leaves_no_claim(
    db: Database, run_id: UUID, database_dsn: str
) -> None:
    """DA-24. A claim that was not committed is none: the next one is the first attempt, with nobody lost."""

    async def cut_short() -> None:
        async with db.transaction() as conn:
            await ledger.claim(conn, tool_claim(run_id))
            kill_backends(database_dsn)

    with pytest.raises(StoreUnavailableError):
        await cut_short()
    assert (await claim(db, tool_claim(run_id))).attempt == 1
    assert await fetch(db, "select 1 from agent_ops.agent_events") == []


@dataclass
class Model:
    """The ledger row as it has to be, in a few lines of Python."""

    attempt: int = 0
    state: str = "ABSENT"
    result: int | None = None
    outcomes: dict[int, str | None] = field(default_factory=dict)

    def claim(self) -> str:
        if self.state in {"COMPLETED", "FAILED"}:
            return "committed" if self.state == "COMPLETED" else "closed"
        self._lose()
        self.attempt += 1
        self.state = "STARTED"
        self.outcomes[self.attempt] = None
        return "claimed"

    def commit(self, attempt: int) -> str:
        if attempt == self.attempt and self.state == "STARTED":
            self.state, self.result, self.outcomes[attempt] = "COMPLETED", attempt, "COMPLETED"
            return "written"
        if self.outcomes[attempt] == "COMPLETED":
            return "noop"
        self.outcomes[attempt] = "LATE"
        return "stale"

    def fail(self, attempt: int) -> str:
        if self.outcomes[attempt] in {"COMPLETED", "FAILED"}:
            return "noop"
        if attempt == self.attempt and self.state == "STARTED":
            self.outcomes[attempt] = "FAILED"
            return "written"
        self.outcomes[attempt] = "LATE"
        return "stale"

    def give_up(self) -> str:
        if self.state in {"COMPLETED", "FAILED"}:
            return "noop"
        self._lose()
        self.state = "FAILED"
        return "written"

    def _lose(self) -> None:
        for attempt, outcome in self.outcomes.items():
            self.outcomes[attempt] = outcome or "LOST"


def acts() -> Iterator[st.SearchStrategy[tuple[str, int]]]:
    yield st.tuples(st.just("claim"), st.just(0))
    yield st.tuples(st.sampled_from(["commit", "fail"]), st.integers(1, 3))
    yield st.tuples(st.just("give_up"), st.just(0))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(steps=[("claim", 0), ("fail", 1), ("give_up", 0), ("commit", 1)])
@example(steps=[("claim", 0), ("fail", 1), ("commit", 1), ("give_up", 0), ("fail", 1)])
@given(steps=st.lists(st.one_of(*acts()), min_size=1, max_size=9))
def test_any_order_of_acts_gives_the_modelled_row(database_dsn: str, steps: list[tuple[str, int]]) -> None:
    """DA-24. DA-25. Claims, commits, failures and closes in any order: the row, attempts and counts are the model's."""
    asyncio.run(_compare(database_dsn, steps))


async def _compare(dsn: str, steps: list[tuple[str, int]]) -> None:
    run_id, model = uuid4(), Model()
    async with await Database.open(dsn, max_size=1) as db:
        async with db.transaction() as conn:
            await runs.create_pending(conn, new_run(run_id))
        for act, attempt in steps:
            if attempt > model.attempt:
                continue
            assert await _do(db, run_id, act, attempt) == _expect(model, act, attempt), (act, attempt, steps)
        async with db.transaction() as conn:
            stored = await runs.attempts(conn, TENANT, run_id)
            used = await runs.detail(conn, TENANT, run_id)
    assert {row.attempt: row.outcome for row in stored} == model.outcomes
    assert used is not None
    for outcome in ("COMPLETED", "FAILED", "LOST", "LATE"):
        counted = getattr(used.metrics, f"attempts_{outcome.lower()}")
        assert counted == list(model.outcomes.values()).count(outcome), (outcome, steps)
    if model.state != "ABSENT":
        step = used.steps[0]
        assert (step.state, step.attempt) == (model.state, model.attempt)
        assert step.result == (None if model.result is None else {"by": model.result})


async def _do(db: Database, run_id: UUID, act: str, attempt: int) -> str:
    if act == "claim":
        claimed: Claimed = await claim(db, tool_claim(run_id))
        return claimed.state
    if act == "commit":
        return (await commit(db, done(run_id, attempt, result={"by": attempt}))).outcome
    if act == "fail":
        async with db.transaction() as conn:
            return (await ledger.attempt_failed(conn, TENANT, run_id, PATH, attempt, "503", 5)).outcome
    entry = StepEntry(PATH, "tool", "credit_check", "FAILED", at(3), error="given up")
    return (await apply(db, run_id, entry))[0].outcome


def _expect(model: Model, act: str, attempt: int) -> str:
    if act == "claim":
        return model.claim()
    if act == "commit":
        return model.commit(attempt)
    return model.fail(attempt) if act == "fail" else model.give_up()
