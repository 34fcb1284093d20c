"""The activities of trays: a station's work on some Transactions, giving up, telling what is skipped, letting go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from temporalio import activity

from casework.durable import process_contracts as contracts
from casework.durable.activities.computing_tasks import ComputingStation
from casework.durable.activities.error_tasks import ErrorStation
from casework.durable.activities.operation import operation
from casework.durable.activities.plain_tasks import PlainStation
from casework.durable.activities.services import Services
from casework.durable.activities.skipped import tell_skipped
from casework.durable.activities.stations import Item, Station, at_once
from casework.durable.activities.transactional_tasks import TransactionalStation
from casework.durable.activities.unstepped import FinalizerStation, GivenUpStation, GoneStation
from casework.durable.process_contracts import (
    GiveUpTray,
    Outcome,
    ReleaseTray,
    SkippedTasks,
    Standing,
    TrayReply,
    TrayWork,
    standing,
)
from casework.errors import CaseworkError
from casework.process.lines import FINALIZER
from casework.process.tasks import Kind
from casework.store.processes import transactions

OTHER_CONNECTIONS = 2
"""Connections of the pool that Tasks in the database leave to others."""


def utc() -> datetime:
    """The present instant."""
    return datetime.now(UTC)


class TrayActivities:
    """`casework.work_tray` and what goes with it."""

    def __init__(self, services: Services, now: Callable[[], datetime] = utc) -> None:
        self._services = services
        self._now = now
        pool = services.settings.database.pool_max_size
        self._room = asyncio.Semaphore(max(1, pool - OTHER_CONNECTIONS))

    def all(self) -> tuple[Callable[..., Any], ...]:
        """What a worker registers."""
        return (self.work_tray, self.give_up, self.tell_skipped, self.release_tray)

    @activity.defn(name=contracts.WORK_TRAY)
    @operation
    async def work_tray(self, work: TrayWork) -> TrayReply:
        """Do a station's work on each Transaction; one that fails is an outcome, and the others go on.

        Raises:
            StoreUnavailableError: the database cannot be reached; what is done is found again.
        """
        station = self._station(work)
        if (limit := station.limit_ms) is not None:
            return TrayReply((), apart_ms=limit)
        first = await self._reply(station, work.standing)
        return replace(first, ahead=tuple([outcomes async for outcomes in self._ahead(work, first.outcomes)]))

    @activity.defn(name=contracts.GIVE_UP)
    @operation
    async def give_up(self, asked: GiveUpTray) -> TrayReply:
        """Record an error for each, and let it leave the line.

        Raises:
            StoreUnavailableError: the database cannot be reached.
        """
        line = self._services.lines.get(asked.process)
        return await self._reply(GivenUpStation(self._services, asked, line, self._now), asked.standing)

    @activity.defn(name=contracts.TELL_SKIPPED)
    @operation
    async def tell_skipped(self, asked: SkippedTasks) -> None:
        """Tell the Tasks that are passed over.

        Raises:
            StoreUnavailableError: the database cannot be reached.
        """
        await tell_skipped(self._services, asked)

    @activity.defn(name=contracts.RELEASE_TRAY)
    @operation
    async def release_tray(self, asked: ReleaseTray) -> None:
        """Let go of what bears the claim still.

        Raises:
            StoreUnavailableError: the database cannot be reached.
        """
        async with self._services.db.transaction() as conn:
            await transactions.release(conn, asked.tenant, asked.claim_id)

    def _station(self, work: TrayWork) -> Station:
        services, line = self._services, self._services.lines.get(work.process)
        if line is not None and work.station == FINALIZER:
            return FinalizerStation(services, work, line, self._now)
        spec = None if line is None else line.specs.get(work.station)
        if line is None or spec is None or spec.alone:
            return GoneStation(services, work, line, self._now)
        if spec.kind is Kind.PLAIN:
            station = ComputingStation if spec.computes else PlainStation
            return station(services, work, line, self._now)
        kind = ErrorStation if spec.kind is Kind.ERROR else TransactionalStation
        return kind(services, work, line, self._now, self._room)

    async def _ahead(self, work: TrayWork, outcomes: tuple[Outcome, ...]) -> AsyncIterator[tuple[Outcome, ...]]:
        """The outcomes of the visits that follow, as long as all pass to the next of them, and that has no limit.

        What fails as a whole is left for its own activity, which fails in the same way. Nobody goes past a station
        where the failure of one in another activity may take it along.
        """
        station = self._station(work)
        for visit in work.ahead:
            if work.others and station.takes_along:
                return
            if not all(each.kind == "passed" and each.held and each.to in ("", visit.station) for each in outcomes):
                return
            statuses = {uuid: each.status for each in outcomes for uuid in each.transactions}
            order = [uuid for each in work.standing for uuid in each.transactions]
            there = standing((uuid, statuses[uuid]) for uuid in order)
            following = replace(work, station=visit.station, visit=visit.visit, attempt=1, standing=there, ahead=())
            station = self._station(following)
            if station.limit_ms is not None:
                return
            try:
                outcomes = (await self._reply(station, there)).outcomes
            except CaseworkError as error:
                activity.logger.info("%s is left for an activity of its own: %s", visit.path, error)
                return
            yield outcomes

    async def _reply(self, station: Station, standing: Iterable[Standing]) -> TrayReply:
        items = [Item(uuid, each.status) for each in standing for uuid in each.transactions]
        return TrayReply(grouped(await _each(station, items)))


async def _each(station: Station, items: Sequence[Item]) -> list[Outcome]:
    """As many as can be together, and each of the others for itself."""
    made = await station.together(items)

    async def one(item: Item) -> None:
        made[item] = await station.work(item)

    await at_once(one, [item for item in items if item not in made])
    return [made[item] for item in items]


def grouped(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Those that are alike as one, in the order of the first of each; one that was parted stays alone."""
    firsts: dict[Any, Outcome] = {}
    members: dict[Any, list[UUID]] = {}
    for each in outcomes:
        alike = each.children, each.kind, each.status, each.held, each.to, each.reason, each.takes
        if alike not in firsts:
            firsts[alike], members[alike] = each, []
        members[alike] += each.transactions
    return tuple(replace(first, transactions=tuple(members[alike])) for alike, first in firsts.items())
