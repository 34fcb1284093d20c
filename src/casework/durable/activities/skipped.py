"""Telling the Tasks that a Transaction passes over, where it goes on at a later one."""

from __future__ import annotations

import asyncio
import logging
import os

from casework.agents import scrub
from casework.durable.activities.services import Services
from casework.durable.process_contracts import SkippedTasks
from casework.process.declaring import TaskSpec
from casework.process.lines import Line
from casework.process.tasks import TransactionalTask
from casework.process.transactions import Transaction
from casework.store.lent import lent
from casework.store.processes import transactions

log = logging.getLogger("casework.worker")


async def tell_skipped(services: Services, asked: SkippedTasks) -> None:
    """Each Task before the one at which a Transaction goes on is told, in a database transaction of its own.

    What a Task raises here is logged and changes nothing: the Transaction passes it over all the same. A worker that is
    lost has the Tasks told again.

    Raises:
        StoreUnavailableError: the database cannot be reached.
    """
    line = services.lines.get(asked.process)
    for uuid, at in asked.goes_on_at.items() if line else ():
        async with services.db.transaction() as conn:
            found = await transactions.get(conn, asked.tenant, uuid)
        if found is None or found.claim_id != asked.claim_id:
            continue
        assert line is not None
        for spec in _before(line, at):
            await _tell(services, spec, found, f"it goes on at task {at!r}")


def _before(line: Line, at: str) -> list[TaskSpec]:
    names = list(line.specs)
    passed = names[: names.index(at)] if at in names else []
    return [line.specs[name] for name in passed if issubclass(line.specs[name].cls, TransactionalTask)]


class _TaskError(Exception):
    """What the Task raised, on its way out of the database transaction."""


async def _tell(services: Services, spec: TaskSpec, transaction: Transaction, reason: str) -> None:
    try:
        async with services.db.transaction() as conn:
            try:
                async with (
                    asyncio.timeout(spec.timeout),
                    lent(conn) as connection,
                    services.injector.made(spec.cls, connection) as task,
                ):
                    assert isinstance(task, TransactionalTask)
                    await task.on_skipped(transaction, reason)
            except Exception as error:
                raise _TaskError(scrub.told(scrub.words_of(error), os.environ)) from error
    except _TaskError as error:
        log.warning("Task %r was told that it skips Transaction %s: %s", spec.name, transaction.uuid, error)
