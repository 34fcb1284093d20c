"""Rows of a query as Transactions. Nothing is written into their database: which were taken is known by their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casework.errors import BusinessError
from casework.process.monitors import InputMonitorTask
from casework.sources.sql.rows import KEY_LIMIT, SqlRow, hashed
from casework.sources.sql.source import SqlSource


class SqlQuery(InputMonitorTask[SqlRow]):
    """Each row a Transaction, its values by column the data. Derive from it to make other data of a row.

    A project provides `SqlSource`, which lives as long as the worker.
    """

    def __init__(self, source: SqlSource) -> None:
        self.source = source

    async def query_input_entities(self) -> Sequence[SqlRow]:
        """The rows of one poll.

        Raises:
            UnreachableError, SettingsError: as `SqlSource.rows`.
        """
        return await self.source.rows()

    async def save_input_entity(self, entity: SqlRow) -> Mapping[str, Any]:
        """The row's values.

        Raises:
            BusinessError: one of them has no plain form, or there is no key.
        """
        if entity.problem:
            raise BusinessError(
                f"row {entity.key!r} of {self.source.settings.name!r}: {entity.problem}", code="UNREADABLE"
            )
        return entity.values

    async def acknowledge_input_entity(self, entity: SqlRow) -> None:
        """Nothing is written where it came from."""
        self.source.taken(entity)

    async def reject_input_entity(self, entity: SqlRow, error: Exception) -> None:  # noqa: ARG002 - the hook's
        """Leave it alone for a while."""
        self.source.refused(entity)

    def natural_key(self, entity: SqlRow) -> str | None:
        """The query's name and the key; of both together no more than a natural key may have."""
        if entity.problem:
            return None
        name = self.source.settings.name
        room = KEY_LIMIT - len(name) - 1
        return f"{name}:{entity.key if len(entity.key) <= room else hashed(entity.key)}"
