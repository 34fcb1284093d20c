"""The Error process works on Transactions while their tray walks on: the tray's line does not touch them any more.

Triggers look on: what the line writes of a Transaction that has an error, field or related row, leaves a row.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from casework.drills.process_app import DONE, ERRORS, PROCESS, STATUSES, WORKING
from casework.drills.process_ground import LATENCY_S, TENANT, ProcessGround, until
from casework.drills.promises import Report
from casework.errors import FatalError
from casework.ids import derived_id
from casework.process.failures import Spot, error_entity
from casework.process.statuses import ABORTED
from casework.process.transactions import failed
from casework.store.database import Connection
from casework.store.processes import task_errors, transactions

NAME = "errors"
TITLE = "The Error process works on Transactions of trays that are under way"
NUMBER = 40
HELD_S = 15.0
"""Seconds for which the destination holds its answers back, unless the Error process is done sooner."""
WITHIN_S = 180.0
WATCH = """
create table process_drill_seen (uuid uuid not null, what text not null);
create function process_drill_field() returns trigger language plpgsql security definer as $$
begin
    if old.status in ('HAS_ERROR', 'ERROR_IN_PROGRESS', 'ABORTED') and new.process is distinct from 'errors' then
        insert into process_drill_seen
        values (old.uuid, format('%s became %s by %s', old.status, new.status, new.process));
    end if;
    return new;
end $$;
create function process_drill_row() returns trigger language plpgsql security definer as $$
begin
    if exists (select from process_ops.transactions t
               where t.uuid = new.uuid and t.status in ('HAS_ERROR', 'ERROR_IN_PROGRESS', 'ABORTED')) then
        insert into process_drill_seen values (new.uuid, 'a row of ' || new.task);
    end if;
    return new;
end $$;
create trigger process_drill_field after update on process_ops.transactions
    for each row execute function process_drill_field();
create trigger process_drill_row before insert on process_drill for each row execute function process_drill_row()
"""
UNWATCH = """
drop function process_drill_field, process_drill_row cascade;
drop table process_drill_seen
"""
SEEN = "select uuid, what from process_drill_seen"
NOTIFYING = """
select transaction_uuid from process_ops.transaction_steps
where task = 'notify' and state = 'STARTED' and transaction_uuid = any(%(uuids)s)
"""
OPEN = "select count(*) from process_ops.transactions where uuid = any(%(uuids)s) and end_time is null"
ENDS = "select uuid, status, data ->> 'book', end_time from process_ops.transactions where uuid = any(%(uuids)s)"
LATER = """
select count(*) from process_ops.transaction_steps s
join process_ops.transaction_stages g on g.transaction_uuid = s.transaction_uuid and g.after = 'HAS_ERROR'
where s.process = %(process)s and s.started_at > g.at and s.transaction_uuid = any(%(uuids)s)
"""


async def play(ground: ProcessGround, report: Report) -> None:
    """Fail half of what is in trays from outside, and let the Error process end it before the trays end.

    Raises:
        BrokenOffError: it does not come to its end, or a server refuses.
    """
    await ground.owner(WATCH)
    await ground.crew.staff(1)
    await ground.destination.slow_down(HELD_S)
    try:
        uuids = await ground.put_in(NAME, NUMBER)
        await ground.start()
        await ground.start(ERRORS)

        async def acts() -> bool:
            return len(await ground.owner(NOTIFYING, uuids=uuids)) > 1

        await until(acts, "a tray is at its second task", WITHIN_S)
        taken = await _fail(ground, uuids[::2])
        report.tell(f"{len(taken)} of {NUMBER} Transactions got an error from outside while their tray was under way.")

        await until(lambda: _all_ended(ground, taken), "the Error process is done", WITHIN_S)
        await _let_go(ground)
        await until(lambda: _all_ended(ground, uuids), "all Transactions have ended", WITHIN_S)
        await _judge(ground, report, uuids, taken)
    finally:
        await _let_go(ground)
        await ground.owner(UNWATCH)


async def _all_ended(ground: ProcessGround, uuids: Sequence[UUID]) -> bool:
    return (await ground.owner(OPEN, uuids=list(uuids))) == [(0,)]


async def _let_go(ground: ProcessGround) -> None:
    """The destination answers, also what it holds."""
    await ground.destination.slow_down(LATENCY_S)
    await ground.destination.release()


async def _fail(ground: ProcessGround, uuids: Sequence[UUID]) -> list[UUID]:
    """Those of them that were in their tray still, and have an error now."""
    taken = []
    async with ground.database() as db:
        for uuid in uuids:
            async with db.transaction() as conn:
                taken += [uuid] if await _failed(conn, uuid) else []
    return taken


async def _failed(conn: Connection, uuid: UUID) -> bool:
    found, at = await transactions.lock(conn, TENANT, uuid), datetime.now(UTC)
    if found is None or found.status != WORKING:
        return False
    entity = error_entity(
        FatalError("The drill has failed it from outside."),
        found,
        Spot(PROCESS, found.task or "", derived_id(uuid, "drill")),
        root=uuid,
        attempt=1,
        started=at,
        failed=at,
        environment=os.environ,
    )
    await transactions.write(conn, found, failed(STATUSES, found), PROCESS, "error", at)
    await task_errors.record(conn, TENANT, entity)
    return True


async def _judge(ground: ProcessGround, report: Report, uuids: Sequence[UUID], taken: Sequence[UUID]) -> None:
    ends = {uuid: (status, book, at) for uuid, status, book, at in await ground.owner(ENDS, uuids=uuids)}
    others = set(uuids) - set(taken)
    aborted = {uuid for uuid, (status, _, _) in ends.items() if status == ABORTED}
    report.promise(
        "The Error process ended all that had an error, and nothing else", aborted == set(taken), len(aborted)
    )
    done = {uuid for uuid, (status, book, _) in ends.items() if status == DONE and book == "1"}
    report.promise("All others came through every task", done == others, len(done))
    first, last = min(ends[uuid][2] for uuid in taken), max(ends[uuid][2] for uuid in others)
    report.promise("Their trays were under way meanwhile", first < last, f"{(last - first).total_seconds():.1f} s")
    seen = [f"{uuid}: {what}" for uuid, what in await ground.owner(SEEN)]
    report.promise("The line changed no field and no related row of them", not seen, seen[:5] or 0)
    [(later,)] = await ground.owner(LATER, uuids=list(taken), process=PROCESS)
    report.promise("The line began no step of them any more", not later, later)
    await ground.balance(report)
    report.counts.update(failed_from_outside=len(taken), transactions=len(uuids))
