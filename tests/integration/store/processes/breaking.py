"""Rows that are broken past every guard, one fault each, and which fault that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from casework.process import Answer
from casework.store.database import Connection, Database
from casework.store.processes import monitors
from tests.integration.store.processes.histories import watched
from tests.integration.store.processes.making import TENANT
from tests.integration.store.processes.playing import DONE, Play


@dataclass
class _Kept:
    ids: dict[str, UUID] = field(default_factory=dict)

    def keep(self, name: str, uuid: UUID, claim_id: UUID | None = None) -> None:
        self.ids[name] = uuid
        if claim_id is not None:
            self.ids[f"{name}_claim"] = claim_id


async def played(db: Database) -> dict[str, UUID]:
    """Transactions of every sort, whose books balance; ids of some and of their claims by name, and of a Monitor."""
    play, made = Play(db), _Kept()
    one = await play.taken(natural_key="mail-1")
    made.keep("done", one.uuid)
    await play.complete(await play.work(one))
    one = await play.taken()
    made.keep("aborted", one.uuid, one.claim_id)
    await play.fail(one)
    (one,) = await play.claim(1, "errors")
    await play.answer(one, Answer.ABORT)
    one = await play.taken()
    made.keep("by_hand", one.uuid)
    await play.by_hand(await play.fail(one), Answer.COMPLETE)
    one = await play.taken()
    made.keep("replaced", one.uuid)
    clone = (await play.by_hand(await play.fail(one), Answer.CLONE, into=DONE)).clone
    assert clone is not None
    made.keep("clone", clone.uuid)
    parent = await play.taken()
    made.keep("parent", parent.uuid)
    arrived, away = await play.split(parent)
    await play.arrive(arrived)
    made.keep("arrived", arrived.uuid)
    made.keep("away", away.uuid)
    one = await play.taken()
    made.keep("moved", one.uuid)
    await play.work(one, to=DONE)
    one = await play.taken()
    made.keep("working", one.uuid, one.claim_id)
    await play.begin(one)
    await play.work(one, "pay")
    for _ in range(2):
        await play.born()
    first, _ = await play.claim()
    made.keep("pair", first.uuid, first.claim_id)
    one = await play.taken()
    made.keep("failed", one.uuid)
    await play.fail(one)
    await watched(play)
    one = await play.born(natural_key="mail-2")
    made.keep("waiting", one.uuid)
    async with db.transaction() as conn:
        seen = await monitors.get(conn, TENANT, "processing")
    assert seen is not None
    made.keep("monitor", seen.uuid)
    return made.ids


T, S = "update process_ops.transactions set ", "update process_ops.transaction_stages set "
ERRORS, STEPS, CLAIMS = (f"process_ops.transaction_{name}" for name in ("errors", "steps", "claims"))
ROUNDS = "update process_ops.monitor_rounds set "
ANALYTICS, ARRIVALS = "process_ops.transaction_analytics", "process_ops.transaction_arrivals"
OPEN_END = "alter table process_ops.transactions drop constraint transactions_ended_when_terminal"
STEP_COLUMNS = (
    "tenant, transaction_uuid, claim_id, process, task, path, kind, task_version, state, attempt, work_attempt, "
    "begun_by, started_at, updated_at, ended_at"
)

BREAKS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "a status without a stage": (
        "stage log ends otherwise",
        "working",
        (T + "status = 'SUBMISSION_IN_PROGRESS' where uuid = %(working)s",),
    ),
    "no stage at all": (
        "stage log ends otherwise",
        "waiting",
        ("delete from process_ops.transaction_stages where transaction_uuid = %(waiting)s",),
    ),
    "a stage from elsewhere": (
        "stage log has a gap",
        "working",
        (S + "before = 'INTAKE_IN_PROGRESS' where before = 'INTAKE_COMPLETED' and transaction_uuid = %(working)s",),
    ),
    "a stage that changes nothing": (
        "stage log has a gap",
        "working",
        (
            "insert into process_ops.transaction_stages (transaction_uuid, before, after, process, made_by, at) "
            "values (%(working)s, 'PROCESSING_IN_PROGRESS', 'PROCESSING_IN_PROGRESS', 'processing', 'x', now())",
        ),
    ),
    "one that came back to life": (
        "stage log goes on behind its end",
        "aborted",
        (
            T + "status = 'INTAKE_COMPLETED' where uuid = %(aborted)s",
            "insert into process_ops.transaction_stages (transaction_uuid, before, after, process, made_by, at) "
            "values (%(aborted)s, 'ABORTED', 'INTAKE_COMPLETED', 'errors', 'x', now())",
        ),
    ),
    "an end without its time": (
        "end time is missing",
        "aborted",
        (OPEN_END, T + "end_time = null where uuid = %(aborted)s"),
    ),
    "an end in a tray": (
        "ended in a tray",
        "replaced",
        (
            T + "claim_id = (select claim_id from process_ops.transaction_stages where claim_id is not null "
            "and transaction_uuid = %(replaced)s limit 1) where uuid = %(replaced)s",
        ),
    ),
    "a key that came twice": (
        "natural key is there more than once",
        "waiting",
        (
            "drop index process_ops.transactions_one_per_natural_key",
            T + "natural_key = 'mail-1' where uuid = %(waiting)s",
        ),
    ),
    "no analytics": ("analytics are missing", "done", (f"delete from {ANALYTICS} where transaction_uuid = %(done)s",)),
    "analytics of an open one": (
        "analytics of what is not COMPLETED",
        "working",
        (
            f"insert into {ANALYTICS} select tenant, %(working)s, root_uuid, process, start_time, end_time, seconds, "
            f"stage_times, straight_through, by_hand, errors, cost from {ANALYTICS} where transaction_uuid = %(done)s",
        ),
    ),
    "analytics of an absent one": (
        "analytics of what is not COMPLETED",
        "gone",
        (
            f"insert into {ANALYTICS} select tenant, %(gone)s, root_uuid, process, start_time, end_time, seconds, "
            f"stage_times, straight_through, by_hand, errors, cost from {ANALYTICS} where transaction_uuid = %(done)s",
        ),
    ),
    **{
        f"analytics with another {column}": (
            "analytics say otherwise",
            "done",
            (f"update {ANALYTICS} set {column} = {value} where transaction_uuid = %(done)s",),
        )
        for column, value in {
            "root_uuid": "gen_random_uuid()",
            "start_time": "now()",
            "end_time": "now()",
            "straight_through": "false",
            "by_hand": "true",
            "errors": "7",
        }.items()
    },
    "a claim that nobody made": (
        "claim is unknown",
        "working_claim",
        (f"delete from {CLAIMS} where claim_id = %(working_claim)s",),
    ),
    "a claim that took one more": (
        "claim took more than it says",
        "pair_claim",
        (f"update {CLAIMS} set taken = 1 where claim_id = %(pair_claim)s",),
    ),
    "a tray that wrote behind the next one": (
        "two trays held it at once",
        "aborted",
        (S + "claim_id = %(aborted_claim)s where after = 'ABORTED' and transaction_uuid = %(aborted)s",),
    ),
    "a tray that holds what another took": (
        "two trays held it at once",
        "failed",
        (
            S + "claim_id = %(pair_claim)s where after = 'HAS_ERROR' and transaction_uuid = %(failed)s",
            T
            + "claim_id = (select claim_id from process_ops.transaction_stages where after = 'PROCESSING_IN_PROGRESS' "
            "and transaction_uuid = %(failed)s limit 1) where uuid = %(failed)s",
            f"update {CLAIMS} set taken = 3 where claim_id = %(pair_claim)s",
        ),
    ),
    "a tray that let go in the middle of a step": (
        "step is STARTED and its tray is over",
        "working",
        (T + "claim_id = null where uuid = %(working)s",),
    ),
    "a task that went on in the middle of another": (
        "step is STARTED and its tray is over",
        "working",
        (
            T + "claim_id = null, status = 'PROCESSING_COMPLETED' where uuid = %(working)s",
            "insert into process_ops.transaction_stages "
            "(transaction_uuid, before, after, process, made_by, claim_id, at) values (%(working)s, "
            "'PROCESSING_IN_PROGRESS', 'PROCESSING_COMPLETED', 'processing', 'pay', %(working_claim)s, now())",
        ),
    ),
    "a visit under two ids": (
        "visit is COMPLETED more than once",
        "moved",
        (
            f"insert into {STEPS} (step_id, {STEP_COLUMNS}) select gen_random_uuid(), {STEP_COLUMNS} from {STEPS} "
            "where transaction_uuid = %(moved)s",
        ),
    ),
    "a status that no step has set": (
        "work is not in the ledger",
        "moved",
        (f"delete from {STEPS} where transaction_uuid = %(moved)s",),
    ),
    "a step that did not end": (
        "work is not in the ledger",
        "moved",
        (f"update {STEPS} set state = 'FAILED' where transaction_uuid = %(moved)s",),
    ),
    "an arrival without a step": (
        "work is not in the ledger",
        "arrived",
        (f"delete from {STEPS} where transaction_uuid = %(arrived)s",),
    ),
    "a run of no step": (
        "run belongs to no step",
        "aborted",
        ("update process_ops.transaction_runs set step_id = gen_random_uuid() where transaction_uuid = %(aborted)s",),
    ),
    "a run of another one's step": (
        "run belongs to no step",
        "aborted",
        (
            "update process_ops.transaction_runs set step_id = (select step_id from process_ops.transaction_steps "
            "where transaction_uuid = %(moved)s limit 1) where transaction_uuid = %(aborted)s",
        ),
    ),
    "a person who was not told of": (
        "a person touched it, and it says straight through",
        "aborted",
        (T + "straight_through = true where uuid = %(aborted)s",),
    ),
    "no error": ("error is missing", "failed", (f"delete from {ERRORS} where transaction_uuid = %(failed)s",)),
    "no error of one that ended": (
        "error is missing",
        "aborted",
        (f"delete from {ERRORS} where transaction_uuid = %(aborted)s",),
    ),
    "an error of another time": (
        "error is missing",
        "failed",
        (f"update {ERRORS} set failed_at = failed_at - interval '1 hour' where transaction_uuid = %(failed)s",),
    ),
    "an error with another root": (
        "error names another root",
        "failed",
        (f"update {ERRORS} set root_uuid = gen_random_uuid() where transaction_uuid = %(failed)s",),
    ),
    "another status before the error": (
        "status before its error is another",
        "failed",
        (T + "status_before_error = 'INTAKE_COMPLETED' where uuid = %(failed)s",),
    ),
    "no status before the error": (
        "status before its error is another",
        "failed",
        (T + "status_before_error = null where uuid = %(failed)s",),
    ),
    "a hand that was not marked": (
        "completion by hand is marked wrongly",
        "by_hand",
        (
            T + "by_hand = false where uuid = %(by_hand)s",
            f"update {ANALYTICS} set by_hand = false where transaction_uuid = %(by_hand)s",
        ),
    ),
    "a hand that was not there": (
        "completion by hand is marked wrongly",
        "working",
        (T + "by_hand = true where uuid = %(working)s",),
    ),
    "a clone of an open one": (
        "clone does not fit what it replaces",
        "clone",
        (T + "cloned_from = %(working)s where uuid = %(clone)s",),
    ),
    "a clone with another parent": (
        "clone does not fit what it replaces",
        "away",
        (T + "cloned_from = %(aborted)s where uuid = %(away)s",),
    ),
    "a second clone": (
        "it was cloned more than once",
        "replaced",
        (T + "cloned_from = %(replaced)s where uuid = %(waiting)s",),
    ),
    "a child with a root of its own": (
        "root is another than its parent's",
        "away",
        (T + "root_uuid = uuid where uuid = %(away)s",),
    ),
    "a root that is another": (
        "root is another than its parent's",
        "working",
        (T + "root_uuid = %(waiting)s where uuid = %(working)s",),
    ),
    "an arrival at another parent": (
        "arrival of another family",
        "arrived",
        (f"update {ARRIVALS} set parent_uuid = %(working)s where transaction_uuid = %(arrived)s",),
    ),
    "a poll without a loop record": (
        "loop record is missing, or one too many",
        "monitor",
        (ROUNDS + "loop_record = false where round = 2 and polled",),
    ),
    "a loop record of one that stopped": (
        "loop record is missing, or one too many",
        "monitor",
        (ROUNDS + "loop_record = true where stopped = 'by_loops'",),
    ),
    "a loop record of a wake": (
        "loop record is missing, or one too many",
        "monitor",
        (ROUNDS + "polled = false where round = 2 and polled",),
    ),
    "a round that claimed nothing": (
        "rounds tell of more than its claims took",
        "monitor",
        (ROUNDS + "claimed = 1000 where round = 2 and polled",),
    ),
}


TABLES = (
    "transactions",
    "transaction_claims",
    "transaction_stages",
    "transaction_steps",
    "transaction_errors",
    "transaction_arrivals",
    "transaction_runs",
    "transaction_analytics",
    "monitor",
    "monitor_rounds",
)
COLUMNS = """
select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
where attrelid = %s::regclass and attnum > 0 and not attisdropped and attidentity = '' and attname <> 'tenant'
"""


async def copy(db: Database, tenant: str) -> None:
    """All rows once more, in another tenant: the same ids mean other Transactions there."""
    async with db.transaction() as conn:
        await _past_guards(conn)
        for name in TABLES:
            table = f"process_ops.{name}"
            found = await (await conn.execute(COLUMNS, [table])).fetchone()
            assert found is not None
            order = "order by id" if name in ("transactions", "transaction_stages") else ""
            statement = f"insert into {table} (tenant, {found[0]}) select %s, {found[0]} from {table} {order}"
            await conn.execute(statement.encode(), [tenant])


async def break_(conn: Connection, statements: tuple[str, ...], ids: Mapping[str, UUID]) -> None:
    """As the owner, past every guard: what no writer of the product may do. All ids are those of one tenant."""
    await _past_guards(conn)
    for statement in statements:
        whose = f" and tenant = '{TENANT}'" if " where " in statement else ""
        cursor = await conn.execute(f"{statement}{whose}".encode(), ids)
        assert cursor.rowcount in (1, -1), statement  # one row, or a definition


async def _past_guards(conn: Connection) -> None:
    await conn.execute("set local role none")
    await conn.execute("set local session_replication_role = replica")
