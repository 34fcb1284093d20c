"""Splits and joins in trays, and Transactions that go on at a later task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from temporalio.client import WorkflowHandle

from casework.errors import BusinessError
from casework.process import (
    Change,
    ErrorPolicy,
    Finalizer,
    PlainTask,
    SplitTask,
    TaskContext,
    Transaction,
    TransactionalTask,
    TransactionMonitorTask,
    bot_task,
)
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.processes.test_tray import noting
from tests.integration.durable.processes.trays import project, yard
from tests.unit.process.lines import Join, Split, plain, process

DONE = "PROCESSING_COMPLETED"


@bot_task("weigh", effects=False)
class Weigh(PlainTask):
    """Refuses the part "bad"."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        if transaction.data.get("part") == "bad":
            raise BusinessError("the part is bad")
        return None


async def test_children_travel_in_the_tray_and_are_joined_once(house: House) -> None:
    """BP-8. Two Transactions are split in one tray of both; each parent is joined once, when its last child came."""
    async with yard(house, project(process(Split, Weigh, Join, plain("after"), tray_size=2))) as here:
        first, second = await here.add({"parts": ["x", "y"]}), await here.add({"parts": ["z"]})
        end = await here.walk()
        assert (end.transactions, end.left) == (5, 0)
        assert (await here.get(first)).data["joined"] == ["x", "y"]
        assert (await here.get(second)).data["joined"] == ["z"]
        children = await here.children(first)
        assert [(each.data["part"], each.status, each.claim_id) for each in children] == [
            ("x", DONE, None),
            ("y", DONE, None),
        ]
        steps = [step.path for step in await here.steps(first)]
        assert steps == ["split.1", "join.1", "after.1"]
        assert [stage.made_by for stage in await here.stages(children[0].uuid)] == ["split", "finalizer"]


async def test_a_child_that_fails_is_missing_at_the_join(house: House) -> None:
    """BP-8, BP-23. The parent fails at the join with what is missing; the other child comes through."""
    async with yard(house, project(process(Split, Weigh, Join))) as here:
        parent = await here.add({"parts": ["good", "bad"]})
        await here.walk()
        assert await here.statuses([parent]) == ["HAS_ERROR"]
        (error,) = await here.errors(parent)
        assert (error.code, error.task) == ("CHILDREN_MISSING", "join")
        good, bad = await here.children(parent)
        assert (good.status, bad.status) == (DONE, "HAS_ERROR")
        (error,) = await here.errors(bad.uuid)
        assert (error.root, error.transaction) == (parent, bad.uuid)


async def test_siblings_of_a_failed_child_can_go_with_it(house: House) -> None:
    """BP-26. With `siblings` a failed child takes the children of its parent along, and nobody else's."""
    policy = ErrorPolicy(siblings=True)
    async with yard(house, project(process(Split, Weigh, Join, tray_size=2), errors=policy)) as here:
        first, second = await here.add({"parts": ["x", "bad", "y"]}), await here.add({"parts": ["z"]})
        await here.walk()
        assert [each.status for each in await here.children(first)] == ["HAS_ERROR"] * 3
        assert await here.statuses([second]) == [DONE]
        (taken,) = await here.errors((await here.children(first))[0].uuid)
        assert "it leaves with Transaction" in taken.short


class Early(TransactionMonitorTask):
    status_to_monitor, status_to_set = "INTAKE_COMPLETED", "PROCESSING_IN_PROGRESS"


class Late(TransactionMonitorTask):
    status_to_monitor, status_to_set = "PROCESSING_COMPLETED", "SUBMISSION_IN_PROGRESS"


async def test_children_are_joined_across_trays(house: House) -> None:
    """BP-8. Split in one process, joined in another where each comes in a tray of its own: rows are counted, and the
    result is made once, for the parent, which was claimed first and waits until the last child has arrived."""
    cut = process(Split, name="cut", monitor=Early, finalizer=Finalizer("PROCESSING_IN_PROGRESS", DONE))
    put = process(Join, name="put", monitor=Late, finalizer=Finalizer("SUBMISSION_IN_PROGRESS", "COMPLETED"))
    async with yard(house, project(cut, put)) as here:
        parent = await here.add({"parts": ["x", "y", "z"]})
        assert (await here.walk("cut")).transactions == 4
        first = await here.claimed("put", most=1)
        assert [entry.uuid for entry in first.entries] == [parent]
        waits = await here.start(first)
        await eventually(lambda: _looked(waits, 2), "the parent waits at the join")
        for _ in range(3):
            assert (await here.walk("put", most=1)).transactions == 1
        assert (await waits.result()).left == 0
        assert (await here.get(parent)).data["joined"] == ["x", "y", "z"]
        assert await here.statuses([parent, *[each.uuid for each in await here.children(parent)]]) == ["COMPLETED"] * 4


async def _looked(handle: WorkflowHandle[Any, Any], times: int) -> bool:
    history = await handle.fetch_history()
    fired = [event for event in history.events if event.HasField("timer_fired_event_attributes")]
    return len(fired) >= times


async def test_it_goes_on_at_the_task_that_it_is_to_resume_at(house: House) -> None:
    """BP-8, BP-26. Tasks before `skip_until` are told and do not run; the mark is gone behind it."""
    told: list[tuple[Any, str]] = []

    @bot_task("first")
    class First(TransactionalTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return Change(data={"first": True})

        async def on_skipped(self, transaction: Transaction, reason: str) -> None:
            told.append((transaction.uuid, reason))

    async with yard(house, project(process(First, plain("b"), noting("c"), tray_size=2))) as here:
        resumed, whole = await here.add(skip_until="c"), await here.add()
        lost = await here.add(skip_until="gone")
        await here.walk(most=3)
        assert told == [(resumed, "it goes on at task 'c'")]
        assert (await here.get(resumed)).data == {"seen": ["c"]}
        assert (await here.get(whole)).data == {"first": True, "seen": ["b", "c"]}
        assert (await here.get(resumed)).skip_until is None
        assert await here.statuses([resumed, whole, lost]) == [DONE, DONE, "HAS_ERROR"]
        (error,) = await here.errors(lost)
        assert "'gone'" in error.full


async def test_a_split_that_gives_nonsense_leaves_no_child(house: House) -> None:
    """BP-8, BP-9. The second of two parts is no data: the split fails, and the first child is not there either."""

    @bot_task("split")
    class Odd(SplitTask):
        async def split(self, transaction: Transaction, ctx: TaskContext) -> Sequence[Mapping[str, Any]]:
            return [{"part": 1}, {"part": object()}]

    async with yard(house, project(process(Odd, Join))) as here:
        parent = await here.add()
        await here.walk()
        assert await here.statuses([parent]) == ["HAS_ERROR"]
        assert await here.children(parent) == []
