"""What the activities of one worker have at hand, and the parts of a step that tools and models share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

from dishka import Provider, Scope

from casework.agents.toolbox import Toolbox
from casework.app import App
from casework.durable.contracts import ModelCall, Owner, ToolCall
from casework.durable.monitor_configuration import json_monitors
from casework.errors import (
    AttemptsUsedError,
    ConflictError,
    FatalError,
    OperationError,
    RetryableError,
    StoreUnavailableError,
)
from casework.models.catalogue import Models
from casework.process.injection import Injector
from casework.process.lines import Line
from casework.process.monitor_settings import JsonMonitors
from casework.settings import Settings
from casework.store import health, ledger, projection, workflows
from casework.store.database import Connection, Database
from casework.store.ledger import Claimed, StepClaim, StepCommit
from casework.trees.bundle import Pinned, pinned_from_plain
from casework.values import shortened

Made = TypeVar("Made")
COMMIT_PATIENCE = 40.0
"""Seconds in which a finished act tries to write its result before it reports the database as gone."""


@dataclass
class Services:
    """One worker's database, application and models."""

    db: Database
    app: App
    models: Models
    settings: Settings
    _bundles: dict[tuple[str, str, int], Pinned] = field(default_factory=dict)

    @property
    def tools(self) -> Toolbox:
        """The application's tools."""
        return self.app.toolbox

    @property
    def lines(self) -> Mapping[str, Line]:
        """The application's processes by name."""
        return self.app.lines()

    @cached_property
    def injector(self) -> Injector:
        """What makes Tasks and Monitors; it is closed with the worker (`close`).

        Modules may ask for `Database`, the worker's own.
        """
        platform = Provider(scope=Scope.APP)
        platform.provide(lambda: self.db, provides=Database)
        return self.app.injector(platform)

    @cached_property
    def monitors(self) -> JsonMonitors:
        """The JSON configuration of Monitors."""
        return json_monitors(self.app, self.settings)

    async def close(self) -> None:
        """Release what the modules of the application have opened."""
        if "injector" in vars(self):
            await self.injector.close()

    async def bundle(self, tenant: str, name: str, version: int) -> Pinned:
        """A pinned workflow or free tree; versions never change, so each is read once.

        Raises:
            FatalError: the table has no such version.
        """
        key = (tenant, name, version)
        if key not in self._bundles:
            async with self.db.transaction() as conn:
                plain = await workflows.get(conn, tenant, name, version)
            if plain is None:
                raise FatalError(f"workflow {name!r} has no version {version} in the database. Publish it again.")
            self._bundles[key] = pinned_from_plain(plain)
        return self._bundles[key]


class Attempt:
    """One claimed attempt of a step: timed from the claim, and ended exactly once.

    `began` is the monotonic clock before the claim was sent: the answer to it may have been long on its way.
    """

    def __init__(self, db: Database, call: ModelCall | ToolCall, claimed: Claimed, began: float | None = None) -> None:
        self._db = db
        self._owner = call.owner
        self._path = call.path
        self.number = claimed.attempt
        self.step_id = claimed.step_id
        self._claimed = time.monotonic()
        self._began = self._claimed if began is None else began

    @property
    def latency_ms(self) -> int:
        """Milliseconds since the claim."""
        return int((time.monotonic() - self._claimed) * 1000)

    @property
    def held_ms(self) -> int:
        """Milliseconds in which another attempt can have begun."""
        return int((time.monotonic() - self._began) * 1000)

    def result(self, state: Any, result: Any, *, error: str | None = None, **figures: Any) -> StepCommit:
        """The row of a finished step."""
        return StepCommit(
            tenant=self._owner.tenant,
            run_id=UUID(self._owner.run_id),
            path=self._path,
            attempt=self.number,
            state=state,
            result=result,
            error=error,
            latency_ms=self.latency_ms,
            **figures,
        )

    def in_time(self, reply: Made | None) -> Made:
        """`reply`, unless the ledger said that a newer attempt or the engine's close was first.

        Raises:
            RetryableError: it was; the result is kept as LATE, and never used.
        """
        if reply is None:
            raise RetryableError(f"attempt {self.number} of {self._path} came too late; its result is not used")
        return reply

    async def check(self) -> None:
        """That this attempt may act still: no newer one has begun, and the step is open.

        Raises:
            RetryableError: it may not, and must not act.
            StoreUnavailableError: nobody can tell now.
        """
        async with self._db.transaction() as conn:
            mine = await ledger.lock_attempt(
                conn, self._owner.tenant, UUID(self._owner.run_id), self._path, self.number
            )
        if not mine:
            raise RetryableError(f"attempt {self.number} of {self._path} is no longer the current one: it does not act")

    async def failed(self, error: OperationError) -> None:
        """This attempt failed and the engine decides what follows; a database that is away is no second fault."""
        try:
            async with self._db.transaction() as conn:
                await ledger.attempt_failed(
                    conn,
                    self._owner.tenant,
                    UUID(self._owner.run_id),
                    self._path,
                    self.number,
                    shortened(str(error)) or type(error).__name__,
                    self.latency_ms,
                    tokens_in=error.tokens_in,
                    tokens_out=error.tokens_out,
                    cost=error.cost,
                )
        except StoreUnavailableError:
            return


async def claim(conn: Connection, step: StepClaim, most: int = 0) -> Claimed:
    """Claim a step. Before it is done again it is seen that its result can be written, as the last one perhaps was not.

    Raises:
        AttemptsUsedError: it would be more than attempt `most` (0: any); the claim is to be rolled back.
        StoreUnavailableError: it cannot; no attempt is used.
        ConflictError: as `ledger.claim`.
    """
    claimed = await ledger.claim(conn, step)
    if claimed.state == "claimed" and 0 < most < claimed.attempt:
        raise AttemptsUsedError(f"the worker that ran it was lost, at the last of {most} attempts too")
    if claimed.state == "claimed" and claimed.attempt > 1:
        await health.check_rights(conn)
    return claimed


@asynccontextmanager
async def recorded(db: Database, owner: Owner, path: str) -> AsyncIterator[None]:
    """A conflict inside is written as an event in a database transaction of its own, then goes on its way."""
    try:
        yield
    except ConflictError as error:
        await projection.record_conflict(db, owner.tenant, run_id(owner), path, error)
        raise


async def patiently(write: Callable[[], Awaitable[Made]]) -> Made:
    """Write a finished result, waiting out a database restart rather than losing what was done.

    A cancellation waits for the write that is under way: what was done is recorded, wanted or not.

    Raises:
        StoreUnavailableError: the database stayed away; the run waits for it, then the step is done again.
    """
    until, delay = time.monotonic() + COMMIT_PATIENCE, 0.1
    while True:
        try:
            return await _to_its_end(write)
        except StoreUnavailableError as error:
            if time.monotonic() > until:
                raise StoreUnavailableError(f"The result could not be written. {error}") from error
            await asyncio.sleep(delay)
            delay = min(delay * 2, 2.0)


async def _to_its_end(write: Callable[[], Awaitable[Made]]) -> Made:
    writing = asyncio.ensure_future(write())
    try:
        return await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.gather(writing, return_exceptions=True)
        raise


def run_id(owner: Owner) -> UUID:
    """The run an activity works for."""
    return UUID(owner.run_id)
