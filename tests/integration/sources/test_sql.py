"""Rows of a query on a real PostgreSQL become Transactions, each once, whatever is in them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, LiteralString

import psycopg
import pytest

from casework.errors import BusinessError, SettingsError, UnreachableError
from casework.process.local import LocalProject
from casework.sources.references import SecretReference
from casework.sources.sql import SqlQuery, SqlRow, SqlSettings, SqlSource
from tests.integration.sources.projects import errors, keys, project, taken

VARIABLE = "TEST_SOURCE_DSN"
ORDERS = "select id, amount from orders"


@pytest.fixture
def dsn(empty_database_dsn: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with a table of orders, and its URL in the environment."""
    monkeypatch.setenv(VARIABLE, empty_database_dsn)
    run(empty_database_dsn, "create table orders (id bigint, amount numeric(12, 3))")
    return empty_database_dsn


def run(dsn: str, statement: LiteralString, *values: Any) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement, values)


def settings(query: str = ORDERS, **more: Any) -> SqlSettings:
    return SqlSettings(
        **{"name": "orders", "key": "id", "dsn": SecretReference(variable=VARIABLE), "query": query, **more}
    )


def over(source: SqlSource, monitor: type[SqlQuery] = SqlQuery) -> LocalProject:
    return project(monitor, source=source)


async def read(query: str, **more: Any) -> list[SqlRow]:
    return await SqlSource(settings(query, **more)).rows()


async def test_each_row_becomes_a_transaction(dsn: str) -> None:
    """BP-22: an SQL query is a source. The key column makes the natural key; numbers keep their digits."""
    run(dsn, "insert into orders values (2, 10.500), (1, null)")
    async with over(SqlSource(settings())) as made:
        await made.run("intake", polls=3)
        assert keys(made) == ["orders:1", "orders:2"]
        assert [each.data for each in taken(made)] == [
            {"id": 1, "amount": None},
            {"id": 2, "amount": Decimal("10.500")},
        ]
        assert str(taken(made)[1].data["amount"]) == "10.500"
        assert errors(made) == []


async def test_a_poll_takes_so_many_and_new_rows_come_first(dsn: str) -> None:
    """Pages by key. What is new behind them does not wait until all has been read again."""
    run(dsn, "insert into orders select n, n from generate_series(1, 7) n")
    async with over(SqlSource(settings(rows_per_poll=3))) as made:
        for expected in (3, 6, 7):
            await made.run("intake")
            assert len(keys(made)) == expected
        run(dsn, "insert into orders values (100, 1)")
        await made.run("intake")
        assert keys(made)[-1] == "orders:100"


async def test_rows_that_appear_before_others_are_found(dsn: str) -> None:
    """A transaction that commits late brings keys below those that were read."""
    run(dsn, "insert into orders select n, n from generate_series(10, 16) n")
    async with over(SqlSource(settings(rows_per_poll=3))) as made:
        await made.run("intake", polls=3)
        run(dsn, "insert into orders values (5, 1)")
        await made.run("intake", polls=4)
        assert keys(made)[-1] == "orders:5"
        assert len(keys(made)) == 8


async def test_what_a_line_has_no_room_for_is_read_again(dsn: str) -> None:
    """A row that was given and not dealt with is given at the next poll, before those behind it."""
    run(dsn, "insert into orders select n, n from generate_series(1, 5) n")
    source = SqlSource(settings(rows_per_poll=3))
    first, *_ = await source.rows()
    source.taken(first)
    assert [row.key for row in await source.rows()] == ["2", "3", "4"]


async def test_a_start_anew_takes_nothing_twice(dsn: str) -> None:
    """Where the reading stands is forgotten; the keys are not."""
    run(dsn, "insert into orders values (1, 1), (2, 2)")
    async with over(SqlSource(settings())) as made:
        await made.run("intake")
        known = made.store.keys
    run(dsn, "insert into orders values (3, 3)")
    async with over(SqlSource(settings())) as made:
        made.store.keys |= known
        await made.run("intake")
        assert keys(made) == ["orders:3"]


TYPES = """
select 1 as id, 1.50::numeric as n, 'NaN'::numeric as nan, 0.1::float8 as f, true as b, 'zwölf' as t,
  null::text as nothing,
  '2026-12-01 14:30+02'::timestamptz as at, 'infinity'::timestamptz as ever, date '2026-12-01' as day,
  date '-infinity' as never,
  time '14:30' as clock, array[1.10, 2.20] as list, '{"a": [1.10, null]}'::jsonb as doc, 'x'::"char" as c,
  '6d7f4f8e-3f8a-4b52-9d57-2f0d3a1c5b11'::uuid as u, '10.0.0.1'::inet as ip
"""


async def test_values_are_plain(dsn: str) -> None:
    """Decimals, instants in UTC, days, lists, documents; what Python has no date for stays a text."""
    (row,) = await read(TYPES)
    assert row.problem is None
    assert row.values == {
        "id": 1,
        "n": Decimal("1.50"),
        "nan": "NaN",
        "f": 0.1,
        "b": True,
        "t": "zwölf",
        "nothing": None,
        "at": "2026-12-01T12:30:00.000000+00:00",
        "ever": "infinity",
        "day": "2026-12-01",
        "never": "-infinity",
        "clock": "14:30:00",
        "list": [Decimal("1.10"), Decimal("2.20")],
        "doc": {"a": [Decimal("1.10"), None]},
        "c": "x",
        "u": "6d7f4f8e-3f8a-4b52-9d57-2f0d3a1c5b11",
        "ip": "10.0.0.1",
    }


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("'x'::bytea", "column 'c' is bytes. Leave it out, or write encode(c, 'base64')"),
        ("array['x'::bytea]", "column 'c' is bytes"),
        ("now()::timestamp", "column 'c' has no time zone. Say which one it is: c at time zone 'Europe/Berlin'"),
        ("interval '1 day'", "column 'c' is an interval. Write extract(epoch from c) for seconds"),
    ],
)
async def test_columns_that_have_no_plain_value(dsn: str, column: str, told: str) -> None:
    """Refused with what to write instead, before any row is taken."""
    with pytest.raises(SettingsError) as raised:
        await read(f"select 1 as id, {column} as c")
    assert raised.value.field == "query"
    assert told in str(raised.value)


