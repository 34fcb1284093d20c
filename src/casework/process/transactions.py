"""The Transaction: one business item on its way, and what may become of it.

A Transaction is a value. What happens to it gives a new one, checked against the project's statuses, so that no
runner can write a state that the model does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from casework.errors import InputError, TransitionError
from casework.ids import derived_id
from casework.process.statuses import HAS_ERROR, IN_ERROR, StatusSet
from casework.values import Plain, bounded, instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One entity in the automated work. Instants are aware; `data` is plain. Make a new one by `begin` or `child`."""

    uuid: UUID
    status: str
    start_time: datetime
    tenant: str = "default"
    parent_uuid: UUID | None = None
    """The Transaction that this one was split from."""
    status_before_error: str | None = None
    claim_id: UUID | None = None
    """The claim whose tray it is in; None where it waits for one."""
    end_time: datetime | None = None
    """When it reached a terminal status."""
    process: str | None = None
    task: str | None = None
    """The task of `process` that it is at."""
    natural_key: str | None = None
    """What its source calls it; one Transaction for each in a tenant."""
    priority: int = 0
    """Higher ones are claimed first."""
    due_time: datetime | None = None
    data: Mapping[str, Plain] = field(default_factory=dict)
    skip_until: str | None = None
    """The task at which it goes on; those before it are passed over."""
    straight_through: bool = True
    """Whether no person has touched it."""

    def record(self) -> dict[str, Any]:
        """What Rules see of it: each field under its name, instants and ids as text."""
        return {
            "uuid": str(self.uuid),
            "status": self.status,
            "start_time": instant(self.start_time),
            "parent_uuid": _text(self.parent_uuid),
            "status_before_error": self.status_before_error,
            "process": self.process,
            "task": self.task,
            "natural_key": self.natural_key,
            "priority": self.priority,
            "due_time": None if self.due_time is None else instant(self.due_time),
            "data": self.data,
            "straight_through": self.straight_through,
        }

    @property
    def in_error(self) -> bool:
        """Whether it is the Error process's alone."""
        return self.status in IN_ERROR


def begin(
    statuses: StatusSet,
    status: str,
    *,
    uuid: UUID,
    at: datetime,
    data: Mapping[str, Any] | None = None,
    natural_key: str | None = None,
    **more: Any,
) -> Transaction:
    """A new Transaction in `status` at the instant `at`; `more` are further fields.

    Raises:
        TransitionError: none can begin in that status.
        InputError: `natural_key` is blank, or an instant has no zone.
        UnserialisableError: `data` is not plain, or too large.
    """
    statuses.check(None, status)
    if natural_key is not None and not natural_key.strip():
        raise InputError(f"natural_key is {natural_key!r}: pass a text, or None.", field="natural_key")
    instant(at, "at")
    return Transaction(uuid=uuid, status=status, start_time=at, data=_data(data or {}), natural_key=natural_key, **more)


def child(parent: Transaction, path: str, number: int, data: Mapping[str, Any], at: datetime) -> Transaction:
    """Child `number` (from 1) of `parent`, split off at `path`: in its status, tray and process, with `data` its own.

    The id follows from parent, path and number: a repeated split makes the same children.

    Raises:
        UnserialisableError: `data` is not plain, or too large.
    """
    return replace(
        parent,
        uuid=derived_id(parent.uuid, path, f"child:{number}"),
        parent_uuid=parent.uuid,
        start_time=at,
        end_time=None,
        natural_key=None,
        data=_data(data),
    )


def moved(statuses: StatusSet, transaction: Transaction, status: str, at: datetime) -> Transaction:
    """The Transaction in `status`, if it may go there; with its end time where nothing follows.

    Raises:
        TransitionError: it may not; names both statuses and those that are allowed.
    """
    if status == HAS_ERROR:
        raise TransitionError(
            f"Transaction {transaction.uuid} cannot be moved to {HAS_ERROR} without an error. Raise one in the task."
        )
    statuses.check(transaction.status, status)
    ends = at if status in statuses.terminal else None
    return replace(transaction, status=status, end_time=ends)


def failed(statuses: StatusSet, transaction: Transaction) -> Transaction:
    """The Transaction in HAS_ERROR, which keeps the status that it had before it first failed.

    It is let go by its tray at once, so that the Error process can take it while the tray is still on its way; and it
    is not to skip anything any more, which the Error process's line could not. A status that the project has no more is
    no obstacle.

    Raises:
        TransitionError: it is terminal.
    """
    if transaction.status in statuses.moves:
        statuses.check(transaction.status, HAS_ERROR)
    before = transaction.status_before_error if transaction.in_error else transaction.status
    return replace(transaction, status=HAS_ERROR, status_before_error=before, claim_id=None, skip_until=None)


def touched(transaction: Transaction) -> Transaction:
    """The Transaction after a person's decision: it did not go straight through."""
    return replace(transaction, straight_through=False)


def changed(transaction: Transaction, /, **data: Any) -> Transaction:
    """The Transaction with `data` over its own.

    Raises:
        UnserialisableError: it is not plain, or too large.
    """
    return replace(transaction, data=_data({**transaction.data, **data}))


def _data(data: Mapping[str, Any]) -> dict[str, Plain]:
    made: dict[str, Plain] = bounded(dict(data), "data")
    return made


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)
