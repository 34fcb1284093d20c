"""One poll of a Monitor on the store: what it emits is claimed into trays, and each tray is started.

It moves like this. Rows come first, then the tray: what is claimed is written before its Temporal workflow is started.
A poll that is repeated, or the first one of a Monitor's life, looks for rows that a worker left between the two, and
starts their trays; a tray that is there already is left as it is.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from uuid import UUID

from casework.durable.monitor_contracts import MonitorPoll, PollReport
from casework.errors import FatalError, RetryableError, StoreUnavailableError
from casework.ids import derived_id
from casework.process.failures import Spot, error_entity
from casework.process.identities import claim_id, monitor_owner, refusal_id
from casework.process.lines import MONITOR, Line
from casework.process.monitor_runners import Emitter, Prepare, Save
from casework.process.transactions import Transaction, begin
from casework.store.database import Database
from casework.store.processes import claims, intake
from casework.store.processes.intake import InputErrorRow, LostError
from casework.values import shortened

TIME_S = 240.0
"""Seconds after which a poll takes nothing more: what is left is the next one's."""
PREPARE_S = 45.0
"""Seconds beyond those that an entity may take before it is saved: then the poll's activity has some left."""
TRIES = 2
"""How often an entity is saved whose connection breaks, while others live."""
AT_ONCE = 8
"""Trays that are started at one time."""
BATCH = 5_000
"""Most Transactions that one statement claims."""
Start = Callable[[list[Transaction]], Awaitable[None]]
"""Starts the tray of the Transactions of one claim."""


@dataclass
class _Filling:
    """A tray that entities are put into."""

    into: str
    uuids: list[UUID]


