"""The application of the process drill: three tasks, of which two write a table and one acts at a destination.

The table counts what happened and prevents nothing: a second effect is a second row.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence

import httpx2
from dishka import Provider, Scope

from casework.app import App
from casework.errors import RetryableError
from casework.process import (
    Answer,
    BusinessProcess,
    Change,
    ErrorEntity,
    ErrorMonitor,
    ErrorPolicy,
    ErrorTask,
    Finalizer,
    PlainTask,
    Remedy,
    StatusSet,
    TaskContext,
    Transaction,
    TransactionalTask,
    TransactionMonitorTask,
    bot_task,
)
from casework.process.statuses import ABORTED, ERROR_IN_PROGRESS
from casework.process.tasks import Task

WAITING, WORKING, DONE = "NEW", "WORKING", "COMPLETED"
STATUSES = StatusSet.of({WAITING: WORKING, WORKING: DONE}, initial=WAITING)
PROCESS, ERRORS = "drill", "errors"
TASKS = ("register", "notify", "book")
TRAY = 50
DESTINATION = "CASEWORK_DRILL_DESTINATION"
"""The variable with the URL of the destination."""
TABLE = """
create table process_drill (uuid uuid not null, task text not null);
grant select, insert on process_drill to casework_runtime
"""


class DrillMonitor(TransactionMonitorTask):
    """Takes what waits."""

    status_to_monitor, status_to_set = WAITING, WORKING


class _Row(TransactionalTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        """One row for each call that commits."""
        task = ctx.path.partition(".")[0]
        await ctx.connection.execute("insert into process_drill values (%s, %s)", [transaction.uuid, task])
        return Change(data={task: transaction.data.get(task, 0) + 1})


@bot_task("register")
class Register(_Row):
    """The first row."""


@bot_task("notify", repeat="keyed")
class Notify(PlainTask):
    """A call with the key of this visit."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:  # noqa: ARG002  # the key says it
        """Act at the destination.

        Raises:
            RetryableError: it does not answer.
        """
        try:
            url = f"{os.environ[DESTINATION]}/effects"
            (await self._client.post(url, headers={"Idempotency-Key": ctx.key})).raise_for_status()
        except httpx2.HTTPError as error:
            raise RetryableError(f"The destination did not answer: {error!r}") from error
        return Change(data={"key": ctx.key})


@bot_task("book")
class Book(_Row):
    """The last row."""


async def _client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=20) as client:
        yield client


modules = Provider(scope=Scope.APP)
modules.provide(_client)  # one for the worker: to make one takes 20 ms in which nothing else moves


@bot_task("abort")
class Abort(ErrorTask):
    """Ends whatever failed."""

    async def handle(
        self,
        transaction: Transaction,  # noqa: ARG002  # all are alike
        errors: Sequence[ErrorEntity],  # noqa: ARG002
        ctx: TaskContext,  # noqa: ARG002
    ) -> Remedy | Change | None:
        """No person is asked."""
        return Remedy(Answer.ABORT)


def drilled(*tasks: type[Task]) -> App:
    """The application with these tasks on its line."""
    return App(
        processes=[
            BusinessProcess(
                name=PROCESS, monitor=DrillMonitor, tasks=tasks, finalizer=Finalizer(WORKING, DONE), tray_size=TRAY
            ),
            BusinessProcess(
                name=ERRORS,
                monitor=ErrorMonitor,
                tasks=(Abort,),
                finalizer=Finalizer(ERROR_IN_PROGRESS, ABORTED),
                tray_size=TRAY,
            ),
        ],
        modules=[modules],
        statuses=STATUSES,
        errors=ErrorPolicy(retries=2),
        monitors={
            "monitors": [
                {"monitorClass": name, "pollingInterval": "PT2S", "sleepTime": "PT1S"}
                for name in ("DrillMonitor", "ErrorMonitor")
            ]
        },
    )


app = drilled(Register, Notify, Book)
