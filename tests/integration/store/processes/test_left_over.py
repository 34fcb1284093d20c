"""What a Monitor finds that a worker took in and did not live to claim."""

from __future__ import annotations

from uuid import uuid4

from casework.store.database import Database
from casework.store.processes import intake, transactions
from tests.integration.store.processes.making import PROCESS, START, TENANT, WORKING, made


async def test_what_was_in_a_tray_before_is_not_left_over(db: Database) -> None:
    """BP-4, BP-20. Never claimed: it is found. Unclaimed at the end of its line, seen by no task: it stays as it is."""
    one = made(status=WORKING, process=PROCESS)
    claim_id = uuid4()
    known = {"process": PROCESS, "status": WORKING}
    async with db.transaction() as conn:
        await transactions.insert(conn, one, PROCESS, "Mails", START)
    async with db.transaction() as conn:
        assert await intake.left_over(conn, TENANT, PROCESS, WORKING, 9) == [one.uuid]
        await intake.claim_made(conn, TENANT, uuids=[one.uuid], claim_id=claim_id, by="Mails", at=START, **known)
        assert await transactions.release(conn, TENANT, claim_id) == 1
        assert await intake.left_over(conn, TENANT, PROCESS, WORKING, 9) == []
