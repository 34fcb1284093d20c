"""From the driver's errors to ours, by SQLSTATE.

Trouble of the connection, the server, its resources or its set-up is passing (StoreUnavailableError): an operator can
mend it, and no case is to end because a right was revoked for an hour. Where a statement is not ours but a project's, a
missing table or right is its own fault, and would be met for ever. A refused value is a FatalError that names it; a
broken constraint is a row that the write may not touch (ConflictError). By SQLSTATE and not by the driver's classes,
because those put "program limit exceeded" beside "connection lost".
"""

from __future__ import annotations

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from casework.errors import CaseworkError, ConflictError, FatalError, StoreUnavailableError

_PASSING_CLASSES = frozenset({"08", "26", "28", "40", "53", "55", "57", "58", "3D", "F0", "XX"})
"""Connection, prepared statements (a pooler is between), login, rollbacks (deadlock), resources (disk, connections),
locks, the operator, the system's files, the database, the server's configuration, the server's own faults."""
_READ_ONLY = "25006"
_SILENT = frozenset({"25P03", "25P04"})
_PASSING_STATES = frozenset({_READ_ONLY, "42P05"}) | _SILENT
"""A server that refuses writes, a pooler's prepared statement, a transaction that the server ended for its age."""
_RIGHT = "42501"
_SCHEMA_STATES = frozenset({"3F000", "42P01", "42703", "42883"})
_TOO_LONG = "57014"
_OF_STATEMENT = _SCHEMA_STATES | _SILENT | {_RIGHT, _TOO_LONG}
"""Of all that is passing: what is the statement's own, so that others may be run."""
CONNECTION_CLASSES = frozenset({"08", "57"})

Fault = psycopg.Error | PoolTimeout | PoolClosed | TooManyRequests


def translate(error: Fault, *, theirs: bool = False) -> CaseworkError:
    """The error that a caller of the store sees for `error`; `theirs`: the statement was a project's."""
    if not isinstance(error, psycopg.Error) or isinstance(error, (PoolTimeout, PoolClosed, TooManyRequests)):
        return StoreUnavailableError(
            f"No database connection is to be had: {error}. Check that PostgreSQL is up and the pool is large enough."
        )
    if theirs and error.sqlstate in _OF_STATEMENT:
        return FatalError(f"PostgreSQL could not run a statement ({error.sqlstate}): {_text(error)}. {_remedy(error)}")
    return _passing(error) if _is_passing(error) else _lasting(error)


def _remedy(error: psycopg.Error) -> str:
    if error.sqlstate in _SCHEMA_STATES:
        return "Create what is missing, or mend the statement."
    if error.sqlstate == _RIGHT:
        return "Grant it to the role of the worker."
    if error.sqlstate == _TOO_LONG:
        return "Let it do less at once."
    return (
        "Nothing was sent for too long within a database transaction. Do what is slow before it, as an input Monitor "
        "does in `prepare_input_entity`."
    )


def _is_passing(error: psycopg.Error) -> bool:
    state = error.sqlstate
    if state is None:
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return state[:2] in _PASSING_CLASSES or state in _PASSING_STATES | _SCHEMA_STATES | {_RIGHT}


def _passing(error: psycopg.Error) -> StoreUnavailableError:
    if error.sqlstate in _SCHEMA_STATES:
        return StoreUnavailableError(
            f"The schema is absent or older than this release: {_text(error)}. Run `casework migrate`.", statement=True
        )
    if error.sqlstate == _RIGHT:
        return StoreUnavailableError(
            f"The database role lacks a right{_where(error)}: {_text(error)}. Grant it, or use the role meant for it.",
            statement=True,
        )
    return StoreUnavailableError(
        f"PostgreSQL could not do it now ({error.sqlstate or 'connection lost'}): {_text(error)}. It is tried again.",
        statement=error.sqlstate in _OF_STATEMENT,
    )


def _lasting(error: psycopg.Error) -> FatalError:
    state = error.sqlstate or "driver"
    if state.startswith("23") and state != "23502":
        return ConflictError(f"The row may not be written{_where(error)}: {_text(error)}.")
    return FatalError(f"PostgreSQL refused a value ({state}){_where(error)}: {_text(error)}. Mend the value named.")


def _text(error: psycopg.Error) -> str:
    detail = error.diag.message_detail
    # A failing row is told whole by the server; what is in it is nobody's business but the row's.
    told = None if detail and detail.startswith("Failing row") else detail
    parts = (error.diag.message_primary or str(error), told)
    return " ".join(" ".join(part.split()).rstrip(".") + "." for part in parts if part).rstrip(".")


def _where(error: psycopg.Error) -> str:
    """The query (a note that `queries` left), the table, column and constraint, as far as they are known."""
    diag = error.diag
    column = f"{diag.table_name}.{diag.column_name}" if diag.column_name else diag.table_name
    known = (*getattr(error, "__notes__", ()), column, diag.constraint_name)
    named = ", ".join(part for part in known if part)
    return f" in {named}" if named else ""


def is_connection_trouble(error: BaseException) -> bool:
    """Whether the other idle connections of the pool are probably dead too, or of as little use."""
    if takes_no_writes(error):
        return True
    if not isinstance(error, psycopg.OperationalError):
        return False
    state = error.sqlstate
    return state is None or (state[:2] in CONNECTION_CLASSES and state != "57014")


def takes_no_writes(error: BaseException) -> bool:
    """Whether the server is read-only: after a failover, another one behind the same address may be written to."""
    return isinstance(error, psycopg.Error) and error.sqlstate == _READ_ONLY
