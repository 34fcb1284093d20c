"""Activities of a tray: each is tried until it is done, and what cannot be done fails no more than it must.

A database that is away, or a worker that lacks what it needs, is waited for, as long as it takes. A worker that is
lost, or an error that nobody foresaw, uses up attempts; then the Transactions are tried one by one, since it may be one
of them that brings its worker down. Whichever fails alone as well is given up, and the others go on.

A task that has a limit is sent to a queue of its own, one Transaction at a time, so that the engine counts what the
limit means. Whether it has one the tray was told when it started. What waits there for very long asks anew, as if it
had none: a release may have given the task another limit, or none, and then nobody looks into that queue.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

from casework.durable import process_contracts as contracts
from casework.durable.policies import HEARTBEAT
from casework.durable.process_contracts import (
    AT_ONCE,
    GiveUpTray,
    Outcome,
    ReleaseTray,
    SkippedTasks,
    TrayReply,
    TrayStart,
    TrayWork,
    Visit,
    limited_queue,
    station_queue,
)
from casework.durable.task_run_contracts import TaskRunBegun
from casework.durable.workflows.failures import never_started, reason_of, store_unavailable, unreadable
from casework.durable.workflows.operations import StoreWait, activity_id
from casework.durable.workflows.tray_book import TrayBook
from casework.process.declaring import TIMEOUT_LIMIT
from casework.process.walk import GiveUp, Work
from casework.tasktree import current_node

Reply = TypeVar("Reply")
Limited = TypeVar("Limited", TrayReply, TaskRunBegun)
TOGETHER = 100
"""Most Transactions in one activity."""
ATTEMPTS = 3
"""Of one activity, before its Transactions are tried one by one, and of each then."""
NO_LIMIT = 0
"""Attempts of what is the tray's own work: no task of a project is called there, and the tray cannot go on without."""
SPARE_S = 90.0
"""Of an activity beside the deadlines of its Transactions: patience with the database, for the most part."""
AGAIN_AFTER = (0.2, 1.0, 5.0)
"""Seconds before a further attempt of the error policy; the last repeats."""
LOOKS_AFTER = (0.5, 1.0, 2.0, 5.0, 15.0)
"""Seconds before it is looked again whether those have come that a Transaction waits for; the last repeats."""
IN_QUEUE_S = (600.0, 86_400.0)
"""Least and longest wait in the queue of a task that has a limit, before it is asked whether it still has it."""
IN_QUEUE = 1000
"""Transactions that may stand before one there, as far as these bounds leave it."""


