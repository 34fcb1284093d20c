"""The application of the process drill with careless tasks: each commits its row by itself, and takes its time then."""

from __future__ import annotations

import asyncio
import os

import psycopg

from casework.drills.process_app import Notify, drilled
from casework.process import Change, TaskContext, Transaction, TransactionalTask, bot_task

LINGERS_S = 0.3
"""Seconds in which a kill finds the row committed and the Transaction not."""


class _OwnRow(TransactionalTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        task = ctx.path.partition(".")[0]
        async with await psycopg.AsyncConnection.connect(os.environ["CASEWORK_DATABASE_URL"]) as own:
            await own.execute("insert into process_drill values (%s, %s)", [transaction.uuid, task])
        await asyncio.sleep(LINGERS_S)
        return Change(data={task: 1})


@bot_task("register")
class Register(_OwnRow):
    """The first row."""


@bot_task("book")
class Book(_OwnRow):
    """The last row."""


app = drilled(Register, Notify, Book)
