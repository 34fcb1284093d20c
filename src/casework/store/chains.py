"""One link of a chain of steps: the end of one, what the run tells of it, and the claim of the next, in one statement.

It knows the expected case alone: a first attempt that ends well, and a next step that nobody has touched. Whatever else
is met writes nothing here and is said to the caller, who turns to the ledger itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from casework import ids
from casework.errors import ConflictError, RetryableError
from casework.projection import ContextEntry, EventEntry, RunEntry
from casework.store import queries
from casework.store.database import Connection
from casework.store.incidents import Before, tell_cleared
from casework.store.ledger import StepClaim, StepCommit
from casework.store.runlock import TERMINAL
from casework.store.writers import write_context, write_run
from casework.values import Plain, clean, dumps, plain

_SQL = queries.load("chains")
FIRST = 1
"""The only attempt that is made in a chain."""


class OvertakenError(RetryableError):
    """The step that was to be ended is no longer this attempt's: nothing was written."""


@dataclass(frozen=True, slots=True)
class Link:
    """What is to be written. `done` is the step that ends COMPLETED, in `done_turn`, with the `output` it leaves;
    `next` the one that begins, at the node of `run`."""

    tenant: str
    run_id: UUID
    events: Sequence[EventEntry] = ()
    run: RunEntry | None = None
    done: StepCommit | None = None
    done_turn: int = 0
    output: ContextEntry | None = None
    next: StepClaim | None = None


@dataclass(frozen=True, slots=True)
class _Met:
    """What the statement met, each part: whether it could be written. The run as it was before."""

    written: bool
    output: bool
    moved: bool
    claimed: bool
    status: str
    incident: Plain


async def write(conn: Connection, link: Link) -> bool:
    """Write a link, in the open transaction; whether the next step is claimed, as attempt 1.

    It is not where its row is there already, or the run has ended. The row of the run stays where it is newer.

    Raises:
        OvertakenError: the step that ends was claimed anew, or closed.
        ConflictError: there is no such run, or its row or output holds something else at this version.
    """
    key = {"tenant": link.tenant, "run_id": link.run_id}
    answers = await queries.together(conn, [(_SQL["lock"], key), (_SQL["link"], {**key, **_params(link)})])
    if not answers[1].rows:
        raise ConflictError(f"Run {link.run_id} of tenant {link.tenant!r} has no row.")
    met = _Met(*answers[1].rows[0][:6])
    if not met.written:
        assert link.done is not None
        raise OvertakenError(f"attempt {link.done.attempt} of {link.done.path} is no longer the current one")
    if link.output is not None and not met.output:
        await write_context(conn, link.tenant, link.run_id, link.output)
    if link.run is not None:
        await _told(conn, link, link.run, met)
    return met.claimed


async def _told(conn: Connection, link: Link, run: RunEntry, met: _Met) -> None:
    """What follows from how the run's row was met."""
    if met.moved:
        await tell_cleared(conn, link.tenant, link.run_id, Before(met.incident), run.at)
    elif met.status not in TERMINAL:
        await write_run(conn, link.tenant, link.run_id, run)


def _params(link: Link) -> dict[str, Any]:
    return {
        "events": Jsonb([_event(link.run_id, event) for event in link.events], dumps=dumps),
        **_end(link.run_id, link.done, link.done_turn, link.output),
        **_place(link.run),
        **_claim(link.run_id, link.next),
    }


def _event(run_id: UUID, event: EventEntry) -> dict[str, Plain]:
    data = clean(plain(event.data))
    return {
        "event_id": str(ids.event_id(run_id, event.path, event.kind)),
        "path": event.path,
        "kind": event.kind,
        "data": data.value,
        "cleaned": data.replaced,
        "at": event.at,
    }


def _end(run_id: UUID, done: StepCommit | None, turn: int, output: ContextEntry | None) -> dict[str, Any]:
    result, result_cleaned = _json(None if done is None else done.result)
    made = {
        "done_id": None if done is None else ids.step_id(run_id, done.path),
        "result": result,
        "result_cleaned": result_cleaned,
        "latency_ms": 0 if done is None else done.latency_ms,
        "done_turn": turn,
    }
    value, cleaned = (result, result_cleaned) if output is not None else (None, 0)
    return made | {
        "context_id": None if output is None else ids.derived_id(run_id, output.path, f"context:{output.key}"),
        "output_path": None if output is None else output.path,
        "output_key": None if output is None else output.key,
        "output_version": None if output is None else output.version,
        "output_value": value,
        "output_cleaned": cleaned,
        "output_at": None if output is None else output.at,
    }


def _place(run: RunEntry | None) -> dict[str, Any]:
    recommendation, cleaned = _json(None if run is None else run.recommendation)
    return {
        "version": -1 if run is None else run.version,
        "turn": 0 if run is None else run.turn,
        "node": None if run is None else run.current_node,
        "loop_count": 0 if run is None else run.loop_count,
        "recommendation": recommendation,
        "row_cleaned": cleaned,
        "at": None if run is None else run.at,
    }


def _claim(run_id: UUID, step: StepClaim | None) -> dict[str, Any]:
    arguments, cleaned = _json(None if step is None else step.arguments)
    return {
        "next_id": None if step is None else ids.step_id(run_id, step.path),
        "next_path": None if step is None else step.path,
        "name": None if step is None else step.name,
        "tool_version": None if step is None else step.tool_version,
        "hash": None if step is None else step.hash,
        "arguments": arguments,
        "arguments_cleaned": cleaned,
    }


def _json(value: Plain) -> tuple[Jsonb | None, int]:
    """A JSON column, and how much of it was replaced. None becomes SQL NULL."""
    made = clean(plain(value))
    return (None if made.value is None else Jsonb(made.value, dumps=dumps)), made.replaced
