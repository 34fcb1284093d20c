"""Trays of more Transactions than one activity takes: what a part of them does may concern the others."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from casework.durable.activities.tray import TrayActivities
from casework.durable.process_contracts import TrayWork, Visit
from casework.durable.workflows.tray_calls import TOGETHER
from casework.errors import BusinessError
from casework.process import Change, ErrorPolicy, OnError, PlainTask, TaskContext, Transaction, bot_task
from tests.integration.durable.conftest import House
from tests.integration.durable.processes.test_tray import noting
from tests.integration.durable.processes.trays import project, yard
from tests.unit.process.lines import plain, process

DONE = "PROCESSING_COMPLETED"


def checking(policy: ErrorPolicy) -> Any:
    """A task that only computes, and refuses what is `bad`."""

    @bot_task("check", effects=False, errors=policy)
    class Check(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            if transaction.data.get("bad"):
                raise BusinessError("it is bad", code="BAD")
            return None

    return Check


@bot_task("move", effects=False)
class Move(PlainTask):
    """Sets another status."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return Change(status=DONE)


async def test_fail_fast_takes_the_other_parts_of_a_tray(house: House) -> None:
    """BP-26. A failure in the second part takes the first one with it, and nobody is left behind without an error."""
    check = checking(ErrorPolicy(on_error=OnError.FAIL_FAST))
    async with yard(house, project(process(plain("a"), check, Move, noting("b"), tray_size=200))) as here:
        uuids = [await here.add({"bad": n == TOGETHER}) for n in range(TOGETHER + 1)]
        await here.walk(most=200)
        assert set(await here.statuses(uuids)) == {"HAS_ERROR"}


@pytest.mark.parametrize(
    ("own", "whole"),
    [
        (ErrorPolicy(siblings=True), None),
        (ErrorPolicy(on_error=OnError.FAIL_FAST), None),
        (ErrorPolicy(), ErrorPolicy(on_error=OnError.FAIL_FAST)),
    ],
)
async def test_nobody_goes_past_where_others_may_take_it_along(
    house: House, own: ErrorPolicy, whole: ErrorPolicy | None
) -> None:
    """BP-26. By the policy of the task, or that of the process for what is given up there; as far as that it goes."""
    line = process(plain("a"), checking(own), Move, errors=whole, tray_size=9)
    async with yard(house, project(line), works=False) as here:
        uuid = await here.add()
        start = await here.claimed()
        ahead = tuple(Visit(each, 1) for each in ("check", "move"))
        work = TrayWork(start.tenant, start.process, start.claim_id, "a", 1, 1, start.standing, ahead, others=True)
        reply = await ActivityEnvironment().run(TrayActivities(here.house.services()).work_tray, work)
        assert len(reply.ahead) == (0 if whole else 1)
        assert (await here.get(uuid)).status != DONE
