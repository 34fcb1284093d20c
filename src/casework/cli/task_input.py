"""Transactions as a command line takes them: JSON that is the data of one, or a whole one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from casework.cli.run_input import near, text_in
from casework.errors import InputError
from casework.process.statuses import StatusSet
from casework.process.transactions import Transaction
from casework.values import Plain, TwiceError, loads_once

_FIELDS = tuple(field.name for field in fields(Transaction))


def read_json(given: str, option: str) -> Plain:
    """The JSON value that `given` is, or that is in the file it names, with or without an @; `-` is standard input.

    A key that stands twice in an object is refused.

    Raises:
        InputError: it cannot be read or is not JSON; names `option`.
    """
    inline = given.lstrip().startswith(("{", "["))
    name = "the value" if inline else given.removeprefix("@")
    try:
        return loads_once(given if inline else text_in(name))
    except OSError as error:
        raise InputError(
            f"{option}: {name} cannot be read: {error.strerror}. Correct the path.", field=option
        ) from None
    except TwiceError as error:
        raise InputError(f"{option}: {name} {error}. Give it once.", field=option) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{option}: {name} is not JSON: {error}. Correct it.", field=option) from None


def transaction_of(value: Plain, option: str, status: str | None, default: str, statuses: StatusSet) -> Transaction:
    """The Transaction that a JSON object stands for.

    With `status` (a text) and `data` (an object) it is a whole one; else it is the data of one. `status` goes before
    what the object says, `default` holds where nobody says anything. What is left out is new: id and start time.

    Raises:
        InputError: it is no object, or a field is unknown or not of its type.
        ProcessDeclarationError: there is no such status.
    """
    if not isinstance(value, dict):
        raise InputError(f"{option} is no JSON object. Give the Transaction's data as one.", field=option)
    whole = isinstance(value.get("data"), dict) and isinstance(value.get("status"), str)
    given: dict[str, Any] = dict(value) if whole else {"data": value}
    for name in given:
        if name not in _FIELDS:
            raise InputError(f"{option}: a Transaction has no field {name!r}.{near(name, _FIELDS)}", field=name)
    made = {name: _read(option, name, each) for name, each in given.items()}
    made["status"] = status or made.get("status") or default
    statuses.check_known(made["status"])
    return Transaction(**{"uuid": uuid4(), "start_time": datetime.now(UTC), **made})


def _read(option: str, name: str, value: Any) -> Any:
    reader = _READERS.get(name)
    if reader is None:
        expected, kind = _TYPES.get(name, ("a text", str))
        if isinstance(value, kind) or (value is None and name not in ("status", "data")):
            return value
        raise InputError(f"{option}: field {name!r} is {value!r:.60}, not {expected}. Correct it.", field=name)
    try:
        return None if value is None and name not in ("uuid", "start_time") else reader(value)
    except (ValueError, TypeError, AttributeError):
        what = "a UUID" if reader is UUID else "an instant with its zone, as in 2026-01-31T08:00:00Z"
        raise InputError(f"{option}: field {name!r} is {value!r:.60}, not {what}. Correct it.", field=name) from None


def _instant(value: str) -> datetime:
    made = datetime.fromisoformat(value)
    if made.tzinfo is None:
        raise ValueError(value)
    return made


_READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("uuid", "parent_uuid", "claim_id"), UUID),
    **dict.fromkeys(("start_time", "end_time", "due_time"), _instant),
}
_TYPES: Mapping[str, tuple[str, type]] = {
    "priority": ("a whole number", int),
    "straight_through": ("true or false", bool),
    "data": ("an object", dict),
}
