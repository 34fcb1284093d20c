"""A process of a plain and two transactional tasks that note each call, for workers that are killed."""

from __future__ import annotations

import os
from pathlib import Path

from casework.process import Change, PlainTask, TaskContext, Transaction, TransactionalTask, bot_task
from tests.integration.durable.processes.trays import project
from tests.unit.process.lines import process

FOLDER = Path(os.environ["CASEWORK_TEST_FOLDER"])
CALLS = FOLDER / "calls"


def note(name: str, transaction: Transaction, ctx: TaskContext) -> None:
    """One line for each call."""
    with CALLS.open("a") as file:
        file.write(f"{name} {transaction.uuid} {ctx.key} {ctx.attempt}\n")


class Insert(TransactionalTask):
    """Counts the Transaction in a table that takes each as often as it is told."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        note(ctx.path, transaction, ctx)
        await ctx.connection.execute("insert into effects values (%s, %s)", [transaction.uuid, ctx.path])
        return Change(data={ctx.path: transaction.data.get(ctx.path, 0) + 1})


@bot_task("first")
class First(Insert):
    pass


@bot_task("send", repeat="keyed")
class Send(PlainTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        note(ctx.path, transaction, ctx)
        return Change(data={ctx.path: transaction.data.get(ctx.path, 0) + 1})


@bot_task("last")
class Last(Insert):
    pass


app = project(process(First, Send, Last, tray_size=4))
