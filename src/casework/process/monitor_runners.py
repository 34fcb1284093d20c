"""Runners of Monitors: what a poll does, for a Monitor of a kind. A project may bring a pair of its own.

How it moves: the driver makes Monitor and runner, and calls `poll` with an Emitter, which is all that a runner can do
to Transactions. Trays, claims and database transactions are the driver's; a runner says which Transactions enter the
line, in which order, and what the source is told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from casework.errors import FatalError, InputError, StoreUnavailableError

if TYPE_CHECKING:
    from casework.process.monitors import InputMonitorTask, MonitorTask, TransactionMonitorTask

M = TypeVar("M", bound="MonitorTask")
Save = Callable[[UUID, Any], Awaitable[Mapping[str, Any]]]
"""Saves what a Transaction stands for; gets its id and the open database transaction, gives its data."""
Prepare = Callable[[], Awaitable[None]]
"""Does what takes long, before the database transaction is opened."""
T = TypeVar("T")


class Emitter(ABC):
    """Lets Transactions onto the line, for the length of one poll."""

    @property
    @abstractmethod
    def room(self) -> int:
        """How many more Transactions there is room for on the line now."""

    @abstractmethod
    async def claim(self, status: str, into: str) -> int:
        """Claim Transactions that wait in `status`, as many as there is room for, and set them to `into`; how many.

        Raises:
            StoreUnavailableError: the database cannot be reached.
        """

    @abstractmethod
    async def take_in(
        self,
        into: str,
        key: str | None,
        save: Save,
        *,
        business_key: str | None = None,
        prepare: Prepare | None = None,
    ) -> bool:
        """Make a Transaction in status `into`, together with what `save` writes: both are kept, or neither is.

        False where its natural key `key` has come before: then nothing is called and nothing changes. `business_key`
        is what limits of concurrency count by; `prepare` is called first, outside the database transaction.

        Raises:
            StoreUnavailableError: the database cannot be reached.
            TimeoutError: `prepare` takes longer than a poll may.
            Exception: whatever `prepare` or `save` raises; or its data cannot be kept, or no Transaction can begin in
                that status.
        """

    @abstractmethod
    async def refuse(self, key: str | None, error: Exception) -> None:
        """Record that an entity could not be taken in."""


class MonitorRunner(ABC, Generic[M]):
    """Base of all runners. Its constructor may ask for what modules provide, as that of a Monitor may."""

    @abstractmethod
    async def poll(self, monitor: M, emitter: Emitter) -> None:
        """Emit what is there now. An error that is raised ends this poll alone: it is recorded."""


class TransactionMonitorRunner(MonitorRunner["TransactionMonitorTask"]):
    """Claims by status."""

    async def poll(self, monitor: TransactionMonitorTask, emitter: Emitter) -> None:
        """Claim until nothing waits, or there is no room."""
        while emitter.room and await emitter.claim(monitor.status_to_monitor, monitor.status_to_set):
            pass


class InputMonitorRunner(MonitorRunner["InputMonitorTask[Any]"]):
    """Takes in entities, each for itself."""

    async def poll(self, monitor: InputMonitorTask[Any], emitter: Emitter) -> None:
        """Take in what there is room for; the source gives the rest again."""
        for entity in await _theirs(monitor.query_input_entities()):
            if not emitter.room:
                return
            await self._one(monitor, emitter, entity)

    async def _one(self, monitor: InputMonitorTask[Any], emitter: Emitter, entity: Any) -> None:
        key: str | None = None

        async def save(uuid: UUID, connection: Any) -> Mapping[str, Any]:
            monitor.transaction_uuid, monitor.connection = uuid, connection
            try:
                return await _theirs(monitor.save_input_entity(entity))
            finally:
                monitor.transaction_uuid = monitor.connection = None

        async def prepare() -> None:
            monitor.prepared = await _theirs(monitor.prepare_input_entity(entity))

        try:
            key = _key("natural_key", monitor.natural_key(entity))
            await emitter.take_in(
                monitor.status_to_set,
                key,
                save,
                business_key=_key("business_key", monitor.business_key(entity)),
                prepare=prepare if _prepares(monitor) else None,
            )
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001  # one bad entity does not stop the rest
            await emitter.refuse(key, error)
            await self._tell(emitter, key, monitor.reject_input_entity(entity, error))
        else:
            await self._tell(emitter, key, monitor.acknowledge_input_entity(entity))
        finally:
            monitor.prepared = None

    async def _tell(self, emitter: Emitter, key: str | None, word: Awaitable[None]) -> None:
        """Tell the source; one that cannot be told gives the entity again, so that is recorded and no more."""
        try:
            await word
        except Exception as error:  # noqa: BLE001  # the rest goes on
            await emitter.refuse(key, error)


def _key(name: str, found: Any) -> str | None:
    """What a Monitor gave as a key.

    Raises:
        InputError: it is no text.
    """
    if found is None or isinstance(found, str):
        return found
    raise InputError(f"{name} is {found!r:.60}: pass a text, or None.", field=name)


def _prepares(monitor: InputMonitorTask[Any]) -> bool:
    """Whether the class has a method of its own to prepare an entity."""
    from casework.process.monitors import InputMonitorTask  # noqa: PLC0415  # it names its runner, which is here

    return type(monitor).prepare_input_entity is not InputMonitorTask.prepare_input_entity


async def _theirs(call: Awaitable[T]) -> T:
    """The project's own code: a statement of it that cannot be run is its fault, and no database that is away.

    Raises:
        FatalError: there is such a statement.
        Exception: what the code raises.
    """
    try:
        return await call
    except StoreUnavailableError as error:
        if not error.statement:
            raise
        raise FatalError(str(error)) from error
