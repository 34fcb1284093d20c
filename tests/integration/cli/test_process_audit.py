"""`casework process audit`: on the database alone, what it says, and its exit code."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from casework.cli import exits
from casework.store.database import Database
from casework.store.processes.audit_checks import CHECKS
from casework.values import loads
from tests.integration.cli.conftest import Line
from tests.integration.store.processes.histories import cloned, straight_through
from tests.integration.store.processes.playing import Play

BALANCE = f"The books balance: {len(CHECKS)} checks.\n"


@pytest.fixture
def database(folder: Path, database_dsn: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CASEWORK_DATABASE_URL", database_dsn)
    return database_dsn


@pytest.fixture
def played(database: str) -> str:
    """Two Transactions that came through, one of them through clones."""

    async def play() -> None:
        async with await Database.open(database, max_size=1) as db:
            await straight_through(Play(db))
            await cloned(Play(db))

    asyncio.run(play())
    return database


def sql(dsn: str, *statements: str) -> list[UUID]:
    """As the owner, past every guard; the ids that the last one returns."""
    with psycopg.connect(dsn) as conn:
        conn.execute("set session_replication_role = replica")
        for statement in statements:
            cursor = conn.execute(statement.encode())
        return sorted(row[0] for row in cursor.fetchall()) if cursor.description else []


@pytest.mark.usefixtures("database")
def test_an_empty_database_balances_and_says_that_nothing_is_there(line: Line) -> None:
    """Nor is a tenant that nobody has heard of a fault."""
    assert line("process", "audit") == (exits.OK, f"Tenant 'default' has no Transaction.\n{BALANCE}", "")
    assert line("process", "audit", "--tenant", "nobody")[1] == f"Tenant 'nobody' has no Transaction.\n{BALANCE}"
    found = line.json("process", "audit")
    assert (found["balanced"], found["faults"], found["untold"]) == (True, [], 0)
    assert found["checks"] == dict.fromkeys((check.fault for check in CHECKS), 0)


@pytest.mark.usefixtures("played")
def test_books_that_balance_are_counted(line: Line) -> None:
    """Exit code 0, how many rows there are, and how many checks were made."""
    counts = "4 Transactions: 0 open, 0 in trays, 2 COMPLETED, 0 failed; 6 steps\n"
    assert line("process", "audit") == (exits.OK, counts + BALANCE, "")
    assert line.json("process", "audit")["counts"] == {
        "transactions": 4,
        "open": 0,
        "in_trays": 0,
        "completed": 2,
        "failed": 0,
        "steps": 6,
    }


def test_a_fault_is_told_with_its_id_and_what_to_do(line: Line, played: str) -> None:
    """Exit code 1, for people and as JSON, which says the same."""
    ids = sql(played, "delete from process_ops.transaction_analytics returning transaction_uuid")
    remedy = next(check.remedy for check in CHECKS if check.fault == "analytics are missing")
    code, out, err = line("process", "audit")
    assert (code, err) == (exits.FAILED, "")
    assert out.splitlines()[1:] == [
        "FAULT analytics are missing: 2",
        *(f"  Transaction {uuid}: it is COMPLETED and has no row" for uuid in ids),
        f"  {remedy}",
        f"The books do NOT balance: {len(CHECKS)} checks.",
    ]
    code, out, _ = line("process", "audit", "--most", "1")
    assert code == exits.FAILED
    assert "  and 1 more: --most 2 tells all\n" in out
    assert str(ids[1]) not in out


def test_faults_as_json(line: Line, played: str) -> None:
    """One object on stdout, with exit code 1; what is not told is counted."""
    ids = sql(played, "delete from process_ops.transaction_analytics returning transaction_uuid")
    code, out, _ = line("process", "audit", "--json", "--most", "1")
    found = loads(out)
    assert (code, found["balanced"], found["untold"], found["tenant"]) == (exits.FAILED, False, 1, "default")
    assert found["checks"]["analytics are missing"] == 2
    (told,) = found["faults"]
    assert (told["fault"], told["of"], told["id"]) == ("analytics are missing", "Transaction", str(ids[0]))


def test_entities_that_did_not_go_to_the_clone(line: Line, played: str) -> None:
    """BP-25. Rows that stay with what was cloned are told for the tables that are named; others are refused."""
    sql(
        played,
        "create schema shop",
        "create table shop.invoices (id integer primary key, transaction_uuid uuid not null)",
        "select process_ops.guard_entities('shop.invoices')",
        "grant usage on schema shop to casework_runtime",
        "grant select on shop.invoices to casework_runtime",
        "insert into shop.invoices select 1, uuid from process_ops.transactions where status = 'COMPLETED' limit 1",
        f"insert into shop.invoices values (2, '{uuid4()}')",
    )
    words = ("process", "audit", "--entities", "shop.invoices")
    assert line(*words)[0] == exits.OK
    (cloned_one,) = sql(
        played,
        "insert into shop.invoices select 3, uuid from process_ops.transactions where status = 'ABORTED' limit 1"
        " returning transaction_uuid",
    )
    code, out, _ = line(*words)
    assert code == exits.FAILED
    assert f"FAULT entities stay with what was cloned: 1\n  Transaction {cloned_one}: 1 rows of shop.invoices\n" in out
    code, _, err = line("process", "audit", "--entities", "shop.notes")
    assert code != exits.OK
    assert "guard_entities('shop.notes')" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["work"], "unexpected extra argument"),
        (["--most", "0"], "0 is not in the range"),
        (["--process", "x"], "--process"),
    ],
)
def test_what_it_does_not_take_is_refused(line: Line, words: list[str], says: str) -> None:
    """The books are a tenant's, not a process's."""
    code, _, err = line("process", "audit", *words)
    assert (code, says in err) == (exits.USAGE, True), err


def test_a_database_that_is_away_is_no_fault_of_the_books(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 5."""
    monkeypatch.setenv("CASEWORK_DATABASE_URL", "postgresql://nobody@127.0.0.1:9/x")
    assert line("process", "audit")[0] == exits.UNREACHABLE
