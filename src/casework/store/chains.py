"""One link of a chain of steps: the end of one, what the run tells of it, and the claim of the next, in one statement.

It knows the expected case alone: a first attempt that ends well, and a next step that nobody has touched. Whatever else
is met writes nothing here and is said to the caller, who turns to the ledger itself. The statement is a function of the
database (migrations `links`, `computed_steps`), so that a link by itself is one trip to the server: parameters, writes
and commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from casework import ids
from casework.errors import ConflictError, RetryableError
from casework.projection import ContextEntry, EventEntry, RunEntry
from casework.store import queries
from casework.store.database import Connection, Database
from casework.store.incidents import Before, tell_cleared
from casework.store.ledger import StepClaim, StepCommit
from casework.store.runlock import TERMINAL
from casework.store.writers import write_context, write_run
from casework.values import Plain, clean, dumps, plain, unchanged

_SQL = queries.load("chains")
FIRST = 1
"""The only attempt that is made in a chain."""


class OvertakenError(RetryableError):
    """The step that was to be ended is no longer this attempt's, or has a row without a claim: nothing was written."""


@dataclass(frozen=True, slots=True)
class Link:
    """What is to be written. `done` is the step that ends COMPLETED, in `done_turn`, with the `output` it leaves,
    its result; `unclaimed` what it was asked for, where nobody has claimed it: it gets its row now. `next` is the one
    that begins, at the node of `run`."""

    tenant: str
    run_id: UUID
    events: Sequence[EventEntry] = ()
    run: RunEntry | None = None
    done: StepCommit | None = None
    done_turn: int = 0
    unclaimed: StepClaim | None = None
    output: ContextEntry | None = None
    next: StepClaim | None = None


@dataclass(frozen=True, slots=True)
class _Met:
    """What the statement met, as the function says."""

    met: Literal["written", "odd", "overtaken"]
    output_written: bool
    run_moved: bool
    claimed: bool
    run_status: str
    flag: Plain


async def write_alone(db: Database, link: Link) -> bool:
    """Write a link by itself, committed; whether the next step is claimed, as attempt 1. Raises as `write`, and

    Raises:
        StoreUnavailableError: as `Database.transaction`.
    """
    async with db.autocommit() as conn:
        met = await _written(conn, link, whole=False)
    if met.met != "odd":
        return met.claimed
    async with db.transaction() as conn:
        return await write(conn, link)


async def write(conn: Connection, link: Link) -> bool:
    """Write a link in the open transaction; whether the next step is claimed, as attempt 1.

    It is not where its row is there already, or the run has ended. The row of the run stays where it is newer.

    Raises:
        OvertakenError: the step that ends was claimed anew, or closed; or it was not claimed, and has a row all the
            same, or its run has ended.
        ConflictError: there is no such run, or its row or output holds something else at this version.
    """
    met = await _written(conn, link, whole=True)
    if link.output is not None and not met.output_written:
        await write_context(conn, link.tenant, link.run_id, link.output)
    if link.run is not None:
        await _told(conn, link, link.run, met)
    return met.claimed


async def _written(conn: Connection, link: Link, *, whole: bool) -> _Met:
    params = {"tenant": link.tenant, "run_id": link.run_id, "link": _text(link), "whole": whole}
    met = await queries.one(conn, _SQL["link"], params, _Met)
    if met is None:
        raise ConflictError(f"Run {link.run_id} of tenant {link.tenant!r} has no row.")
    if met.met == "overtaken":
        assert link.done is not None
        raise OvertakenError(f"attempt {link.done.attempt} of {link.done.path} is no longer the current one")
    return met


async def _told(conn: Connection, link: Link, run: RunEntry, met: _Met) -> None:
    """What follows from how the run's row was met."""
    if met.run_moved:
        await tell_cleared(conn, link.tenant, link.run_id, Before(met.flag), run.at)
    elif met.run_status not in TERMINAL:
        # A row that is newer is no surprise: the run has told of itself meanwhile, or a segment walks here again.
        await write_run(conn, link.tenant, link.run_id, run, superseded=True)


_Held = Callable[[str, Any], dict[str, Plain]]
"""A value under its name as the database can hold it, absent where it is None, and how much of it was replaced."""


def _text(link: Link) -> str:
    """The link as the function takes it. As a rule nothing in it is replaced, and it is looked through only once."""
    return unchanged(_parts(link, _as_it_is)) or dumps(_parts(link, _cleaned))


def _as_it_is(name: str, value: Any) -> dict[str, Plain]:
    return {"cleaned": 0} if value is None else {"cleaned": 0, name: value}


def _cleaned(name: str, value: Any) -> dict[str, Plain]:
    made = clean(plain(value))
    return {"cleaned": made.replaced} if made.value is None else {"cleaned": made.replaced, name: made.value}


def _parts(link: Link, held: _Held) -> dict[str, Plain]:
    """The link as the function takes it; what it has not is absent."""
    run_id, run = link.run_id, link.run
    parts: dict[str, Plain] = {"events": [_event(run_id, event, held) for event in link.events]}
    if link.done is not None:
        parts |= _end(link, link.done, held)
    if run is not None:
        parts["run"] = held("recommendation", run.recommendation) | {
            "version": run.version,
            "turn": run.turn,
            "node": run.current_node,
            "loop_count": run.loop_count,
            "at": run.at,
        }
    if link.next is not None:
        parts["next"] = _step(run_id, link.next, held)
    return parts


def _end(link: Link, done: StepCommit, held: _Held) -> dict[str, Plain]:
    output, result = link.output, held("result", done.result)
    step = {"id": ids.derived_text(link.run_id, done.path), "turn": link.done_turn, "cleaned": 0}
    if link.unclaimed is not None:
        step = _step(link.run_id, link.unclaimed, held)
    ended = step | result | {"latency_ms": done.latency_ms, "cleaned": step["cleaned"] + result["cleaned"]}
    if output is None:
        return {"done": ended}
    return {
        "done": ended,
        "output": {
            "id": ids.derived_text(link.run_id, output.path, f"context:{output.key}"),
            "path": output.path,
            "key": output.key,
            "version": output.version,
            "cleaned": result["cleaned"],
            "at": output.at,
        },
    }


def _step(run_id: UUID, step: StepClaim, held: _Held) -> dict[str, Plain]:
    return held("arguments", step.arguments) | {
        "id": ids.derived_text(run_id, step.path),
        "path": step.path,
        "name": step.name,
        "turn": step.turn,
        "node": step.node,
        "tool_version": step.tool_version,
        "hash": step.hash,
    }


def _event(run_id: UUID, event: EventEntry, held: _Held) -> dict[str, Plain]:
    return held("data", event.data) | {
        "id": ids.derived_text(run_id, event.path, f"event:{event.kind}"),
        "path": event.path,
        "kind": event.kind,
        "at": event.at,
    }
