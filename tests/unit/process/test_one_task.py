"""One Task, run from its class: how a user tests it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from dishka import Provider, Scope
from tests.unit.process.lines import Ask, Join, Split, Underwrite
from tests.unit.process.test_transactions import new

from casework.errors import FatalError, InputError, ProcessDeclarationError
from casework.process.declaring import bot_task
from casework.process.local import run_task
from casework.process.tasks import Change, Decision, InputEntityTask, PlainTask, RunEnd, TaskContext, TransactionalTask
from casework.process.transactions import Transaction
from casework.testing.answers import ScriptedReviewer
from casework.testing.processes import TaskFixture


class Rates:
    """A service that a project would provide."""

    def __init__(self, rate: int = 3) -> None:
        self.rate = rate


@bot_task("price", effects=False)
class Price(PlainTask):
    def __init__(self, rates: Rates) -> None:
        self.rates = rates

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return Change(data={"price": transaction.data["amount"] * self.rates.rate}, priority=2)


def module() -> Provider:
    made = Provider(scope=Scope.APP)
    made.provide(lambda: Rates(7), provides=Rates)
    return made


def test_a_task_is_run_from_its_class(casework_task: TaskFixture) -> None:
    """BP-7. The unit of injection and of test: a class, an input Transaction, and the modules that it needs."""
    made = casework_task(Price, new(data={"amount": 5}), modules=[module()])
    assert (made.transaction.data, made.transaction.priority) == ({"amount": 5, "price": 35}, 2)


def test_a_missing_provider_is_told_before_the_task_runs(casework_task: TaskFixture) -> None:
    """BP-7. What its constructor asks for and no module provides is an error that names the Task."""
    with pytest.raises(ProcessDeclarationError, match="Task 'price': no module provides Rates"):
        casework_task(Price, {"amount": 5})


@bot_task("book")
class Book(TransactionalTask):
    """Runs where there is an amount."""

    async def should_run(self, transaction: Transaction, ctx: TaskContext) -> bool:
        return "amount" in transaction.data

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return Change(data={"booked": [transaction.data["amount"]]}, status="INTAKE_COMPLETED")

    async def after(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return Change(data={"booked": [*transaction.data["booked"], ctx.connection]})

    async def instead(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return Change(data={"booked": []})


async def test_the_hooks_of_a_transactional_task_run_in_order() -> None:
    """should_run decides between run, with after behind it on what run has left, and instead."""
    made = (await run_task(Book, new(data={"amount": 5}), connection="open")).transaction
    assert (made.data["booked"], made.status) == ([5, "open"], "INTAKE_COMPLETED")
    assert (await run_task(Book, new())).transaction.data == {"booked": []}


SAVED: list[int] = []


@bot_task("rows")
class Rows(InputEntityTask[int]):
    async def find(self, transaction: Transaction, ctx: TaskContext) -> Sequence[int]:
        return [1, 2]

    async def process(self, entity: int, transaction: Transaction, ctx: TaskContext) -> int:
        return entity * 10

    async def save(self, entity: int, transaction: Transaction, ctx: TaskContext) -> None:
        SAVED.append(entity)


def test_each_kind_is_run_alone(casework_task: TaskFixture, casework_reviewer: ScriptedReviewer) -> None:
    """Entities, split, join, agent and manual tasks: each with what a test gives it instead of the world."""
    SAVED.clear()
    casework_task(Rows)
    assert SAVED == [10, 20]
    parent = new(data={"parts": [4, 5]})
    children = casework_task(Split, parent).children
    assert [child.data["part"] for child in children] == [4, 5]
    assert casework_task(Join, parent, children=children).transaction.data["joined"] == [4, 5]
    assert casework_task(Join, parent).transaction == parent

    async def agent(workflow: str, run_id: UUID, given: Mapping[str, Any]) -> RunEnd:
        return RunEnd(run_id, f"{workflow} {given['amount']}")

    made = casework_task(Underwrite, {"amount": 5}, agent=agent)
    assert made.transaction.data["outcome"] == "loan-underwriting 5"
    casework_reviewer.decides("no")
    asked = casework_task(Ask)
    assert (asked.transaction.data["good"], asked.transaction.straight_through) == (False, False)


async def test_what_nobody_gives_is_an_error() -> None:
    """No agent, no reviewer, a decision that is not on offer, a result that is no Change: each says what to do."""
    with pytest.raises(FatalError, match="Pass `agent`"):
        await run_task(Underwrite, new(data={"amount": 5}))
    with pytest.raises(FatalError, match="Pass `reviewer`"):
        await run_task(Ask, new())
    with pytest.raises(FatalError, match="'maybe' is not on offer; there are yes, no"):
        await run_task(Ask, new(), reviewer=lambda _transaction, _question: Decision("maybe"))

    @bot_task("odd", effects=False)
    class Odd(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Any:
            return {"price": 5}

    with pytest.raises(ProcessDeclarationError, match="Return a Change, or None"):
        await run_task(Odd, new())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"priority": "high"}, "A Task gave priority 'high'. Give a whole number"),
        ({"priority": object()}, "A Task gave priority <object"),
        (
            {"priority": 2**31},
            "priority 2147483648. Give a whole number from -2147483647 to 2147483647",
        ),
        ({"priority": True}, "A Task gave priority True"),
        ({"due_time": "tomorrow"}, "A Task gave due_time 'tomorrow'. Give an aware datetime"),
        ({"due_time": datetime(2026, 3, 1)}, "due_time cannot be stored: datetime without time zone"),
    ],
)
def test_a_change_that_cannot_be_written_is_the_tasks_error(casework_task: TaskFixture, change: Any, told: str) -> None:
    """BP-23. It is told before anything is written, and to this Transaction alone."""

    @bot_task("odd", effects=False)
    class Odd(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return Change(**change)

    with pytest.raises(InputError, match=re.escape(told)):
        casework_task(Odd, {})
