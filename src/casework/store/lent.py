"""An open transaction in the hands of code that is not ours: a transactional tool writes, and cannot end it.

The borrower gets a facade with the statements alone. Each statement is sent by itself (the server refuses a second one
behind it) inside a savepoint, so that an SQL error which the borrower catches breaks nothing. What ends or reconfigures
the session is refused by its first word; because words can be hidden, the transaction and its role are compared at the
end, and nothing is committed as good when they are others.

What is sent around the statements goes together, to save trips: nothing at all before the first statement, then the two
savepoints at once; the savepoint of a statement is left to the next one, or to the end, which releases all.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection, AsyncCursor, sql
from psycopg.rows import AsyncRowFactory

from casework.errors import FatalError, RetryableError
from casework.store.connection import BoundedConnection
from casework.store.database import Database
from casework.store.roles import RUNTIME

_GAP = re.compile(r"\s+|;|--[^\n]*")
_WORDS = re.compile(r"[a-z_]+")
_REFUSED = frozenset(
    {"abort", "begin", "commit", "deallocate", "discard", "end", "listen", "load", "prepare", "release", "reset"}
    | {"rollback", "savepoint", "set", "start", "unlisten"}
)
_NO_RIGHT = "42501"
_ENDED = frozenset({"25P01", "25P02", "2D000", "3B001"})
"""No transaction or no such savepoint is there: the borrower ended what was lent."""
_IDENTITY = b"select pg_current_xact_id_if_assigned()::text, current_user::text, session_user::text"
_BEGIN = b"savepoint casework_lent; " + _IDENTITY
_STEP = b"savepoint casework_step"
_STEPPED = b"release savepoint casework_step"
_UNDO_STEP = b"rollback to savepoint casework_step; " + _STEPPED
_UNDO = b"rollback to savepoint casework_lent; release savepoint casework_lent"
# Constraints checked at once stay so to the end of the transaction; our roll-ups would lock their shared rows from now
# on, and not at the commit alone.
_OURS_LATER = (
    b"set constraints agent_ops.agent_runs_roll_up, agent_ops.agent_run_metrics_roll_up,"
    b" agent_ops.agent_step_attempts_roll_up, agent_ops.agent_step_attempts_roll_up_ended deferred"
)
_ENDING = "Commit, rollback and settings of the session belong to the engine"

Statement = str | bytes | sql.SQL | sql.Composed


class LentCursor:
    """Rows of one statement, or more of them in the same transaction."""

    def __init__(self, owner: LentTransaction, cursor: AsyncCursor[Any]) -> None:
        self._owner = owner
        self.__cursor = cursor

    async def __aenter__(self) -> LentCursor:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.__cursor.close()

    async def execute(self, statement: Statement, params: Any = None) -> LentCursor:
        """Run one statement; `params` fill its placeholders.

        Raises:
            FatalError: the statement would end or reconfigure the transaction, or the transaction is over.
            psycopg.Error: the server refused it; the transaction goes on without it.
        """
        async with self._owner.step(statement):
            # Prepared, a text can hold one statement only: no `; commit` gets in behind it.
            await self.__cursor.execute(_encoded(statement), params, prepare=True)
        return self

    async def executemany(self, statement: Statement, params: Iterable[Any]) -> None:
        """Run one statement for each of `params`: all of them, or none where one fails. Raises as `execute` does."""
        async with self._owner.step(statement):
            await self.__cursor.executemany(_encoded(statement), list(params))

    async def fetchone(self) -> Any:
        """The next row, or None."""
        return await self.__cursor.fetchone()

    async def fetchmany(self, size: int = 0) -> list[Any]:
        """At most `size` of the next rows."""
        return await self.__cursor.fetchmany(size)

    async def fetchall(self) -> list[Any]:
        """The rows that are left."""
        return await self.__cursor.fetchall()

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for row in self.__cursor:
            yield row

    @property
    def rowcount(self) -> int:
        """Rows that the last statement touched or found."""
        return self.__cursor.rowcount

    @property
    def description(self) -> list[psycopg.Column] | None:
        """The columns of the last statement's rows."""
        return self.__cursor.description


