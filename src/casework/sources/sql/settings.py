"""What is set for a query."""

from __future__ import annotations

from dataclasses import dataclass

from casework.errors import SettingsError
from casework.sources.references import SecretReference


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlSettings:
    """The database, the query, and the column that tells rows apart.

    Raises:
        SettingsError: a field has no valid value.
    """

    name: str
    """What natural keys begin with: two queries whose keys are numbers need two names."""
    dsn: SecretReference
    """Where the database's URL is, or its `key=value` text."""
    query: str
    """One SELECT without parameters. It is read in pages, ordered by the key, so an index on the key helps."""
    key: str
    """The column of the result that is different in each row, never null, and never changes."""
    rows_per_poll: int = 500
    statement_timeout_s: float = 30.0
    """Longest that the query may take, in seconds."""
    connect_timeout_s: float = 10.0

    def __post_init__(self) -> None:
        for name in ("name", "query", "key"):
            if not getattr(self, name).strip():
                raise SettingsError(f"{name} is blank. Give one.", field=name)
        if ";" in self.query.strip().rstrip(";"):
            raise SettingsError(
                "query holds a ';' within it. Give one statement; write chr(59) where a text needs one.", field="query"
            )
        for name in ("rows_per_poll", "statement_timeout_s", "connect_timeout_s"):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} is {getattr(self, name)!r}. Give a number above 0.", field=name)
