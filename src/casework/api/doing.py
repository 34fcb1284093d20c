"""What a run is doing, in one word and one sentence: an intended wait told apart from a retry, a fault, work, an end.

Rows say most of it. A run that does not move is asked about at the engine too, because a step that waits for the
database or for a worker has nobody to write a row. Where the engine does not answer the rows alone speak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from casework.api.services import Services
from casework.durable.in_hand import InHand, StoreFault, TaskFault, Workers
from casework.durable.policies import POLICIES
from casework.durable.workflows.operations import activity_id
from casework.store.rows import AttemptRow, ReviewRow, RunRow, StepRow
from casework.store.waits import SubRunRow, WaitRow
from casework.values import Plain, instant

TOLD_WAITS = 20
"""Waits that are named; the others are counted."""
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
MOVES = timedelta(seconds=2)
"""A run whose rows have changed within this time moves, and the engine is not asked."""
QUEUED = timedelta(seconds=5)
"""A step that no worker has taken for this long waits for one; less is the ordinary way through the queue."""


@dataclass(frozen=True)
class Doing:
    """`shapes.Doing`."""

    kind: str
    text: str
    steps: tuple[str, ...] = ()
    since: datetime | None = None
    next_attempt_at: datetime | None = None

    def plain(self) -> dict[str, Plain]:
        """As an answer holds it."""
        return {
            "kind": self.kind,
            "text": self.text,
            "steps": list(self.steps),
            "since": instant(self.since) if self.since else None,
            "next_attempt_at": instant(self.next_attempt_at) if self.next_attempt_at else None,
        }


@dataclass(frozen=True)
class Rows:
    """What the database says of a run: its newest steps with attempts, newest review, open waits and open sub-runs."""

    run: RunRow
    steps: Sequence[StepRow]
    attempts: Sequence[AttemptRow] = ()
    review: ReviewRow | None = None
    waits: Sequence[WaitRow] = ()
    below: Sequence[SubRunRow] = ()

    @property
    def open_steps(self) -> list[StepRow]:
        """Steps that have begun and have not ended."""
        return [step for step in self.steps if step.state == "STARTED"]

    @property
    def tried_again(self) -> list[StepRow]:
        """Open steps of which an attempt did not succeed."""
        return [step for step in self.open_steps if step.attempt > 1 or step.error]

    def changed_at(self) -> datetime:
        """When a row of it was written last."""
        return max([self.run.updated_at, *(step.updated_at for step in self.steps)])


async def look(services: Services, rows: Rows, now: datetime | None = None) -> Doing:
    """What the run is doing, by its rows and, where it looks idle, by the engine."""
    now = now or datetime.now(UTC)
    by_rows = of_rows(rows)
    idle = bool(rows.tried_again) or now - rows.changed_at() > MOVES
    if by_rows.kind not in {"starting", "working", "retrying", "waiting_for_person", "waiting"} or not idle:
        return by_rows
    held = await services.runs.in_hand(str(rows.run.run_id))
    if held is None:
        return by_rows
    queued = held.queued_since()
    workers = await services.runs.workers() if queued and now - queued > QUEUED else None
    return of_engine(by_rows, rows.open_steps, held, workers, now)


def of_rows(rows: Rows) -> Doing:
    """By the database alone."""
    row, again = rows.run, rows.tried_again
    if row.status in ENDED:
        failed = tuple(step.path for step in rows.steps if step.state == "FAILED")
        at = f"it ended at {instant(row.ended_at)}" if row.ended_at else "it ended"
        return Doing("ended", at, failed if row.status == "FAILED" else (), row.ended_at)
    if row.incident:
        return Doing("incident", _incident(row.incident))
    if row.status == "PENDING":
        return Doing("starting", "accepted, not yet started by the engine", since=row.created_at)
    if row.status == "AWAITING_REVIEW":
        since = rows.review.created_at if rows.review else row.updated_at
        return Doing("waiting_for_person", "it waits for a person, as intended", since=since)
    if again:
        text = "; ".join(_again(step, rows.attempts) for step in again)
        return Doing("retrying", text, _paths(again), min(step.started_at for step in again))
    return _idle_or_working(rows)


def _idle_or_working(rows: Rows) -> Doing:
    if rows.waits and not rows.open_steps:
        text = "; ".join(_wait(each) for each in rows.waits[:TOLD_WAITS])
        more = f"; and {len(rows.waits) - TOLD_WAITS} more" if len(rows.waits) > TOLD_WAITS else ""
        return Doing("waiting", f"it waits, as intended: {text}{more}", _wait_paths(rows.waits), rows.waits[0].at)
    if rows.below and not rows.open_steps:
        text = "; ".join(
            f"{each.path} waits for run {each.run_id} of {each.workflow}" for each in rows.below[:TOLD_WAITS]
        )
        more = f"; and {len(rows.below) - TOLD_WAITS} more" if len(rows.below) > TOLD_WAITS else ""
        paths = tuple(each.path for each in rows.below[:TOLD_WAITS])
        return Doing("working", f"{text}{more}", paths, rows.below[0].at)
    names = ", ".join(step.name for step in rows.open_steps)
    since = min((step.started_at for step in rows.open_steps), default=rows.changed_at())
    return Doing("working", f"{names} under way" if names else "between two steps", _paths(rows.open_steps), since)


def _incident(incident: Plain) -> str:
    reason = incident.get("reason") if isinstance(incident, dict) else None
    return f"an incident holds it: {reason}" if reason else "an incident holds it until the right build runs"


def _wait(wait: WaitRow) -> str:
    parts = [f"for the signal {wait.signal}"] if wait.signal else []
    parts += [f"until {wait.until}"] if wait.until else []
    return f"{wait.path} {' or '.join(parts)}"


def _wait_paths(waits: Sequence[WaitRow]) -> tuple[str, ...]:
    return tuple(wait.path for wait in waits[:TOLD_WAITS])


def _paths(steps: Sequence[StepRow]) -> tuple[str, ...]:
    return tuple(step.path for step in steps)


def _again(step: StepRow, attempts: Sequence[AttemptRow]) -> str:
    reasons = [one.error for one in attempts if one.step_id == step.step_id and one.error]
    cause = step.error or (reasons[-1] if reasons else "the attempt before was lost with its worker")
    return f"{step.name} is tried again (attempt {attempt_of(step.attempt, step.kind)}): {cause}"


def attempt_of(attempt: int, kind: str) -> str:
    """`2 of 3`; the number alone beyond what one round of its retry policy has."""
    policy = POLICIES.get(kind)
    return f"{attempt} of {policy.attempts}" if policy and attempt <= policy.attempts else str(attempt)


def of_engine(
    by_rows: Doing, open_steps: Sequence[StepRow], held: InHand, workers: Workers | None, now: datetime
) -> Doing:
    """By what the engine has in hand; `by_rows` where that explains nothing more."""
    if held.task_fault is not None:
        return _task_fault(held.task_fault)
    if faults := held.waiting_for_store({activity_id(step.path): step.updated_at for step in open_steps}):
        return _store_fault(faults)
    queued = held.queued_since()
    if queued is not None and workers is not None:
        return _queued(by_rows, queued, workers, now)
    due = [step.next_attempt_at for step in held.pending if step.state == "delayed" and step.next_attempt_at]
    if by_rows.kind == "retrying" and due:
        return replace(by_rows, next_attempt_at=min(due))
    return by_rows


def _task_fault(fault: TaskFault) -> Doing:
    """Told at the first failure; the flag of an incident comes when the engine has reported several."""
    mend = "it goes on when a worker of the build that fits is there" if fault.unfit else "see the workers' log"
    return Doing("incident", f"no worker can advance it: {fault.reason}; {mend}", since=fault.at)


def _store_fault(faults: Sequence[StoreFault]) -> Doing:
    first = faults[0]
    names = tuple(dict.fromkeys(fault.step for fault in faults if fault.step))
    text = f"{', '.join(names) or 'a step'} waits for the database, and uses no attempt: {first.reason}"
    due = [fault.next_attempt_at for fault in faults if fault.next_attempt_at]
    return Doing("store_fault", text, names, first.at, min(due, default=None))


def _queued(by_rows: Doing, queued: datetime, workers: Workers, now: datetime) -> Doing:
    alive = workers.alive(now)
    if not alive:
        last = f"the last one asked at {instant(workers.last)}" if workers.last else "none is known"
        text = f"no worker takes its next step: {last}; start one with `casework worker`"
        return Doing("no_worker", text, by_rows.steps, queued)
    known = "1 worker is" if len(alive) == 1 else f"{len(alive)} workers are"
    text = f"in the queue: {known} known on it, busy or lost within the last minute"
    return replace(by_rows, text=f"{by_rows.text}; {text}", since=queued)


def next_attempts(held: InHand) -> dict[str, datetime]:
    """When each step of a run is tried again, by `activity_id` of its path."""
    return {step.step: step.next_attempt_at for step in held.pending if step.next_attempt_at}


def next_attempt(due: dict[str, datetime], path: str) -> datetime | None:
    """When the step at `path` is tried again, as far as the engine says."""
    return due.get(activity_id(path))
