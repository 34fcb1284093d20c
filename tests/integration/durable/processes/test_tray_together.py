"""Tasks that only compute, done for a whole tray at once; and stations that are done with the one before."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from temporalio.testing import ActivityEnvironment

from casework.durable.activities import computing_tasks
from casework.durable.activities.tray import TrayActivities
from casework.durable.process_contracts import TrayReply, TrayStart, TrayWork, Visit
from casework.errors import BusinessError, ConflictError, StoreUnavailableError
from casework.process import Change, ErrorPolicy, PlainTask, TaskContext, Transaction, TransactionalTask, bot_task
from casework.process.lines import FINALIZER as LAST
from casework.process.lines import LOOP_RULE, Rule
from casework.store.processes import computed_steps, transactions
from tests.integration.durable.conftest import House
from tests.integration.durable.processes.trays import Yard, project, yard
from tests.unit.process.lines import plain, process

DONE = "PROCESSING_COMPLETED"


@bot_task("add", effects=False)
class Add(PlainTask):
    """Notes each call; one that is `bad` fails."""

    calls: list[int] = []  # noqa: RUF012  # of the test that is under way

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        self.calls.append(transaction.data["n"])
        if transaction.data.get("bad"):
            raise BusinessError("it is bad", code="BAD")
        return Change(data={"sum": transaction.data["n"] + 1})


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    Add.calls.clear()


async def told(here: Yard, start: TrayStart, station: str, *ahead: str, activities: Any = None) -> TrayReply:
    """The activity for a station, and what follows, as the engine would have it done."""
    visits = tuple(Visit(each, 1) for each in ahead)
    work = TrayWork(start.tenant, start.process, start.claim_id, station, 1, 1, start.standing, visits)
    made = activities or TrayActivities(here.house.services())
    return await ActivityEnvironment().run(made.work_tray, work)


async def test_all_are_done_together_and_each_fails_for_itself(house: House) -> None:
    """BP-9, BP-10, BP-23. What fails, and what cannot be a row, is an error of its own; the others are as ever."""
    async with yard(house, project(process(Add, tray_size=9)), works=False) as here:
        sum_of_2 = "data ->> 'sum' is null or data ->> 'n' <> '2'"
        await here.rows(f"alter table process_ops.transactions add constraint no_sum check ({sum_of_2})")
        uuids = [await here.add({"n": n, "bad": n == 1}) for n in range(4)]
        reply = await told(here, await here.claimed(), "add")
        assert [(each.kind, each.transactions) for each in reply.outcomes] == [
            ("passed", (uuids[0], uuids[3])),
            ("left", (uuids[1],)),
            ("left", (uuids[2],)),
        ]
        assert [(await here.get(uuid)).data.get("sum") for uuid in uuids] == [1, None, None, 4]
        for uuid, code in ((uuids[1], "BAD"), (uuids[2], "ConflictError")):
            (error,), (step,) = await here.errors(uuid), await here.steps(uuid)
            assert (error.code, error.attempt, step.state, step.attempt) == (code, 1, "FAILED", 1)
        assert Add.calls.count(1) == 1  # the failure is claimed after the fact


async def test_one_that_was_changed_meanwhile_is_done_anew(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """BP-9. What a hand has written between the look and the write is seen by the Task, and kept; and one that a hand
    has taken from the tray is left as it is."""
    async with yard(house, project(process(Add, tray_size=9)), works=False) as here:
        changed, taken, other = [await here.add({"n": n}) for n in range(3)]
        look = computed_steps.look

        async def and_then(*args: Any) -> Any:
            found = await look(*args)
            for uuid, n, claim in ((changed, 40, "claim_id"), (taken, 50, "null")):
                sql = f"update process_ops.transactions set data = %s::jsonb, claim_id = {claim} where uuid = %s"
                await here.rows(sql, f'{{"n": {n}}}', uuid)
            return found

        monkeypatch.setattr(computed_steps, "look", and_then)
        reply = await told(here, await here.claimed(), "add")
        kinds = {uuid: each.kind for each in reply.outcomes for uuid in each.transactions}
        assert kinds == {changed: "passed", taken: "left", other: "passed"}
        assert [(await here.get(uuid)).data.get("sum") for uuid in (changed, taken, other)] == [41, None, 3]
        assert [len(await here.steps(uuid)) for uuid in (changed, taken, other)] == [1, 0, 1]


async def test_slow_tasks_are_written_as_they_end(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """BP-9. A worker that is lost in a long visit has to do again only what was not over for long."""
    monkeypatch.setattr(computing_tasks, "WRITES_EVERY_S", 0.0)
    written = asyncio.Event()
    complete = computed_steps.complete

    async def noting(*args: Any) -> frozenset[UUID]:
        found = await complete(*args)
        written.set()
        return found

    monkeypatch.setattr(computed_steps, "complete", noting)

    @bot_task("slow", effects=False)
    class Slow(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            if transaction.data["n"] == 1:
                await asyncio.Event().wait()
            return Change(data={"over": True})

    async with yard(house, project(process(Slow, tray_size=2)), works=False) as here:
        quick, slow = [await here.add({"n": n}) for n in range(2)]
        lost = asyncio.create_task(told(here, await here.claimed(), "slow"))
        await written.wait()
        lost.cancel()
        await asyncio.wait({lost})
        assert (await here.get(quick)).data["over"] is True
        assert (len(await here.steps(quick)), len(await here.steps(slow))) == (1, 0)


def quick_line(*rules: Rule, **more: Any) -> Any:
    """Three tasks that only compute, and one in the database."""

    @bot_task("last")
    class Last(TransactionalTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            if transaction.data.get("bad"):
                raise BusinessError("it is bad", code="BAD")
            return Change(data={"seen": [*transaction.data["seen"], "last"]})

    tasks = [plain(name) for name in ("a", "b", "c")]
    return project(process(*tasks, Last, rules=(LOOP_RULE, *rules), tray_size=more.pop("tray_size", 9), **more))


async def visits(here: Yard, start: TrayStart) -> list[str]:
    """The activities of a tray that has walked to its end."""
    handle = await here.start(start)
    await handle.result()
    events = [e.activity_task_scheduled_event_attributes for e in (await handle.fetch_history()).events]
    return [each.activity_id for each in events if each.activity_id]


async def test_a_line_of_quick_tasks_is_one_activity(house: House) -> None:
    """BP-10, BP-33. Each task has its step in the ledger, in order, and the Finalizer its stage."""
    async with yard(house, quick_line()) as here:
        uuids = [await here.add() for _ in range(3)]
        assert await visits(here, await here.claimed()) == ["a.1"]
        for uuid in uuids:
            found = await here.get(uuid)
            assert (found.status, found.data["seen"], found.claim_id) == (DONE, ["a", "b", "c", "last"], None)
            assert [(s.path, s.state) for s in await here.steps(uuid)] == [
                (f"{name}.1", "COMPLETED") for name in ("a", "b", "c", "last")
            ]
            assert [stage.made_by for stage in await here.stages(uuid)][-1] == "finalizer"


async def test_where_not_all_go_on_in_order_each_station_has_its_own(house: House) -> None:
    """BP-6, BP-23. Rules that lead elsewhere, a failure, and a way back: all as if nothing had been looked ahead at."""
    rules = (Rule("a", "'jump' in data", "c"), Rule("c", "size(data.seen) < 3", "b"))
    async with yard(house, quick_line(*rules)) as here:
        jumps, bad, good = await here.add({"jump": True}), await here.add({"bad": True}), await here.add()
        activities = await visits(here, await here.claimed())
        assert activities[0] == "a.1"
        assert len(set(activities)) == len(activities)
        assert (await here.get(jumps)).data["seen"] == ["a", "c", "b", "c", "last"]
        assert (await here.get(good)).data["seen"] == ["a", "b", "c", "last"]
        assert await here.statuses([jumps, bad, good]) == [DONE, "HAS_ERROR", DONE]
        assert [error.code for error in await here.errors(bad)] == ["BAD"]


async def test_what_was_done_ahead_is_found_when_its_report_is_lost(house: House) -> None:
    """BP-9, BP-10. The same activity again, and those of each station alone, tell what is in the rows."""
    async with yard(house, quick_line(), works=False) as here:
        uuids = tuple([await here.add() for _ in range(2)])
        start = await here.claimed()
        first = await told(here, start, "a", "b", "c", "last", LAST)
        assert [len(each) for each in first.ahead] == [1, 1, 1, 1]
        assert (first.ahead[-1][0].transactions, first.ahead[-1][0].status) == (uuids, DONE)
        assert await told(here, start, "a", "b", "c", "last", LAST) == first
        assert (await told(here, start, "c")).outcomes == first.ahead[1]
        assert (await told(here, start, LAST)).outcomes == first.ahead[-1]
        assert [len(await here.steps(uuid)) for uuid in uuids] == [4, 4]


@pytest.mark.unbalanced("work is not in the ledger")
async def test_the_finalizer_of_another_tray_is_not_this_one(house: House) -> None:
    """BP-4. One that a hand has taken from the tray, and another has ended, has left this line."""
    async with yard(house, quick_line(), works=False) as here:
        uuid = await here.add()
        start = await here.claimed()
        async with here.house.db.transaction() as conn:
            found = await transactions.lock(conn, start.tenant, uuid)
            assert found is not None
            after = replace(found, status=DONE, claim_id=None)
            await transactions.write(conn, found, after, "processing", "by hand", found.start_time)
        (outcome,) = (await told(here, start, LAST)).outcomes
        assert (outcome.kind, outcome.status, outcome.held) == ("left", DONE, False)


async def test_a_fault_ahead_is_left_for_its_own_activity(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """BP-9. What was done is told, although the database has gone away since."""
    async with yard(house, quick_line(), works=False) as here:
        await here.add()
        start = await here.claimed()
        look, calls = computed_steps.look, []

        async def failing(*args: Any) -> Any:
            calls.append(1)
            if len(calls) == 3:
                raise StoreUnavailableError("away")
            return await look(*args)

        monkeypatch.setattr(computed_steps, "look", failing)
        reply = await told(here, start, "a", "b", "c", "last", LAST)
        assert (len(reply.outcomes), len(reply.ahead)) == (1, 1)


async def test_an_error_policy_tries_again_as_ever(house: House) -> None:
    """BP-26. A task that only computes fails, and is called again at the next attempt of the policy."""
    tried: list[int] = []

    @bot_task("odd", effects=False, errors=ErrorPolicy(retries=2))
    class Odd(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            tried.append(ctx.attempt)
            if len(tried) < 3:
                raise RuntimeError("not now")
            return Change(data={"tries": len(tried)})

    async with yard(house, project(process(plain("a"), Odd, plain("c"), tray_size=2))) as here:
        uuid = await here.add()
        await here.walk()
        found = await here.get(uuid)
        assert (found.status, found.data["tries"], len(tried)) == (DONE, 3, 3)
        (step,) = [each for each in await here.steps(uuid) if each.task == "odd"]
        assert (step.state, step.work_attempt) == ("COMPLETED", 3)


async def test_a_fault_in_mid_look_ends_nobody_twice(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """BP-4, BP-5. What was looked at before the fault is written once, and each has one stage of the Finalizer."""
    async with yard(house, quick_line(), works=False) as here:
        uuids = [await here.add() for _ in range(3)]
        start = await here.claimed()
        await here.rows("update process_ops.transactions set claim_id = null where uuid = %s", uuids[1])
        asked = transactions.was_made_by
        faults = [ConflictError("refused")]

        async def once(*args: Any) -> bool:
            if faults:
                raise faults.pop()
            return await asked(*args)

        monkeypatch.setattr(transactions, "was_made_by", once)
        reply = await told(here, start, LAST)
        assert [each.kind for each in reply.outcomes] == ["passed", "left"]
        for uuid in (uuids[0], uuids[2]):
            assert [each.made_by for each in await here.stages(uuid)].count("finalizer") == 1
