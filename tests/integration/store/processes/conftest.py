"""The databases of the tests of the store, for its part that holds business processes."""

from tests.integration.store.conftest import admin_db, db

__all__ = ["admin_db", "db"]
