"""Natural keys of rows of a query."""

from __future__ import annotations

import pytest

from casework.sources.references import SecretReference
from casework.sources.sql import SqlQuery, SqlSettings, SqlSource
from casework.sources.sql.rows import SqlRow
from casework.store.processes.plain_rows import KEY_LIMIT


@pytest.mark.parametrize("length", [1, KEY_LIMIT - 4, KEY_LIMIT - 3, KEY_LIMIT])
def test_a_key_of_any_length_makes_a_natural_key(length: int) -> None:
    """BP-20, BP-22. With the name of its query before it no key is too long; two keys make two."""
    settings = SqlSettings(name="crm", dsn=SecretReference(variable="CRM"), query="select 1 as id", key="id")
    query = SqlQuery(SqlSource(settings))
    one, other = (query.natural_key(SqlRow(letter * length, {})) for letter in "ab")
    assert one is not None
    assert other is not None
    assert one != other
    assert len(one) <= KEY_LIMIT
    assert one.startswith("crm:")
