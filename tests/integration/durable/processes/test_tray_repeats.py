"""What makes repeats in trays harmless, where no worker has to be killed for it; and long trays."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from casework.durable.activities import computing_tasks, plain_tasks, transactional_tasks
from casework.durable.activities.tray import TrayActivities
from casework.durable.process_contracts import TrayReply, TrayStart, TrayWork
from casework.process import Change, ErrorPolicy, PlainTask, TaskContext, Transaction, TransactionalTask, bot_task
from casework.process.policies import Next
from casework.process.tasks import Task
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.parts import early, parts_of, replay_all
from tests.integration.durable.processes.test_tray import noting
from tests.integration.durable.processes.trays import Yard, project, yard
from tests.unit.process.lines import Join, Split, plain, process

DONE = "PROCESSING_COMPLETED"


async def at_once(here: Yard, start: TrayStart, station: str, attempt: int = 1) -> TrayReply:
    """The activity for a station of a tray, alone, as the engine would have it done."""
    work = TrayWork(start.tenant, start.process, start.claim_id, station, 1, attempt, start.standing)
    return await ActivityEnvironment().run(TrayActivities(here.house.services()).work_tray, work)


@pytest.mark.parametrize("transactional", [True, False])
async def test_a_repeated_activity_skips_what_is_done(house: House, *, transactional: bool) -> None:
    """BP-9. The same activity again gives the same outcomes, without calling the Task: done, failed, and failed for
    good; a later attempt of the policy calls it anew."""
    calls: list[int] = []

    class Counts(TransactionalTask if transactional else PlainTask):  # type: ignore[misc]  # one of two kinds
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            calls.append(transaction.data["n"])
            if transaction.data["n"] == 1:
                raise RuntimeError("not now")
            return Change(status="PROCESSING_COMPLETED")

    declared: dict[str, Any] = {} if transactional else {"effects": False}
    task = bot_task("counts", **declared)(Counts)
    async with yard(house, project(process(task, tray_size=2)), works=False) as here:
        for number in range(2):
            await here.add({"n": number})
        start = await here.claimed()
        first = await at_once(here, start, "counts")
        assert [(each.kind, each.status) for each in first.outcomes] == [("passed", DONE), ("left", "HAS_ERROR")]
        assert await at_once(here, start, "counts") == first
        assert sorted(calls) == [0, 1]


async def test_a_task_that_verifies_asks_before_it_acts_again(house: House) -> None:
    """BP-9, DA-27. Of an attempt that was lost behind its effect the next one finds the effect, and does not act."""
    sent: list[str] = []
    acted = asyncio.Event()

    @bot_task("send", repeat="verify")
    class Send(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            sent.append(ctx.key)
            acted.set()
            await asyncio.Event().wait()
            return Change(data={"sent": "now"})

        async def verify(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return Change(data={"sent": "before"}) if ctx.key in sent else None

    async with yard(house, project(process(Send)), works=False) as here:
        uuid = await here.add()
        start = await here.claimed()
        lost = asyncio.create_task(at_once(here, start, "send"))
        await acted.wait()
        lost.cancel()
        await asyncio.wait({lost})
        await at_once(here, start, "send")
        assert len(sent) == 1
        assert (await here.get(uuid)).data == {"sent": "before"}
        (step,) = await here.steps(uuid)
        assert (step.state, step.attempt) == ("COMPLETED", 2)


async def test_the_result_of_an_attempt_that_was_overtaken_does_not_count(house: House) -> None:
    """BP-9, DA-27. Two attempts are alive at once: the first acts for long, the second commits; the first is refused,
    and the key was the same."""
    keys: list[str] = []
    go = asyncio.Event()

    @bot_task("send", repeat="keyed")
    class Send(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            keys.append(ctx.key)
            attempt = len(keys)
            if attempt == 1:
                await go.wait()
            return Change(data={"by": attempt})

    async with yard(house, project(process(Send)), works=False) as here:
        uuid = await here.add()
        start = await here.claimed()
        first = asyncio.create_task(at_once(here, start, "send"))
        await eventually(lambda: _true(len(keys) == 1), "the first acts")
        await at_once(here, start, "send")
        go.set()
        with pytest.raises(ApplicationError, match="came too late"):
            await first
        assert (await here.get(uuid)).data == {"by": 2}
        assert len(set(keys)) == 1


async def _true(value: bool) -> bool:
    return value


class BrokenPolicy(ErrorPolicy):
    """Judges nothing."""

    def judge(self, error: BaseException, attempt: int) -> Next:
        raise RuntimeError("this policy is broken")


async def test_one_that_fails_its_activity_each_time_is_found_and_given_up(house: House) -> None:
    """BP-10. A Transaction for which the activity itself fails, whatever the attempt, is tried alone in the end, and
    fails; the others of its tray come through."""
    attempts: list[int] = []

    @bot_task("odd", effects=False, errors=BrokenPolicy())
    class Odd(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            if transaction.data.get("bad"):
                attempts.append(ctx.attempt)
                raise ValueError("odd")
            return None

    async with yard(house, project(process(Odd, noting("b"), tray_size=3))) as here:
        uuids = [await here.add(), await here.add({"bad": True}), await here.add()]
        end = await here.walk()
        assert (end.transactions, end.left) == (3, 1)
        assert await here.statuses(uuids) == [DONE, "HAS_ERROR", DONE]
        (error,) = await here.errors(uuids[1])
        assert "this policy is broken" in error.full
        assert attempts == [1, 2, 3, 4, 5, 6]


LAST_POINTS: dict[str, tuple[ModuleType, list[str], dict[str, Any]]] = {
    "transactional": (transactional_tasks, ["sent", "sent", "committed"], {}),
    "plain": (plain_tasks, ["claimed", "claimed", "committed"], {"repeat": "keyed"}),
    "computing": (computing_tasks, ["acted", "acted", "committed"], {"effects": False}),
}


@pytest.mark.parametrize("kind", LAST_POINTS)
async def test_work_that_was_done_before_its_last_worker_was_lost_counts(
    house: House, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """BP-9. The last attempt of the activity is lost behind its commit: that is the outcome, and no error."""
    module, points, declared = LAST_POINTS[kind]
    lost = list(points)

    def point(name: str, _: str) -> None:
        if lost and name == lost[0]:
            lost.pop(0)
            raise RuntimeError("the worker is lost")

    class Ends(TransactionalTask if kind == "transactional" else PlainTask):  # type: ignore[misc]  # one of two kinds
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return Change(data={"ended": True})

    monkeypatch.setattr(module, "fault_point", point)
    async with yard(house, project(process(bot_task("ends", **declared)(Ends), noting("b")))) as here:
        uuid = await here.add()
        end = await here.walk()
        assert (lost, end.left) == ([], 0)
        assert await here.errors(uuid) == []
        now = await here.get(uuid)
        assert (now.status, now.data["ended"]) == (DONE, True)


async def test_a_long_tray_goes_on_as_a_new_history(house: House) -> None:
    """BP-10, DA-20. A tray of many stations rolls over with all that it knows: children that are held for, what has
    failed, claims; and each part replays."""

    @bot_task("odd")
    class Odd(TransactionalTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            if transaction.data.get("part") == "bad":
                raise RuntimeError("bad")
            return None

    tasks: list[type[Task]] = [Split, Odd, *[plain(f"t{number}") for number in range(12)], Join, plain("last")]
    async with yard(early(house, 20), project(process(*tasks, tray_size=2))) as here:
        whole, broken = await here.add({"parts": ["x", "y"]}), await here.add({"parts": ["bad"]})
        start = await here.claimed()
        end = await (await here.start(start)).result()
        assert (end.transactions, end.left) == (5, 2)
        assert await here.statuses([whole, broken]) == [DONE, "HAS_ERROR"]
        assert (await here.get(whole)).data["joined"] == ["x", "y"]
        histories = await parts_of(house.client, f"tray-{start.claim_id}")
        assert len(histories) >= 3
        await replay_all(house.client, histories)
