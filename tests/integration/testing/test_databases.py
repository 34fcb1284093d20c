"""Databases of tests, made from templates."""

from __future__ import annotations

from casework.testing.databases import Databases, Store


def test_what_is_prepared_is_made_once_and_copied(casework_databases: Databases) -> None:
    """Each has what was prepared, and nothing that another one wrote."""
    calls: list[str] = []

    def prepare(dsn: str) -> None:
        calls.append(dsn)
        Store(dsn).execute("create table public.shelf as select 1 as book")

    for _ in range(2):
        with casework_databases.prepared("shelves", prepare) as dsn:
            assert dsn not in calls
            assert Store(dsn).execute("update public.shelf set book = book + 1 returning book") == [(2,)]
    assert len(calls) == 1