class LentTransaction:
    """What a transactional tool has as `ctx.connection`: statements in the transaction of its ledger row."""

    def __init__(self, conn: AsyncConnection[Any]) -> None:
        self.__conn: AsyncConnection[Any] | None = conn
        self.__turn = asyncio.Lock()
        self.__identity: Any = None
        """Of the transaction as it was lent; None before the first statement."""
        self.__stepped = False
        """Whether the savepoint of a statement is there still."""

    def cursor(self, *, row_factory: AsyncRowFactory[Any] | None = None) -> LentCursor:
        """A cursor; `row_factory` as psycopg's own (`dict_row`, for example)."""
        conn = self._open()
        return LentCursor(self, conn.cursor(row_factory=row_factory) if row_factory else conn.cursor())

    async def execute(self, statement: Statement, params: Any = None) -> LentCursor:
        """Run one statement; see `LentCursor.execute`."""
        return await self.cursor().execute(statement, params)

    async def executemany(self, statement: Statement, params: Iterable[Any]) -> None:
        """Run one statement for each of `params`; see `LentCursor.executemany`."""
        await self.cursor().executemany(statement, params)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Statements that belong together: an error in the block undoes the block, and no more than that."""
        async with self.__turn:
            conn = await self._begun()
        try:
            async with conn.transaction():
                yield
        finally:
            self.__stepped = False  # it went with the block

    @asynccontextmanager
    async def step(self, statement: Statement) -> AsyncIterator[None]:
        """One statement at a time, in a savepoint of its own."""
        _check(statement)
        async with self.__turn:
            conn = await self._begun(_STEP)
            try:
                yield
            except BaseException:
                self.__stepped = False
                await _undo(conn, _UNDO_STEP)
                raise

    async def start(self) -> None:
        """Take down what is lent, before it is."""
        async with self.__turn:
            await self._begun()

    async def _begun(self, then: bytes = b"") -> AsyncConnection[Any]:
        """The connection, lent from now on if it was not before, after `then`."""
        conn = self._open()
        first = self.__identity is None
        before = _BEGIN if first else _STEPPED if self.__stepped else b""
        if before or then:
            cursor = await _send(conn, b"; ".join(part for part in (before, then) if part))
            if first:
                cursor.nextset()
                self.__identity = await cursor.fetchone()
        self.__stepped = bool(then)
        return conn

    async def end(self) -> Any:
        """Take it back; what the borrower left running finds it over. The identity of what was lent, None if unused."""
        async with self.__turn:
            self.__conn = None
        return self.__identity

    def _open(self) -> AsyncConnection[Any]:
        if self.__conn is None:
            raise FatalError("ctx.connection was used after its tool had ended. Await every statement inside the tool.")
        return self.__conn


@asynccontextmanager
async def lent(conn: AsyncConnection[Any], *, sure: bool = True) -> AsyncIterator[LentTransaction]:
    """Lend the transaction that is open on `conn` for the length of the block; an error undoes what the block wrote.

    Without `sure` one that was not used is not looked at, and costs nothing: for a caller who finds out another way
    that the transaction is still the same.

    Raises:
        FatalError: the borrower ended the transaction or changed its role; it must not be committed.
        RetryableError: the connection broke while it was lent, or a deferred constraint was not met at the end.
    """
    if isinstance(conn, BoundedConnection):
        conn.lent = True
    handle = LentTransaction(conn)
    try:
        if sure:
            await handle.start()
        try:
            yield handle
        except BaseException:
            if await handle.end() is not None:
                await _undo(conn, _UNDO)
            raise
        before = await handle.end()
        after = None if before is None else await _taken_back(conn)
    except psycopg.Error as error:
        raise _ended(error) from error
    if after != before:
        raise FatalError(f"A transactional tool or task ended its transaction or changed its role. {_ENDING}; mend it.")
    if after is not None:
        await conn.execute(_OURS_LATER)


async def _taken_back(conn: AsyncConnection[Any]) -> Any:
    """Check what was left for the commit, release all savepoints, and tell the identity of what is there now."""
    cursor = await _send(conn, b"set constraints all immediate; release savepoint casework_lent; " + _IDENTITY)
    while cursor.nextset():
        pass
    return await cursor.fetchone()


@asynccontextmanager
async def lent_alone(database: Database, *, keep: bool = True) -> AsyncIterator[LentTransaction]:
    """Lend a transaction that has no row of ours in it: for one Task by itself. Without `keep` it is rolled back.

    Raises:
        StoreUnavailableError: the database cannot be reached.
        FatalError, RetryableError: as `lent`.
    """
    async with database.transaction() as conn, conn.transaction(force_rollback=not keep):
        await conn.execute(b"select pg_current_xact_id()")  # so that a first write is no change of the transaction
        async with lent(conn) as handle:
            yield handle


async def _send(conn: AsyncConnection[Any], statements: bytes) -> AsyncCursor[Any]:
    """Several statements in one trip, without parameters; the results of all."""
    return await conn.execute(statements, prepare=False)


async def _undo(conn: AsyncConnection[Any], statements: bytes) -> None:
    """Go back to a savepoint, if it is there; the error that is on its way tells more than one that is met here."""
    with suppress(psycopg.Error):
        await _send(conn, statements)


def _ended(error: psycopg.Error) -> FatalError | RetryableError:
    told = f"({error.sqlstate or type(error).__name__}): {error.diag.message_primary or error}"
    if error.sqlstate in _ENDED:
        return FatalError(f"A transactional tool or task ended its transaction {told}. {_ENDING}; mend it.")
    remedy = f" Grant the right to the role {RUNTIME}." if error.sqlstate == _NO_RIGHT else ""
    return RetryableError(f"The transaction of a tool or task broke {told}. Nothing of it was kept.{remedy}")


def _check(statement: Statement) -> None:
    first, second = _first_words(_text(statement))
    if first in _REFUSED and (first, second) != ("set", "constraints"):
        raise FatalError(
            f"A transactional tool or task sent {first.upper()!r}. {_ENDING}: return to commit, raise to roll back, "
            "and use `async with ctx.connection.transaction()` for a part that may fail."
        )


def _text(statement: Statement) -> str:
    if isinstance(statement, sql.Composable):
        return statement.as_string(None)
    return statement if isinstance(statement, str) else statement.decode(errors="replace")


def _encoded(statement: Statement) -> bytes | sql.SQL | sql.Composed:
    return statement.encode() if isinstance(statement, str) else statement


def _first_words(text: str) -> tuple[str, str]:
    first, rest = _word(text)
    return first, _word(rest)[0]


def _word(text: str) -> tuple[str, str]:
    """The word that `text` begins with, comments and blanks apart, and what follows it."""
    at = 0
    while at < len(text):
        if text.startswith("/*", at):
            at = _past_comment(text, at)
        elif gap := _GAP.match(text, at):
            at = gap.end()
        else:
            break
    found = _WORDS.match(text[at:].lower())
    return (found[0], text[at + len(found[0]) :]) if found else ("", "")


def _past_comment(text: str, at: int) -> int:
    """Where the comment that begins at `at` ends; the server lets comments nest."""
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text[at:]):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return at + mark.end()
    return len(text)
