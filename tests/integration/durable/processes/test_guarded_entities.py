"""A worker does not start with tables of entities that are not guarded."""

from __future__ import annotations

import pytest

from casework.app import App
from casework.durable.worker import ready
from casework.errors import ProcessDeclarationError
from tests.integration.durable.conftest import House
from tests.integration.durable.processes.post import furnished, sql


async def test_a_table_without_the_guard_is_refused_at_the_start(house: House) -> None:
    """BP-3: the error names the table; once it has the guard, the worker starts."""
    await furnished(house)
    house.app = App(entities=["public.letters"])
    with pytest.raises(ProcessDeclarationError, match=r"public\.letters"):
        async with ready(house.services()):
            raise AssertionError("it started")
    await sql(house, "select process_ops.guard_entities('public.letters', 'uuid')")
    async with ready(house.services()):
        pass
