"""Random lines, trays and faults: what activities make of a tray, some of them twice, is what memory makes of it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from temporalio.testing import ActivityEnvironment

from casework.durable.activities.tray import TrayActivities
from casework.durable.process_contracts import GiveUpTray, Outcome, ReleaseTray, TrayReply, TrayStart, TrayWork
from casework.durable.workflows.tray_book import TrayBook
from casework.errors import BusinessError
from casework.process import (
    BusinessProcess,
    Change,
    ErrorPolicy,
    OnError,
    PlainTask,
    TaskContext,
    Transaction,
    TransactionalTask,
    bot_task,
)
from casework.process.lines import LOOP_RULE, Rule
from casework.process.local import LocalProject
from casework.process.tasks import Task
from casework.process.walk import GiveUp, Work
from tests.integration.durable.conftest import House
from tests.integration.durable.processes.trays import Yard, project, yard
from tests.unit.process.lines import Join, Split, process

CASES = 12
POLICIES = (
    None,
    ErrorPolicy(retries=1),
    ErrorPolicy(on_error=OnError.LOG_AND_FORGET),
    ErrorPolicy(on_error=OnError.FAIL_FAST),
    ErrorPolicy(siblings=True),
)
GIVEN: Mapping[str, Change | None] = {
    "status": Change(status="PROCESSING_COMPLETED"),
    "illegal": Change(status="INTAKE_IN_PROGRESS"),
    "large": Change(priority=2**40),
    "set": Change(data={"is": {1, 2}}),
    "object": Change(data={"is": object()}),
    "nothing": None,
}
"""What a task may give instead of its name."""
ERRORS: Mapping[str, Exception] = {"business": BusinessError("it is bad"), "away": ConnectionError("it is closed")}
Row = tuple[Any, ...]
"""Of a Transaction: its parent, its data, status and claim, and how many errors it has."""


def task(name: str, dice: random.Random) -> type[Task]:
    """A task that does to a Transaction what its data says."""
    base: Any = dice.choice((PlainTask, PlainTask, TransactionalTask))
    effects = dice.random() < 0.3
    declared: dict[str, Any] = {"repeat": "idempotent"} if effects else {"effects": False}

    class Does(base):  # type: ignore[misc]  # one of two kinds
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            how = transaction.data.get("how", {}).get(name)
            if how in ERRORS:
                raise ERRORS[how]
            seen = [*transaction.data.get("seen", []), name]
            return GIVEN[how] if how in GIVEN else Change(data={"seen": seen})

    return bot_task(name, errors=dice.choice(POLICIES), **({} if base is TransactionalTask else declared))(Does)


def line(dice: random.Random) -> BusinessProcess:
    """Tasks, in half of the lines behind a split and before its join, and Rules that lead past some of them."""
    tasks = [task(name, dice) for name in "abcde"[: dice.randint(1, 5)]]
    if dice.random() < 0.5:
        at = dice.randint(0, len(tasks))
        tasks = [*tasks[:at], Split, *tasks[at:], Join]
    names = [vars(each)["__bot_task__"].name for each in tasks]
    rules = [
        Rule(name, f"has(data.jump) && data.jump == {name!r}", dice.choice([*names[at:], "finalizer"][1:]))
        for at, name in enumerate(names)
        if dice.random() < 0.3
    ]
    errors = dice.choice((None, None, ErrorPolicy(retries=1), ErrorPolicy(on_error=OnError.FAIL_FAST)))
    return process(*tasks, rules=(LOOP_RULE, *rules), errors=errors, tray_size=99)


def items(dice: random.Random) -> list[dict[str, Any]]:
    """The data of some Transactions, of which few or many meet with something."""
    rate, hows = dice.choice((0.0, 0.05, 0.2)), (*GIVEN, *ERRORS)
    return [
        {
            "n": number,
            "how": {name: dice.choice(hows) for name in "abcde" if dice.random() < rate},
            "jump": dice.choice("abcde "),
            "parts": list(range(dice.randint(0, 3))),
        }
        for number in range(dice.randint(1, 7))
    ]


class Engine:
    """Walks a tray as its workflow does, in small parts; loses reports of activities, and what it knew."""

    def __init__(self, here: Yard, start: TrayStart, dice: random.Random) -> None:
        self._activities = TrayActivities(here.house.services())
        self._start = start
        self._dice = dice
        self._size = dice.choice((2, 3, 100))
        self._known: dict[tuple[str, tuple[UUID, ...]], tuple[Outcome, ...]] = {}

    async def walk(self) -> None:
        start, book, given_up = self._start, TrayBook(self._start), 0
        book.enter(start)
        while (due := book.due) is not None:
            if isinstance(due, Work):
                book.take(await self._work(book, due))
                continue
            given_up += 1
            book.take((await self._given_up(book, due, given_up)).outcomes)
        await self._call(self._activities.release_tray, ReleaseTray(start.tenant, start.process, start.claim_id))

    async def _work(self, book: TrayBook, work: Work) -> Sequence[Outcome]:
        if self._dice.random() < 0.2:
            self._known.clear()
        ids = work.transactions
        parts = [ids[first : first + self._size] for first in range(0, len(ids), self._size)]
        made: list[Outcome] = []
        for part in parts:
            known = self._known.pop((work.path, part), None) if work.attempt == 1 else None
            made += await self._part(book, work, part, others=len(parts) > 1) if known is None else known
        return made

    async def _part(self, book: TrayBook, work: Work, part: tuple[UUID, ...], *, others: bool) -> tuple[Outcome, ...]:
        start, ahead = self._start, book.ahead(work, self._start.ahead)
        asked = TrayWork(
            start.tenant,
            start.process,
            start.claim_id,
            work.station,
            work.visit,
            work.attempt,
            book.standing(part),
            ahead,
            unlimited=True,
            others=others,
        )
        if self._dice.random() < 0.3:  # its report is lost
            await self._call(self._activities.work_tray, replace(asked, ahead=ahead[: self._dice.randint(0, 9)]))
        reply: TrayReply = await self._call(self._activities.work_tray, asked)
        self._known |= {(visit.path, part): each for visit, each in zip(ahead, reply.ahead, strict=False)}
        return reply.outcomes

    async def _given_up(self, book: TrayBook, due: GiveUp, number: int) -> TrayReply:
        start, standing = self._start, book.standing(due.reasons)
        asked = GiveUpTray(start.tenant, start.process, start.claim_id, number, standing, due.reasons)
        reply: TrayReply = await self._call(self._activities.give_up, asked)
        return reply

    async def _call(self, activity: Any, asked: Any) -> Any:
        return await ActivityEnvironment().run(activity, asked)


def row(transaction: Transaction, parent: str, errors: int) -> Row:
    told = (str(transaction.data.get(name)) for name in ("n", "part", "seen", "joined", "is"))
    return parent, *told, transaction.status, str(transaction.claim_id), errors


async def in_memory(made: BusinessProcess, data: Sequence[Mapping[str, Any]]) -> list[Row]:
    """What becomes of them."""
    async with LocalProject([made]) as local:
        for each in data:
            local.add("INTAKE_COMPLETED", each)
        await local.run("processing")
        return anonymous(
            (each, sum(error.transaction == each.uuid for error in local.store.errors))
            for each in local.store.transactions.values()
        )


async def by_activities(here: Yard, data: Sequence[Mapping[str, Any]], dice: random.Random) -> list[Row]:
    """The same, by the activities."""
    for each in data:
        await here.add(each)
    start = await here.claimed()
    await Engine(here, start, dice).walk()
    mine = [uuid for group in start.standing for uuid in group.transactions]
    found = [await here.get(uuid) for uuid in mine]
    found += [child for uuid in mine for child in await here.children(uuid)]
    return anonymous([(each, len(await here.errors(each.uuid))) for each in found])


def anonymous(found: Iterable[tuple[Transaction, int]]) -> list[Row]:
    """Rows in an order, with the number of the parent and without ids."""
    pairs = list(found)
    numbers = {each.uuid: str(each.data.get("n")) for each, _ in pairs}
    return sorted(row(each, "" if each.parent_uuid is None else numbers[each.parent_uuid], n) for each, n in pairs)


@pytest.mark.parametrize("seed", range(CASES))
async def test_activities_make_of_a_tray_what_memory_makes_of_it(house: House, seed: int) -> None:
    """BP-9, BP-10, BP-23, BP-26. Status, data, errors and children are the same, whatever was done twice; nothing is
    held any more."""
    dice = random.Random(seed)
    made, data = line(dice), items(dice)
    expected = await in_memory(made, data)
    async with yard(house, project(made), works=False) as here:
        assert await by_activities(here, data, dice) == expected