class TrayCalls:
    """The activities of one tray."""

    def __init__(self, start: TrayStart, book: TrayBook) -> None:
        self._start = start
        self._book = book
        self._looks = 0
        self._known: dict[tuple[str, tuple[UUID, ...]], tuple[Outcome, ...]] = {}
        """What was done with the work of a station before."""
        self.limits = dict(start.apart_ms)
        self.given_up = 0 if start.carried is None else start.carried.given_up

    async def work(self, work: Work) -> list[Outcome]:
        """A station's work on all its Transactions."""
        await self.pause(work)
        parts = [work.transactions[first : first + TOGETHER] for first in range(0, len(work.transactions), TOGETHER)]
        known = {part: self._known.pop((work.path, part)) for part in parts if (work.path, part) in self._known}
        # Of other parts than these it is of no use, and must not be told at another attempt.
        self._known = {key: each for key, each in self._known.items() if key[0] != work.path}
        ahead = self._book.ahead(work, self._start.ahead) if len(known) < len(parts) and self._start.ahead else ()
        made: list[Outcome] = []
        for part in parts:
            made += known[part] if part in known else await self._together(work, part, ahead)
        return made

    async def pause(self, work: Work) -> None:
        """Before a further attempt of the error policy, or another look at what is waited for."""
        self._looks = self._looks + 1 if work.waited else 0
        if work.waited:
            await workflow.sleep(_of(LOOKS_AFTER, self._looks), summary=f"waits at {work.path} for others")
        elif work.attempt > 1:
            await workflow.sleep(_of(AGAIN_AFTER, work.attempt - 1), summary=f"before a new attempt of {work.path}")

    def asked(self, work: Work, uuids: tuple[UUID, ...]) -> TrayWork:
        """What an activity is asked to do on these."""
        start, there = self._start, self._book.standing(uuids)
        return TrayWork(start.tenant, start.process, start.claim_id, work.station, work.visit, work.attempt, there)

    def seconds(self, station: str, count: int) -> float:
        """How long an activity may take over `count` Transactions."""
        each = self._start.deadlines_ms.get(station, TIMEOUT_LIMIT * 1000) / 1000
        return math.ceil(count / AT_ONCE) * each + SPARE_S

    async def _together(self, work: Work, uuids: tuple[UUID, ...], ahead: tuple[Visit, ...] = ()) -> list[Outcome]:
        if work.station in self.limits:
            return await self._each(work, uuids)
        try:
            reply = await self._part(work, uuids, ahead)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            if len(uuids) == 1:
                return await self.give_up(GiveUp({uuids[0]: reason_of(error)}), work)
        else:
            if reply.apart_ms is None:
                return list(reply.outcomes)
            self.limits[work.station] = reply.apart_ms
            return await self._each(work, uuids)
        made: list[Outcome] = []
        for uuid in uuids:
            made += await self._together(work, (uuid,))
        return made

    async def _part(self, work: Work, uuids: tuple[UUID, ...], ahead: tuple[Visit, ...]) -> TrayReply:
        others = len(uuids) < len(work.transactions)
        asked = replace(self.asked(work, uuids), ahead=ahead, unlimited=True, others=others)
        seconds = self.seconds(work.station, len(uuids)) + sum(self.seconds(each.station, len(uuids)) for each in ahead)
        reply = await self.execute(contracts.WORK_TRAY, asked, TrayReply, seconds)
        for visit, outcomes in zip(ahead, reply.ahead, strict=False):
            self._known[visit.path, uuids] = outcomes
        return reply

    async def _each(self, work: Work, uuids: tuple[UUID, ...]) -> list[Outcome]:
        """The work on each by an activity of its own, some at one time."""
        gate, lost, seconds = asyncio.Semaphore(AT_ONCE), dict[UUID, str](), self.seconds(work.station, 1)

        async def one(uuid: UUID) -> tuple[Outcome, ...]:
            async with gate:
                try:
                    asked = self.asked(work, (uuid,))
                    return (await self.limited(contracts.WORK_TRAY, asked, TrayReply, seconds, str(uuid))).outcomes
                except ActivityError as error:
                    if is_cancelled_exception(error):
                        raise
                    lost[uuid] = reason_of(error)
                    return ()

        made = await asyncio.gather(*map(one, uuids))
        outcomes = [each for some in made for each in some]
        return outcomes + (await self.give_up(GiveUp(lost), work) if lost else [])

    async def limited(self, activity: str, asked: TrayWork, reply: type[Limited], seconds: float, name: str) -> Limited:
        """The work on one Transaction, in the queue of its task for as long as that has a limit.

        Raises:
            ActivityError: as `execute`.
        """
        station = asked.station
        while True:
            if (limit := self.limits.get(station)) is not None:
                try:
                    return await self.execute(activity, asked, reply, seconds, name, limit=limit)
                except ActivityError as error:
                    if not never_started(error):
                        raise
                    self.limits.pop(station, None)
            made = await self.execute(activity, replace(asked, unlimited=True), reply, seconds, name)
            if made.apart_ms is None:
                return made
            self.limits[station] = made.apart_ms

    async def give_up(self, pending: GiveUp, work: Work | None = None) -> list[Outcome]:
        """Let Transactions fail for a reason of their tray's; what is done of `work` after all counts."""
        start = self._start
        self.given_up += 1
        asked = GiveUpTray(
            start.tenant,
            start.process,
            start.claim_id,
            self.given_up,
            self._book.standing(pending.reasons),
            pending.reasons,
            *(() if work is None else (self.asked(work, ()).path, work.attempt)),
        )
        return list((await self.execute(contracts.GIVE_UP, asked, TrayReply, SPARE_S, attempts=NO_LIMIT)).outcomes)

    async def tell_skipped(self) -> None:
        """Tell the tasks that are passed over, if there are any. It changes nothing if they cannot be told."""
        start, tasks = self._start, self._start.shape.kinds
        goes_on_at = {each.uuid: at for each in start.entries if (at := each.skip_until) is not None and at in tasks}
        if goes_on_at:
            asked = SkippedTasks(start.tenant, start.process, start.claim_id, goes_on_at)
            seconds = sum(start.deadlines_ms.values()) / 1000 * len(goes_on_at) + SPARE_S
            try:
                await self.execute(contracts.TELL_SKIPPED, asked, type(None), seconds)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise
                workflow.logger.warning("tasks could not be told that they are skipped: %s", reason_of(error))

    async def release(self) -> None:
        """Let go of what bears the claim still."""
        start = self._start
        asked = ReleaseTray(start.tenant, start.process, start.claim_id)
        await self.execute(contracts.RELEASE_TRAY, asked, type(None), SPARE_S, attempts=NO_LIMIT)

    async def execute(
        self,
        activity: str,
        asked: Any,
        reply: type[Reply],
        seconds: float,
        name: str = "",
        attempts: int = ATTEMPTS,
        limit: int | None = None,
    ) -> Reply:
        """Until it is done. `name` tells apart those that are under way in one node at one time.

        With a `limit` (how long Transactions lie apart, in milliseconds) `asked` is a TrayWork, and waits in the queue
        of its task; not for ever. Other work at stations waits in the queue of stations.

        Raises:
            ActivityError: its attempts are used up, or it was cancelled.
        """
        wait = StoreWait()
        queue = _queue(activity, asked, limit)
        while True:
            try:
                made: Reply = await workflow.execute_activity(
                    activity,
                    asked,
                    activity_id=activity_id(f"{current_node().path}/{name}" if name else current_node().path),
                    result_type=reply,
                    start_to_close_timeout=timedelta(seconds=seconds),
                    heartbeat_timeout=HEARTBEAT,
                    retry_policy=RetryPolicy(
                        initial_interval=timedelta(seconds=0.1),
                        backoff_coefficient=3.0,
                        maximum_interval=timedelta(seconds=20),
                        maximum_attempts=attempts,
                    ),
                    **queue,
                )
            except ActivityError as error:
                if is_cancelled_exception(error) or not (store_unavailable(error) or unreadable(error)):
                    raise
                await wait.pause(error)
            else:
                return made


def _queue(activity: str, asked: Any, limit: int | None) -> dict[str, Any]:
    """Where it waits for a worker, if not with all else; and of the work of a task with a limit, for how long."""
    own = workflow.info().task_queue
    if limit is not None:
        wait = timedelta(seconds=in_queue_s(limit))
        return {"task_queue": limited_queue(own, asked.station), "schedule_to_start_timeout": wait}
    return {"task_queue": station_queue(own)} if activity == contracts.WORK_TRAY else {}


def in_queue_s(limit: int) -> float:
    """How long it is waited in the queue of a task whose Transactions lie `limit` milliseconds apart."""
    least, longest = IN_QUEUE_S
    return min(max(least, IN_QUEUE * limit / 1000), longest)


def _of(pauses: Sequence[float], number: int) -> float:
    """Pause `number`, from 1; the last repeats."""
    return pauses[min(number, len(pauses)) - 1]
