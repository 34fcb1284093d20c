"""How often an Error process takes a Transaction that it fails itself."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from casework.process import Transaction
from casework.process.policies import ERROR_CLAIMS
from casework.store.database import Database
from casework.store.processes import task_errors
from tests.integration.store.processes.making import add, at, get, made, take, write

FAILED, MENDING = "HAS_ERROR", "ERROR_IN_PROGRESS"


async def taken(db: Database, per_key: int | None) -> list[Transaction]:
    """What the Error process claims now."""
    async with db.transaction() as conn:
        return await take(conn, uuid4(), status=FAILED, into=MENDING, process="errors", per_key=per_key)


async def failing(db: Database, per_key: int | None) -> int:
    """How often it is claimed, and fails again, until it is not claimed any more or for the seventh time."""
    for times in range(7):
        claimed = await taken(db, per_key)
        if not claimed:
            return times
        for each in claimed:
            await write(db, each, replace(each, status=FAILED, claim_id=None))
    return 7


@pytest.mark.parametrize("per_key", [None, 1])
async def test_what_the_error_process_fails_again_and_again_is_left_to_a_person(
    db: Database, per_key: int | None
) -> None:
    """BP-25. After five claims it stays HAS_ERROR, an error says so, and others are claimed; once it was resumed it
    counts anew."""
    one = made()
    await add(db, one)
    await write(db, one, replace(one, status=FAILED, status_before_error=one.status))
    assert await failing(db, per_key) == ERROR_CLAIMS
    left = await get(db, one.uuid)
    assert (left.status, left.claim_id) == (FAILED, None)
    async with db.transaction() as conn:
        (error,) = await task_errors.of(conn, one.tenant, one.uuid)
    assert (error.code, error.attempt) == ("LEFT_TO_A_PERSON", ERROR_CLAIMS)
    other = made()
    await add(db, other)
    await write(db, other, replace(other, status=FAILED, status_before_error=other.status))
    assert [each.uuid for each in await taken(db, per_key)] == [other.uuid]
    resumed = replace(left, status=one.status, status_before_error=None)
    await write(db, left, resumed)
    await write(db, resumed, replace(resumed, status=FAILED, start_time=at(0)))
    assert await failing(db, per_key) == ERROR_CLAIMS