class StoreEmitter(Emitter):
    """The Transactions of one poll. Use it within `async with`; `report` counts them."""

    def __init__(self, db: Database, line: Line, request: MonitorPoll, attempt: int, start: Start) -> None:
        self._db, self._line, self._start = db, line, start
        self._tenant, self._process = request.tenant, line.process.name
        self._by = line.process.monitor.monitor_class()
        life = derived_id(monitor_owner(request.tenant, self._process), f"life.{request.life}")
        self._owner = derived_id(life, f"attempt.{attempt}")
        self._poll = request.poll
        self._again = attempt > 1 or request.poll == 1
        self._until = time.monotonic() + TIME_S
        self._free = 0
        self._trays = 0
        self._entities = 0
        self._filling: _Filling | None = None
        self._starting: list[asyncio.Task[None]] = []
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.report = PollReport()

    async def __aenter__(self) -> StoreEmitter:
        async with self._db.transaction() as conn:
            self._free = self._line.process.room - await claims.open_trays(conn, self._tenant, self._process)
        if self._again:
            await self._go_on()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Fill the last tray, and wait until all are started; also those of a poll that failed.

        Raises:
            RetryableError: one could not be.
        """
        try:
            if error is None:
                await self._fill_up()
        finally:
            ends = await asyncio.gather(*self._starting, return_exceptions=True)
        failures = [end for end in ends if isinstance(end, BaseException)]
        if failures and error is None:
            raise RetryableError(f"{len(failures)} trays could not be started: {failures[0]!s:.300}. Tried again.")

    @property
    def room(self) -> int:
        """As far as there are free trays, and time."""
        if time.monotonic() > self._until:
            return 0
        size = self._line.process.tray_size
        beside = 0 if self._filling is None else size - len(self._filling.uuids)
        return max(self._free, 0) * size + beside

    async def claim(self, status: str, into: str) -> int:
        """Some trays by one statement; each is started."""
        size = self._line.process.tray_size
        most = min(self._free, max(1, BATCH // size))
        if most < 1 or not self.room:
            return 0
        async with self._db.transaction() as conn:
            found = await claims.claim_trays(
                conn,
                self._tenant,
                status=status,
                into=into,
                claim_ids=[self._claim(self._trays + number) for number in range(1, most + 1)],
                size=size,
                process=self._process,
                by=self._by,
                at=datetime.now(UTC),
                per_key=self._line.process.max_per_key,
            )
        taken = [tray for tray in found.values() if tray]
        self._trays += most
        for tray in taken:
            self._emitted(tray)
        return sum(map(len, taken))

    async def take_in(
        self,
        into: str,
        key: str | None,
        save: Save,
        *,
        business_key: str | None = None,
        prepare: Prepare | None = None,
    ) -> bool:
        """The row, what `save` writes and the data it gives, in one database transaction."""
        if prepare is not None and not await self._prepared(key, prepare):
            return self._came_before()
        if self._filling is not None and self._filling.into != into:
            await self._fill_up()
        self._entities += 1
        now = datetime.now(UTC)
        made = begin(
            self._line.statuses,
            into,
            uuid=derived_id(self._owner, f"poll.{self._poll}/entity.{self._entities}"),
            at=now,
            natural_key=key,
            tenant=self._tenant,
            process=self._process,
        )
        whole = await self._kept(made, save, business_key)
        if whole is None:
            return self._came_before()
        self.report = replace(self.report, taken_in=self.report.taken_in + 1)
        if self._filling is None:
            self._free -= 1
            self._filling = _Filling(into, [])
        self._filling.uuids.append(whole.uuid)
        if len(self._filling.uuids) == self._line.process.tray_size:
            await self._fill_up()
        return True

    async def _prepared(self, key: str | None, prepare: Prepare) -> bool:
        """Let what takes long be done; False where the key has come before, and nothing is called.

        Raises:
            TimeoutError: it takes longer than the poll may.
        """
        if key is not None:
            async with self._db.transaction() as conn:
                if await intake.has_come(conn, self._tenant, key):
                    return False
        left = self._until + PREPARE_S - time.monotonic()
        try:
            async with asyncio.timeout(left) as limit:
                await prepare()
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimeoutError(f"The entity was not prepared within {left:.0f} seconds. Is its store slow?") from None
        return True

    async def _kept(self, made: Transaction, save: Save, business_key: str | None) -> Transaction | None:
        """Once more where the connection broke: then it is the entity's fault, if the database is there.

        Raises:
            FatalError: so it is.
            Exception: as `intake.take_in`.
        """
        for left in reversed(range(TRIES)):
            try:
                async with self._db.transaction() as conn:
                    return await intake.take_in(conn, made, save, self._by, made.start_time, business_key=business_key)
            except LostError as error:
                await self._db.ping()
                if not left:
                    raise FatalError(
                        f"The connection broke {TRIES} times while the entity was saved, and the database is there: "
                        f"{error} Do what is slow in `prepare_input_entity`: a transaction that is silent is ended."
                    ) from error
        raise AssertionError

    def _came_before(self) -> bool:
        self.report = replace(self.report, repeated=self.report.repeated + 1)
        return False

    async def refuse(self, key: str | None, error: Exception) -> None:
        """A row of its own: there is no Transaction of it."""
        now = datetime.now(UTC)
        nobody = Transaction(uuid=self._owner, status="", start_time=now)
        told = error_entity(
            error,
            nobody,
            Spot(self._process, MONITOR, self._owner),
            root=self._owner,
            attempt=1,
            started=now,
            failed=now,
            environment=os.environ,
        )
        row = InputErrorRow(
            uuid=refusal_id(monitor_owner(self._tenant, self._process), key, told.code, told.short),
            process=self._process,
            monitor_class=self._by,
            natural_key=None if key is None else shortened(key, 500),
            type=told.type,
            code=told.code,
            severity=told.severity,
            short_text=told.short,
            full_text=told.full,
            times=1,
            first_at=now,
            last_at=now,
        )
        async with self._db.transaction() as conn:
            await intake.refuse(conn, self._tenant, row)
        self.report = replace(self.report, bad=self.report.bad + 1)

    async def failed(self, error: Exception) -> None:
        """The poll itself has failed; what it has emitted goes on its way."""
        if isinstance(error, StoreUnavailableError) and not error.statement:
            raise error
        await self.refuse(None, error)
        self.report = replace(self.report, failure=shortened(str(error) or type(error).__name__, 500))

    async def _go_on(self) -> None:
        """What a worker left between row and tray."""
        async with self._db.transaction() as conn:
            unstarted = await intake.unstarted(conn, self._tenant, self._process)
            status, size = self._line.process.monitor.status_to_set, self._line.process.tray_size
            left = await intake.left_over(conn, self._tenant, self._process, status, max(self._free, 0) * size)
        for _, tray in groupby(unstarted, key=lambda each: each.claim_id):
            self._launch(list(tray))
        while left:
            self._free -= 1
            self._filling, left = _Filling(status, left[:size]), left[size:]
            await self._fill_up()

    async def _fill_up(self) -> None:
        """Claim what was taken in, and start its tray."""
        filling, self._filling = self._filling, None
        if filling is None:
            return
        self._trays += 1
        async with self._db.transaction() as conn:
            tray = await intake.claim_made(
                conn,
                self._tenant,
                process=self._process,
                status=filling.into,
                uuids=filling.uuids,
                claim_id=self._claim(self._trays),
                by=self._by,
                at=datetime.now(UTC),
            )
        if tray:
            self._free += 1  # counted when it was begun
            self._emitted(tray)

    def _emitted(self, tray: list[Transaction]) -> None:
        self._free -= 1
        report = self.report
        self.report = replace(report, claimed=report.claimed + len(tray), trays=report.trays + 1)
        self._launch(tray)

    def _launch(self, tray: Iterable[Transaction]) -> None:
        self._starting.append(asyncio.create_task(self._started(list(tray))))

    async def _started(self, tray: list[Transaction]) -> None:
        async with self._slots:
            await self._start(tray)

    def _claim(self, tray: int) -> UUID:
        return claim_id(self._owner, self._poll, tray)
