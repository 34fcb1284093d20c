"""A person's answer about a failed Transaction that is given directly, and not to a review that asks for it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from uuid import UUID

from casework.app import App
from casework.durable.client import RunClient
from casework.durable.contracts import CancelRequest
from casework.errors import CaseworkError
from casework.process import ErrorPolicy, Remedy
from casework.process.policies import nearest
from casework.process.remedies import Remedied
from casework.store.database import Database
from casework.store.processes import linked_runs, remedies

log = logging.getLogger(__name__)


def answers_of(app: App) -> ErrorPolicy:
    """The policy that says which answers are on offer: the Error process's own, else the project's."""
    return nearest([*(line.process.errors for line in app.lines().values() if line.handles_errors), app.errors])


async def answer(
    db: Database, app: App, runs: RunClient, tenant: str, transaction: UUID, remedy: Remedy, by: str
) -> Remedied:
    """End a failed Transaction as `by` says; a question about it that is open is taken back.

    Where the engine cannot be reached the question stays, and whatever is answered to it has no effect.

    Raises:
        NotFoundError: there is no such Transaction.
        StateError: it has no error (any more), or the answer is not on offer.
        InputError: the status to clone into, or the task to resume at, is none that there is.
        StoreUnavailableError: the database cannot be reached; nothing was done.
    """
    async with db.transaction() as conn:
        made = await remedies.by_hand(
            conn,
            tenant,
            transaction,
            remedy,
            statuses=app.statuses,
            policy=answers_of(app),
            lines=app.lines().values(),
            entities=app.entities,
            by=by,
            at=datetime.now(UTC),
        )
        waiting = [each for each in await linked_runs.of(conn, tenant, transaction) if each.open]
    for run in waiting:
        reason = f"Transaction {transaction} was answered directly: {remedy.answer}"
        try:
            await runs.cancel(str(run.run_id), CancelRequest(by, reason))
        except CaseworkError as error:
            log.warning("run %s goes on asking about Transaction %s: %s", run.run_id, transaction, error)
    return made
