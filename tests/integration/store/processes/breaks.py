"""Rows that are broken, each with the fault that this is: what is told, the name of the id, the statements.

Names are those of `breaking.played`.
"""

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
    "a step of a claim that nobody made": (
        "claim is unknown",
        "gone",
        (f"update {STEPS} set claim_id = %(gone)s where transaction_uuid = %(came)s",),
    ),
    "a step in a tray that did not take it": (
        "claim took more than it says",
        "pair_claim",
        (f"update {STEPS} set claim_id = %(pair_claim)s where transaction_uuid = %(came)s",),
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
    "a Finalizer that came in the middle of a step": (
        "step is STARTED and its tray is over",
        "working",
        (
            T + "claim_id = null, status = 'PROCESSING_COMPLETED' where uuid = %(working)s",
            "insert into process_ops.transaction_stages "
            "(transaction_uuid, before, after, process, made_by, claim_id, at) values (%(working)s, "
            "'PROCESSING_IN_PROGRESS', 'PROCESSING_COMPLETED', 'processing', 'finalizer', %(working_claim)s, now())",
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
    "a child that the join did not wait for": (
        "join went on without a child",
        "joined",
        (f"delete from {ARRIVALS} where transaction_uuid = %(came)s",),
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
