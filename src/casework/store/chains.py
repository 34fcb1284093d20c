"""One link of a chain of steps: the end of one, what the run tells of it, and the claim of the next, in one go.

All statements travel together and are answered together. They are the ledger's and the projection's own, for the
expected case alone: a first attempt that ends well, and a next step that nobody has touched. Whatever else is met
writes nothing here and is said to the caller, who turns to the ledger itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from casework import ids
from casework.errors import RetryableError
from casework.projection import ContextEntry, EventEntry, RunEntry
from casework.store import queries
from casework.store.attempts import Figures
from casework.store.database import Connection
from casework.store.incidents import Before, tell_cleared
from casework.store.ledger import StepClaim, StepCommit, claim_params, commit_params
from casework.store.rollups import Change
from casework.store.runlock import TERMINAL
from casework.store.writers import context_params, run_params, write_context, write_run
from casework.values import Plain

Statement = tuple[queries.Query, queries.Params]
Rows = Sequence[tuple[Any, ...]]
FIRST = 1
"""The only attempt that is made in a chain."""


class OvertakenError(RetryableError):
    """The step that was to be ended is no longer this attempt's: nothing was written."""


@dataclass(frozen=True, slots=True)
class Link:
    """What is to be written. `done` is the step that ends, with its turn; `next` the one that begins."""

    tenant: str
    run_id: UUID
    events: Sequence[EventEntry] = ()
    outputs: Sequence[ContextEntry] = ()
    run: RunEntry | None = None
    done: StepCommit | None = None
    turn: int = 0
    next: StepClaim | None = None


async def write(conn: Connection, link: Link) -> bool:
    """Write a link, in the open transaction; whether the next step is claimed, as attempt 1.

    It is not where its row is there already, or the run has ended. The row of the run stays where it is newer.

    Raises:
        OvertakenError: the step that ends was claimed anew, or closed; roll back.
        ConflictError: the run's row holds something else at this version.
    """
    parts = _parts(link)
    found = dict(zip(parts, await queries.together(conn, list(parts.values())), strict=True))
    if link.done is not None and not found["commit"].count:
        raise OvertakenError(f"attempt {link.done.attempt} of {link.done.path} is no longer the current one")
    for output in link.outputs:
        if not found[_name(output)].count:
            await write_context(conn, link.tenant, link.run_id, output)
    if link.run is not None:
        await _told(conn, link, link.run, found["run"].rows, found["lock"].rows)
    return link.next is not None and bool(found["claim_first"].count)


async def _told(conn: Connection, link: Link, run: RunEntry, written: Rows, before: Rows) -> None:
    """What follows from how the run's row was met."""
    if written:
        await tell_cleared(conn, link.tenant, link.run_id, Before(written[0][0]), run.at)
    elif before and before[0][0] not in TERMINAL:
        await write_run(conn, link.tenant, link.run_id, run)


def _parts(link: Link) -> dict[str, Statement]:
    """The statements by name. The run's row is locked first, as everywhere."""
    key = {"tenant": link.tenant, "run_id": link.run_id}
    parts: dict[str, Statement] = {"lock": (queries.load("runs")["lock"], key)}
    if link.done is not None:
        parts |= _end(link.done, link.turn)
    for output in link.outputs:
        made = context_params(link.tenant, link.run_id, output)
        parts[_name(output)] = queries.load("writers")["context"], made
    if link.events:
        given = [_event(link.run_id, event) for event in link.events]
        parts["events"] = queries.load("events")["add_many"], queries.Writing(**key).json(events=given)
    if link.run is not None:
        parts["run"] = queries.load("writers")["run"], run_params(link.tenant, link.run_id, link.run)
    if link.next is not None:
        step_id = ids.step_id(link.run_id, link.next.path)
        parts["claim_first"] = queries.load("ledger")["claim_first"], claim_params(link.next, step_id)
    return parts


def _end(done: StepCommit, turn: int) -> dict[str, Statement]:
    """A first attempt ends well: its step, itself, and the roll-ups, to which it has added nothing before."""
    held = Figures(None, done.latency_ms, 0, 0, done.cost).held()
    key = {"tenant": done.tenant, "step_id": ids.step_id(done.run_id, done.path), "attempt": done.attempt}
    attempt = queries.Writing(**key, outcome=done.state, error=None, **held).json(result=None)
    change = Change(tool_calls=1, attempts_completed=1, latency_ms=int(held["latency_ms"]))
    added = {"tenant": done.tenant, "run_id": done.run_id, "turn": turn, **asdict(change)}
    return {
        "commit": (queries.load("ledger")["commit"], commit_params(done)),
        "end_attempt": (queries.load("ledger")["end_attempt"], attempt),
        "roll_up": (queries.load("metrics")["roll_up"], added),
    }


def _name(output: ContextEntry) -> str:
    return f"context {output.path}"


def _event(run_id: UUID, event: EventEntry) -> dict[str, Plain]:
    cleaned = queries.Writing(path=event.path, kind=event.kind).json(data=event.data)
    return {
        "event_id": ids.event_id(run_id, event.path, event.kind),
        "path": cleaned["path"],
        "kind": cleaned["kind"],
        "data": event.data,
        "cleaned": cleaned["cleaned"],
        "at": event.at,
    }
