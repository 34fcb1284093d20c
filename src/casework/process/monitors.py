"""Kinds of Monitors: what stands at the head of a line and lets Transactions onto it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from casework.process.monitor_runners import InputMonitorRunner, MonitorRunner, TransactionMonitorRunner
from casework.process.statuses import ERROR_IN_PROGRESS, HAS_ERROR

Entity = TypeVar("Entity")


class MonitorTask(ABC):
    """Base of all Monitors. Its class name is the `monitorClass` of the configuration.

    One that derives from this class directly is a kind of its own: it brings a `runner_class` that knows it.
    """

    status_to_set: ClassVar[str]
    """The status in which its Transactions enter the line."""
    runner_class: ClassVar[type[MonitorRunner[Any]] | None] = None
    """What carries out its polls."""

    @classmethod
    def monitor_class(cls) -> str:
        """What the configuration calls it."""
        return cls.__name__


class TransactionMonitorTask(MonitorTask):
    """Claims Transactions that wait in `status_to_monitor`, and sets them to `status_to_set`."""

    runner_class = TransactionMonitorRunner
    status_to_monitor: ClassVar[str]


class InputMonitorTask(MonitorTask, Generic[Entity]):
    """Makes Transactions of data from outside: each entity is saved together with a Transaction of its own."""

    runner_class = InputMonitorRunner
    status_to_set = "INTAKE_IN_PROGRESS"
    transaction_uuid: UUID | None = None
    """While an entity is saved: the Transaction that is made for it."""
    connection: Any = None
    """While an entity is saved: the open database transaction, in which its Transaction is made too."""
    prepared: Any = None
    """While an entity is saved: what `prepare_input_entity` gave."""

    @abstractmethod
    async def query_input_entities(self) -> Sequence[Entity]:
        """What is there now; what was there before may be given again."""

    @abstractmethod
    async def save_input_entity(self, entity: Entity) -> Mapping[str, Any]:
        """Save the entity; gives the data of its Transaction."""

    async def prepare_input_entity(self, entity: Entity) -> Any:
        """What takes long, as reading or keeping a large content: called before the database transaction is opened.

        The database ends a transaction in which nothing is sent for seconds. What this gives is `self.prepared` while
        the entity is saved. Not called for an entity that came before; one that fails afterwards is prepared again.
        """
        return None

    async def acknowledge_input_entity(self, entity: Entity) -> None:
        """Tell the source that the entity is taken: called once its Transaction is kept, or if it was kept before.

        What a crash leaves unacknowledged is queried again, and acknowledged then. Does nothing until it is written.
        """

    async def reject_input_entity(self, entity: Entity, error: Exception) -> None:
        """Tell the source that the entity was not taken: called once `error` is recorded.

        Does nothing until it is written; the source then gives the entity again.
        """

    def natural_key(self, entity: Entity) -> str | None:
        """What the source calls the entity. One that came before makes no second Transaction; None: each is new."""
        return None

    def business_key(self, entity: Entity) -> str | None:
        """What limits of concurrency count by (`max_per_key`), such as a customer; None: it counts nowhere."""
        return None


class ProcessingMonitor(TransactionMonitorTask):
    """Heads the shipped Processing process."""

    status_to_monitor = "INTAKE_COMPLETED"
    status_to_set = "PROCESSING_IN_PROGRESS"


class SubmissionMonitor(TransactionMonitorTask):
    """Heads the shipped Submission process."""

    status_to_monitor = "PROCESSING_COMPLETED"
    status_to_set = "SUBMISSION_IN_PROGRESS"


class ErrorMonitor(TransactionMonitorTask):
    """Heads the shipped Error process."""

    status_to_monitor = HAS_ERROR
    status_to_set = ERROR_IN_PROGRESS
