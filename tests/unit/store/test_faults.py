"""From the driver's errors to ours."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import PoolTimeout

from casework.errors import ConflictError, FatalError, StoreUnavailableError
from casework.store.faults import is_connection_trouble, translate

PASSING = [
    psycopg.OperationalError("server closed the connection unexpectedly"),
    psycopg.InterfaceError("the connection is closed"),
    PoolTimeout("couldn't get a connection after 5.00 sec"),
    errors.AdminShutdown("terminating connection"),
    errors.CannotConnectNow("the database system is starting up"),
    errors.TooManyConnections("sorry, too many clients already"),
    errors.DeadlockDetected("deadlock detected"),
    errors.SerializationFailure("could not serialize access"),
    errors.QueryCanceled("canceling statement due to statement timeout"),
    errors.LockNotAvailable("lock timeout"),
    errors.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction"),
    errors.IdleInTransactionSessionTimeout("idle too long"),
    errors.DiskFull("no space left"),
    errors.UndefinedTable("relation does not exist"),
    errors.InsufficientPrivilege("permission denied"),
    errors.CrashShutdown("terminating because of a crash of another process"),
    errors.InvalidPassword("password authentication failed"),
    errors.InvalidCatalogName("database does not exist"),
    errors.IoError("could not read block 3"),
    errors.ConfigFileError("bad configuration"),
    errors.InvalidSqlStatementName("prepared statement does not exist"),
    errors.DuplicatePreparedStatement("prepared statement already exists"),
    errors.DataCorrupted("invalid page"),
    errors.InternalError_("cache lookup failed"),
]
LASTING = [
    errors.NumericValueOutOfRange("integer out of range"),
    errors.InvalidDatetimeFormat("invalid input syntax"),
    errors.ProgramLimitExceeded("index row size exceeds maximum"),
    errors.StatementTooComplex("stack depth limit exceeded"),
    errors.NotNullViolation("null value"),
    psycopg.DataError("no text form"),
    psycopg.ProgrammingError("incomplete placeholder"),
]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_passing_trouble_is_retryable(error: psycopg.Error) -> None:
    """DA-18. What will be over by itself is tried again."""
    made = translate(error)
    assert isinstance(made, StoreUnavailableError)
    assert made.retryable


@pytest.mark.parametrize("error", LASTING, ids=lambda error: type(error).__name__)
def test_what_would_be_so_again_is_not_retried(error: psycopg.Error) -> None:
    """DA-18. A refused value is fatal and never retried, even where the driver calls it operational."""
    made = translate(error)
    assert isinstance(made, FatalError)
    assert not made.retryable


OF_STATEMENT = [
    (errors.UndefinedTable("no relation"), "Create what is missing"),
    (errors.UndefinedColumn("no column"), "Create what is missing"),
    (errors.UndefinedFunction("no function"), "Create what is missing"),
    (errors.InvalidSchemaName("no schema"), "Create what is missing"),
    (errors.InsufficientPrivilege("permission denied"), "Grant it"),
    (errors.QueryCanceled("statement timeout"), "Let it do less"),
    (errors.IdleInTransactionSessionTimeout("idle too long"), "prepare_input_entity"),
]


@pytest.mark.parametrize(("error", "told"), OF_STATEMENT, ids=lambda each: type(each).__name__)
def test_what_is_the_fault_of_a_statement_is_that_of_whose_it_is(error: psycopg.Error, told: str) -> None:
    """BP-20: ours is mended by an operator and tried again; a project's own would be tried for ever."""
    ours, theirs = translate(error), translate(error, theirs=True)
    assert isinstance(ours, StoreUnavailableError)
    assert ours.statement
    assert isinstance(theirs, FatalError)
    assert told in str(theirs)


def test_a_database_that_is_away_is_nobodys_fault() -> None:
    """BP-20: whose statement ever it was that met it."""
    of_statement = {type(error) for error, _ in OF_STATEMENT}
    for error in PASSING:
        if type(error) not in of_statement:
            made = translate(error, theirs=True)
            assert isinstance(made, StoreUnavailableError)
            assert not made.statement


@pytest.mark.parametrize("error", [errors.UniqueViolation("twice"), errors.CheckViolation("stays so")])
def test_broken_rule_is_a_conflict(error: psycopg.Error) -> None:
    """DA-25. A row that may not be written is a conflict."""
    assert isinstance(translate(error), ConflictError)


def test_message_names_the_query() -> None:
    """The note that a query leaves on its error is in our message."""
    error = errors.NumericValueOutOfRange("integer out of range")
    error.add_note("runs.create_pending")
    assert "in runs.create_pending: integer out of range" in str(translate(error))


def test_only_a_broken_connection_speaks_for_the_others() -> None:
    """A time-out of one statement does not drain the pool; a lost server does."""
    assert is_connection_trouble(psycopg.OperationalError("connection refused"))
    assert is_connection_trouble(errors.AdminShutdown("bye"))
    assert is_connection_trouble(errors.ReadOnlySqlTransaction("cannot execute INSERT"))
    assert not is_connection_trouble(errors.QueryCanceled("too long"))
    assert not is_connection_trouble(errors.UniqueViolation("twice"))
