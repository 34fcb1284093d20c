"""Rows of a result as plain values: which types of columns can be kept, and how each is told."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, Column
from psycopg.types.datetime import DateLoader, TimestamptzLoader
from psycopg.types.json import set_json_loads

from casework.errors import SettingsError, UnserialisableError
from casework.values import Plain, clean, instant, loads, plain

KEY_LIMIT = 500
"""Longest key that is kept as it is, in characters; of longer ones the hash."""
_REMEDIES: Mapping[str, str] = {
    "bytea": "is bytes. Leave it out, or write encode({column}, 'base64')",
    "timestamp": "has no time zone. Say which one it is: {column} at time zone 'Europe/Berlin'",
    "interval": "is an interval. Write extract(epoch from {column}) for seconds, or {column}::text",
}
"""Types of columns that have no plain value."""


@dataclass(frozen=True, slots=True)
class SqlRow:
    """A row: its key as text, its values by column. `problem` says why it cannot be taken, where it cannot."""

    key: str
    values: Mapping[str, Plain]
    problem: str | None = None


class _Dates(DateLoader):
    """Dates that Python does not have, such as infinity, stay texts."""

    def load(self, data: Any) -> Any:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()


class _Instants(TimestamptzLoader):
    """As dates."""

    def load(self, data: Any) -> Any:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()


def prepare(connection: AsyncConnection[Any]) -> None:
    """Have values read so that none is lost: numbers in JSON with all their digits, instants beyond Python's."""
    set_json_loads(loads, connection)
    connection.adapters.register_loader("date", _Dates)
    connection.adapters.register_loader("timestamptz", _Instants)


def check(columns: Sequence[Column], key: str) -> None:
    """Whether each column can be kept.

    Raises:
        SettingsError: one has no plain value, or two have one name; names it and what to write instead.
    """
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"query gives two columns {name!r}. Rename one with AS.", field="query")
    for column in columns:
        for kind, remedy in _REMEDIES.items():
            found = psycopg.adapters.types[kind]
            if column.type_code in (found.oid, found.array_oid):
                told = remedy.format(column=column.name)
                raise SettingsError(f"query: column {column.name!r} {told}.", field="query")
    if key not in names:
        raise SettingsError(f"key is {key!r}, and the query gives {', '.join(names)}. Name one of them.", field="key")


def row_of(values: Mapping[str, Any], key: str) -> SqlRow:
    """The row with plain values; with a problem where one has none."""
    try:
        made = {name: _plain(value, name) for name, value in values.items()}
        return SqlRow(key_of(values[key], key), dict(clean(made).value))
    except UnserialisableError as error:
        return SqlRow(str(values[key])[:KEY_LIMIT], {}, str(error))


def key_of(value: Any, column: str) -> str:
    """A key as text.

    Raises:
        UnserialisableError: it is blank, or of a type that is no key.
    """
    if isinstance(value, datetime):
        text = instant(value, column)
    elif isinstance(value, (int, str, UUID, Decimal, date)) and not isinstance(value, bool):
        text = str(clean(str(value)).value)
    else:
        raise UnserialisableError(column, f"the key is {value!r:.100}", "Give a number, a text, a UUID or a date.")
    if not text.strip():
        raise UnserialisableError(column, "the key is blank", "Give each row one.")
    return text if len(text) <= KEY_LIMIT else hashed(text)


def hashed(key: str) -> str:
    """What stands for a key that is too long."""
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def _plain(value: Any, name: str) -> Plain:
    if isinstance(value, time):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(each, name) for each in value]
    if type(value).__module__ == "ipaddress":
        return str(value)
    return plain(value, name)
