"""Kinds of Tasks: what a user's class derives from. `@bot_task` gives it its name and registers it.

A Task gets a Transaction as a value and gives back a `Change`, or None where nothing is to change. Who calls it, in
which database transaction, and what becomes of an error, is the runner's: a Task never catches for the platform.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from casework.process.failures import ErrorEntity
from casework.process.policies import Answer
from casework.process.transactions import Transaction

Entity = TypeVar("Entity")


class Kind(StrEnum):
    """What a Task is, by the class that it derives from."""

    PLAIN = "plain"
    TRANSACTIONAL = "transactional"
    INPUT_ENTITIES = "input_entities"
    SPLIT = "split"
    JOIN = "join"
    AGENT = "agent"
    MANUAL = "manual"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of the Transaction: another status, and `data` over its own. What is left out stays."""

    status: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    priority: int | None = None
    due_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What a Task knows about the call: `key` is the same for every attempt of this visit; `now` is when it began.

    `connection` is the open database transaction of this Transaction, for all kinds but plain, agent and manual Tasks.
    """

    process: str
    path: str
    key: str
    attempt: int
    now: datetime
    connection: Any = None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How the run of an agent task ended; `outcome` is its business result."""

    run_id: UUID
    outcome: str | None = None
    output: Any = None


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked, and the decisions that there are to choose from."""

    text: str
    decisions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided; `data` is what the decision asks for besides, as the status to clone into."""

    decision: str
    reason: str = ""
    reviewer: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What an error task does about the Transaction. `into` is the clone's status, `at` the task to resume at.

    `data` is put over the Transaction's own, or over the clone's.
    """

    answer: Answer
    into: str | None = None
    at: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


class Task(ABC):
    """Base of all kinds; derive from one of those below."""

    kind: ClassVar[Kind]


class PlainTask(Task):
    """Does anything, for one Transaction. Its effects outside are claimed, made and committed as a tool's are."""

    kind = Kind.PLAIN

    @abstractmethod
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        """Do the work."""

    async def verify(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        """For `repeat=Repeat.VERIFY`: what the effect changed if it has happened, else None, and `run` is called."""
        raise NotImplementedError


class TransactionalTask(Task):
    """Database work only, in one database transaction with its row in the ledger: wholly done, or not at all."""

    kind = Kind.TRANSACTIONAL

    async def should_run(self, transaction: Transaction, ctx: TaskContext) -> bool:
        """Whether `run` is called, or `instead`."""
        return True

    @abstractmethod
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        """Do the work."""

    async def after(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        """Called with the Transaction as `run` has left it."""
        return None

    async def instead(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        """Called where `should_run` says no."""
        return None

    async def on_skipped(self, transaction: Transaction, reason: str) -> None:
        """Told that the Transaction goes on at a later task and why; it cannot be changed here."""


class InputEntityTask(Task, Generic[Entity]):
    """Works through the input entities of a Transaction, one by one, in the Transaction's database transaction."""

    kind = Kind.INPUT_ENTITIES

    @abstractmethod
    async def find(self, transaction: Transaction, ctx: TaskContext) -> Sequence[Entity]:
        """The entities that belong to the Transaction."""

    @abstractmethod
    async def process(self, entity: Entity, transaction: Transaction, ctx: TaskContext) -> Entity:
        """The entity as it is to be saved."""

    @abstractmethod
    async def save(self, entity: Entity, transaction: Transaction, ctx: TaskContext) -> None:
        """Write what `process` gave."""


class SplitTask(Task):
    """Splits a Transaction into children, which go on in its tray; it waits at the next join for them."""

    kind = Kind.SPLIT

    @abstractmethod
    async def split(self, transaction: Transaction, ctx: TaskContext) -> Sequence[Mapping[str, Any]]:
        """The data of each child. None: the Transaction goes on alone."""


class JoinTask(Task):
    """Joins children by parent: called once, for the parent, when the last child has arrived."""

    kind = Kind.JOIN
    longest_wait: ClassVar[timedelta | None] = None
    """How long a parent waits for children in other trays; then it fails, and says how many are missing. None: as long
    as one of them can come."""

    @abstractmethod
    async def join(self, parent: Transaction, children: Sequence[Transaction], ctx: TaskContext) -> Change | None:
        """What is to become of the parent; `children` are in the order of their split."""


class AgentTask(Task):
    """Runs a Workflow of agents and takes its outcome. A run that fails or is cancelled fails the Transaction."""

    kind = Kind.AGENT
    workflow: ClassVar[str]
    """Name of the Workflow."""

    @abstractmethod
    async def input(self, transaction: Transaction) -> Mapping[str, Any]:
        """The input of the run."""

    @abstractmethod
    async def outcome(self, transaction: Transaction, end: RunEnd) -> Change | None:
        """What follows from how the run ended."""


class ManualTask(Task):
    """Asks a person, and holds nothing while it waits."""

    kind = Kind.MANUAL

    @abstractmethod
    async def question(self, transaction: Transaction, errors: Sequence[ErrorEntity]) -> Question:
        """What is asked. `errors` are those of the Transaction, in order of time; none in the normal flow."""

    @abstractmethod
    async def decided(self, transaction: Transaction, decision: Decision) -> Remedy | Change | None:
        """What follows from the decision; a Remedy in an Error process only."""


class ErrorTask(Task):
    """Deals with a failed Transaction; stands in an Error process only."""

    kind = Kind.ERROR

    @abstractmethod
    async def handle(
        self, transaction: Transaction, errors: Sequence[ErrorEntity], ctx: TaskContext
    ) -> Remedy | Change | None:
        """A Remedy ends it here; a Change or None leaves it to the tasks behind. `errors` are in order of time."""
