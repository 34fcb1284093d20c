"""Sending activities: each carries the outbox, has its operation's policy, and is named by the path of its node.

Two failures use no attempt, because nothing was done: a step that waited in the queue for its whole time, and a step
that could not reach the database, or that only writes there and never came back. Both are scheduled again for as long
as it takes; a run that outlives its workers must not die of a database restart. Afterwards the run tells that it waited
for the database, since nobody could write it meanwhile. A step whose worker was lost at its last attempt is scheduled
again too, a few times: the ledger says whether it has an attempt left.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from casework.durable import contracts, policies
from casework.durable.policies import OperationPolicy
from casework.durable.workflows.failures import (
    StepFailedError,
    lost_with_workers,
    never_started,
    reason_of,
    step_failure,
    store_unavailable,
    timed_out,
    unreadable,
)
from casework.durable.workflows.journal import Journal, now
from casework.projection import Parcel, StepEntry
from casework.tasktree import NoCurrentNodeError, current_node
from casework.values import instant

Reply = TypeVar("Reply")
ACTIVITY_ID_LIMIT = 200
"""Longer paths are hashed, because the server refuses long activity ids."""


QUEUED_LIMIT = 500
"""How often a step whose time passed in the queue is scheduled again: more than a day, for a model."""


LOST_ROUNDS = 5
"""How often a step whose worker was lost at its last attempt is scheduled again, for the attempts that nobody began."""
ASKS_THE_LEDGER = "asks-the-ledger"
"""The change since which the ledger says how many attempts a step had whose worker was lost."""
WAITS_OUT_HANGS = "waits-out-hangs"
"""The change since which a write that hung at every attempt is tried again, and does not end the run."""
SEES_LATE_CANCELS = "sees-late-cancels"
"""The change since which a cancellation that reaches a run together with a step's result is not lost."""
TELLS_STORE_WAITS = "tells-store-waits"
"""The change since which a run has an event for each step that waited for the database."""


class StoreWait:
    """How long one step has waited for the database, or for a worker that has what it needs."""

    def __init__(self) -> None:
        self.since: datetime | None = None
        self.pauses = 0
        self.kind = "agent.store_unavailable"
        self._reason = ""

    async def pause(self, error: ActivityError) -> None:
        """Wait before the next round of attempts, each time longer."""
        self.since = self.since or workflow.now()
        self._reason = reason_of(error)
        pause = policies.STORE_PATIENCE[min(self.pauses, len(policies.STORE_PATIENCE) - 1)]
        self.pauses += 1
        await workflow.sleep(pause, summary="waits for the database")

    def told(self) -> dict[str, Any]:
        """The event's data, once it is over. `waited` in seconds."""
        assert self.since is not None
        waited = (workflow.now() - self.since).total_seconds()
        return {"since": instant(self.since), "waited": round(waited, 1), "error": self._reason}


class Operations:
    """Activities of one run."""

    def __init__(self, owner: contracts.Owner, journal: Journal) -> None:
        self.owner = owner
        self._journal = journal
        self._flushing = asyncio.Lock()
        self.flushes = 0

    async def execute(
        self,
        activity: str,
        path: str,
        name: str,
        policy: OperationPolicy,
        reply: type[Reply],
        request: Callable[[tuple[dict[str, Any], ...]], Any],
    ) -> Reply:
        """Run `activity` at `path` until it returns or is given up.

        `request` makes its input from the outbox entries it is to carry; `name` is the tool's or the model's in the
        ledger. A step that is given up closes its ledger row with the next write.

        Raises:
            StepFailedError: attempts used up, or an error that is not retried.
        """
        queued, lost, wait = 0, 0, StoreWait()
        while True:
            most = policy.attempts + wait.pauses if lost else 0
            try:
                result = await self._once(activity, path, policy, reply, request, most)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise
                if store_unavailable(error) or _hangs(policy, error) or unreadable(error):
                    wait.kind = "agent.payload_unreadable" if unreadable(error) else "agent.store_unavailable"
                    await wait.pause(error)
                elif never_started(error) and queued < QUEUED_LIMIT:
                    queued += 1
                elif lost < LOST_ROUNDS and _asks_the_ledger(policy, error):
                    lost += 1
                else:
                    self._tell(path, wait)
                    failure = step_failure(path, error, of_model=policy is policies.MODEL)
                    self.give_up(path, name, policy, failure)
                    raise failure from error
            else:
                self._tell(path, wait)
                return result

    def _tell(self, path: str, wait: StoreWait) -> None:
        # Histories of releases that told nothing have no marker here, and their outbox no further entry.
        if wait.since is not None and workflow.patched(TELLS_STORE_WAITS):
            self._journal.event(path, wait.kind, wait.told())

    def give_up(self, path: str, name: str, policy: OperationPolicy, failure: StepFailedError) -> None:
        """Close the ledger row of a step with the next write, and tell of it."""
        if not policy.of_step:
            return
        kind: Literal["tool", "model"] = "model" if policy is policies.MODEL else "tool"
        self._journal.add(StepEntry(path, kind, name, "FAILED", now(), error=failure.reason))
        self._journal.event(path, f"agent.{kind}_failed", {"name": name, "error": failure.reason})

    async def _once(
        self,
        activity: str,
        path: str,
        policy: OperationPolicy,
        reply: type[Reply],
        request: Callable[[tuple[dict[str, Any], ...]], Any],
        most: int,
    ) -> Reply:
        parcel = self._journal.outbox.take()
        landed = False
        try:
            call = request(parcel.entries)
            result: Reply = await workflow.execute_activity(
                activity,
                replace(call, attempts=most) if most else call,
                activity_id=activity_id(path),
                result_type=reply,
                **policy.options(),
            )
            landed = True
        finally:
            self._land(parcel, landed)
        if _cancelled_meanwhile() and workflow.patched(SEES_LATE_CANCELS):
            raise asyncio.CancelledError
        return result

    def _land(self, parcel: Parcel, landed: bool) -> None:
        if landed:
            self._journal.outbox.confirm(parcel)
        else:
            self._journal.outbox.give_back(parcel)

    async def flush(self) -> None:
        """Send what is in the outbox by itself: before a wait, a roll-over or the end."""
        async with self._flushing:
            while len(self._journal.outbox):
                await workflow.wait_condition(lambda: not self._journal.outbox.travelling)
                self.flushes += 1
                await self.execute(
                    contracts.PROJECT,
                    f"project.{self.flushes}",
                    "project",
                    policies.STORE,
                    type(None),
                    lambda entries: contracts.Project(self.owner, entries),
                )


def _hangs(policy: OperationPolicy, error: ActivityError) -> bool:
    """Whether a write of rows alone never came back: a lock that is held, a disk that stands still."""
    return policy is policies.STORE and timed_out(error) and workflow.patched(WAITS_OUT_HANGS)


def _asks_the_ledger(policy: OperationPolicy, error: ActivityError) -> bool:
    """Whether only the ledger knows how many of the attempts were begun. Writes of rows alone have no step there."""
    return policy.of_step and lost_with_workers(error) and workflow.patched(ASKS_THE_LEDGER)


def _cancelled_meanwhile() -> bool:
    """Whether the node that waits was told to end. The SDK swallows a cancellation whose activity is back by then."""
    try:
        return current_node().terminating
    except NoCurrentNodeError:
        return False


def activity_id(path: str) -> str:
    """The path itself while the engine takes it."""
    return path if len(path) <= ACTIVITY_ID_LIMIT else hashlib.sha256(path.encode()).hexdigest()