@pytest.mark.parametrize("kind", ["uuid", "text", "numeric", "timestamptz", "date"])
async def test_keys_of_many_types_are_read_in_pages(dsn: str, kind: str) -> None:
    """Whatever can be ordered and told."""
    values = {
        "uuid": "md5(n::text)::uuid",
        "text": "chr(228) || n",
        "numeric": "n / 4.0",
        "timestamptz": "timestamptz '2026-12-01' + n * interval '1 ms'",
        "date": "date '2026-12-01' + n",
    }
    query = f"select {values[kind]} as id from generate_series(1, 9) n"
    async with over(SqlSource(settings(query, rows_per_poll=4))) as made:
        await made.run("intake", polls=3)
        assert len(set(keys(made))) == 9


class Fussy(SqlQuery):
    """Refuses an amount of 13."""

    async def save_input_entity(self, entity: SqlRow) -> Mapping[str, Any]:
        if entity.values.get("amount") == 13:
            raise BusinessError("not that", code="UNLUCKY")
        return await super().save_input_entity(entity)


async def test_a_bad_row_does_not_stop_the_rest(dsn: str) -> None:
    """BP-20. Rows that are refused, that have no key, or a value that cannot be kept; each is told once."""
    run(dsn, "insert into orders values (1, 1), (2, 13), (3, 3), (null, 4)")
    query = "select id, amount, case when id = 3 then row(1, 'x'::bytea) end as odd from orders"
    async with over(SqlSource(settings(query)), Fussy) as made:
        await made.run("intake", polls=3)
        assert keys(made) == ["orders:1", "orders:3"]
        assert [code for code, _ in errors(made)] == ["UNREADABLE", "UNLUCKY"]
        assert "the key is None" in errors(made)[0][1]


async def test_a_key_that_is_null_everywhere_is_no_key(dsn: str) -> None:
    """The setting is named instead of a thousand rows."""
    with pytest.raises(SettingsError, match="null in 3 rows") as raised:
        await read("select null::int as id from generate_series(1, 5)", rows_per_poll=3)
    assert raised.value.field == "key"


async def test_per_cents_and_comments_are_the_querys_own(dsn: str) -> None:
    """Nothing in it is a placeholder, and its end is its own."""
    (row,) = await read("select 1 as id, '10%' as t, 7 % 4 as m where 'a%sb' like 'a%b' -- all (of them\n;")
    assert row.values == {"id": 1, "t": "10%", "m": 3}


@pytest.mark.parametrize(
    ("query", "more", "field", "told"),
    [
        ("select 1 as ident", {}, "key", "Name a column that the query gives"),
        ("selec 1", {}, "query", "syntax error"),
        ("select * from nowhere", {}, "query", 'relation "nowhere" does not exist'),
        ("select 1 as id, 2 as a, 3 as a", {}, "query", "two columns 'a'. Rename one with AS"),
        ("select nextval('numbers') as id", {}, "query", "would write"),
        ("select 1 / 0 as id", {}, "query", "division by zero"),
    ],
)
async def test_a_query_that_does_not_hold(dsn: str, query: str, more: dict[str, Any], field: str, told: str) -> None:
    """Field, the server's words, and a remedy."""
    run(dsn, "create sequence numbers")
    with pytest.raises(SettingsError) as raised:
        await read(query, **more)
    assert raised.value.field == field
    assert told in str(raised.value)


async def test_it_reads_and_nothing_else(dsn: str) -> None:
    """The transaction is read only: a function that writes is refused by the server."""
    run(
        dsn,
        "create function spoil() returns int language sql as 'insert into orders values (9, 9) returning 1'",
    )
    with pytest.raises(SettingsError, match="would write"):
        await read("select spoil() as id")


async def test_a_query_that_takes_too_long_is_ended(dsn: str) -> None:
    """By the server, at the statement's time-out."""
    with pytest.raises(UnreachableError, match=r"longer than statement_timeout_s, 0\.05 s"):
        await read("select 1 as id, pg_sleep(60)", statement_timeout_s=0.05)


async def test_a_database_that_is_away(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place and the variable are told, the password is not; a server that says nothing holds nobody."""
    monkeypatch.setenv(VARIABLE, "postgresql://anna:s3cret@127.0.0.1:1/orders")
    with pytest.raises(UnreachableError) as raised:
        await read(ORDERS)
    assert "127.0.0.1:1/orders cannot be used" in str(raised.value)
    assert f"in variable '{VARIABLE}'" in str(raised.value)
    assert "s3cret" not in str(raised.value)
    monkeypatch.setenv(VARIABLE, "postgresql://anna:s3@cret/@x:y@host/db")
    with pytest.raises(SettingsError, match="is no URL of a database") as refused:
        await read(ORDERS)
    assert "cret" not in str(refused.value)


async def test_a_server_that_says_nothing_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait for a connection ends by itself."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv(VARIABLE, f"postgresql://anna@127.0.0.1:{port}/orders")
        with pytest.raises(UnreachableError, match="cannot be used"):
            await read(ORDERS, connect_timeout_s=0.1)
