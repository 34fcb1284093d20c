"""Databases in the roles that the product uses, and runs to write on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from casework.store import runs
from casework.store.database import Database
from tests.integration.store.cases import new_run


@pytest.fixture
async def db(database_dsn: str) -> AsyncIterator[Database]:
    """In the runtime's role."""
    async with await Database.open(database_dsn, max_size=8) as opened:
        yield opened


@pytest.fixture
async def owner_db(database_dsn: str) -> AsyncIterator[Database]:
    """In the policy owner's role."""
    async with await Database.open(database_dsn, role="casework_policy_owner") as opened:
        yield opened


@pytest.fixture
async def admin_db(database_dsn: str) -> AsyncIterator[Database]:
    """In the login's own rights: it owns the schemas."""
    async with await Database.open(database_dsn, role=None) as opened:
        yield opened


@pytest.fixture
async def run_id(db: Database) -> UUID:
    """A run that was accepted: PENDING, version 0."""
    made = uuid4()
    async with db.transaction() as conn:
        await runs.create_pending(conn, new_run(made))
    return made
