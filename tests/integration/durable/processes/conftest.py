"""The tests of processes work on the same house as the other durable tests, and leave books that balance."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from casework.store.processes import audit
from tests.integration.durable.conftest import TENANT, House


@pytest.fixture
async def house(house: House, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """The house, whose books are audited at the end: no legal history is a fault.

    A test that writes past the product says so, with the faults that this makes: `@pytest.mark.unbalanced(FAULT, ...)`.
    """
    yield house
    expected = {fault for mark in request.node.iter_markers("unbalanced") for fault in mark.args}
    async with house.db.transaction() as conn:
        found = await audit.books(conn, TENANT)
    assert {each.check.fault for each in found.faults} == expected, [
        (each.check.fault, str(each.id), each.found) for each in found.faults
    ]
