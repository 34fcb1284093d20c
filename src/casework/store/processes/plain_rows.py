"""Values of a process as the database's functions take them: plain objects, cleaned, with how much was replaced."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from casework.errors import InputError
from casework.process import ErrorEntity, Transaction
from casework.values import Plain, clean, dumps, holdable, instant, plain

KEY_LIMIT = 500
"""Longest natural key, in characters."""
_SMALL = 64
"""Bits of an integer that is written as it is."""
COLUMNS = tuple(Transaction.__dataclass_fields__)


def held(fields: Mapping[str, Any]) -> dict[str, Plain]:
    """`fields` as the database can hold them, with `cleaned`."""
    made: dict[str, Plain] = {}
    replaced = 0
    for name, value in fields.items():
        simple = _simple(value, name)
        if simple is None and value is not None:
            cleaned = clean(plain(value, name))
            simple, replaced = cleaned.value, replaced + cleaned.replaced
        made[name] = simple
    made["cleaned"] = replaced
    return made


def _simple(value: Any, name: str) -> Plain:
    """What needs no cleaning, as most fields do not; None for all else. It is the hot path of every Task."""
    if isinstance(value, str):
        return value if type(value) is str and holdable(value) else None
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return instant(value, name)
    return value if isinstance(value, bool) or (type(value) is int and value.bit_length() < _SMALL) else None


def as_json(value: Plain) -> Jsonb:
    """A parameter of type jsonb."""
    return Jsonb(value, dumps=dumps)


def new_row(
    made: Transaction, process: str, *, cloned_from: UUID | None = None, business_key: str | None = None
) -> dict[str, Plain]:
    """A Transaction that is new. `process` is whose work the birth is.

    Raises:
        InputError: a key is blank or longer than KEY_LIMIT.
    """
    _check_key("natural_key", made.natural_key)
    _check_key("business_key", business_key)
    return held(
        {
            "uuid": made.uuid,
            "parent_uuid": made.parent_uuid,
            "natural_key": made.natural_key,
            "start_time": made.start_time,
            "cloned_from": cloned_from,
            "business_key": business_key,
            "data": made.data,
            "stage_process": process,
            **_state(made),
        }
    )


def changed_row(before: Transaction, after: Transaction, process: str, *, by_hand: bool = False) -> dict[str, Plain]:
    """What a Transaction becomes. Its data is there only where it is another."""
    data = {} if _same(before.data, after.data) else {"data": after.data}
    return held({"by_hand": by_hand, "stage_process": process, **data, **_state(after)})


def _same(before: Mapping[str, Plain], after: Mapping[str, Plain]) -> bool:
    """Whether both are the same text: to Python 1, 1.0 and True are one value."""
    return before is after or (before == after and dumps(before) == dumps(after))


def _state(transaction: Transaction) -> dict[str, Any]:
    """Its columns that may change; those that are null are left out."""
    columns = {
        "status": transaction.status,
        "status_before_error": transaction.status_before_error,
        "claim_id": transaction.claim_id,
        "process": transaction.process,
        "task": transaction.task,
        "priority": transaction.priority,
        "due_time": transaction.due_time,
        "end_time": transaction.end_time,
        "skip_until": transaction.skip_until,
        "straight_through": transaction.straight_through,
    }
    return {name: value for name, value in columns.items() if value is not None}


def error_row(error: ErrorEntity) -> dict[str, Plain]:
    """An error."""
    return held({name: getattr(error, name) for name in ErrorEntity.__dataclass_fields__})


def transaction_of(row: Mapping[str, Any]) -> Transaction:
    """The Transaction among the columns of a row."""
    return Transaction(**{name: row[name] for name in COLUMNS})


def _check_key(name: str, key: str | None) -> None:
    if key is not None and not (key.strip() and len(key) <= KEY_LIMIT):
        raise InputError(f"{name} is {key!r:.60}. Pass a text of 1 to {KEY_LIMIT} characters, or None.", field=name)
