"""What the database itself refuses, tried with raw SQL in the runtime's role."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from casework import ids
from casework.errors import ConflictError, StoreUnavailableError
from casework.store import runs, workflows
from casework.store.database import Database
from tests.integration.store.cases import (
    PATH,
    TENANT,
    apply,
    at,
    claim,
    commit,
    decision,
    done,
    event,
    execute,
    fetch,
    new_run,
    review,
    running,
    tool_claim,
)

COMPLETE = (
    "update agent_ops.agent_runs set status = 'COMPLETED', version = version + 1, outcome = %s, ended_at = now()"
    " where run_id = %s"
)

DECIDE = (
    "insert into agent_ops.agent_review_decisions"
    " (run_id, decision_id, review_id, path, command, reason, reviewer, accepted, ignored, outcome, created_at)"
    " values (%s, 'x', %s, '', 'approve', '', 'someone', %s, %s, 'approved', now())"
)


async def accept(db: Database, run_id: UUID, **changes: Any) -> None:
    await apply(db, run_id, running(1), review(run_id), decision(run_id, **changes))


@pytest.mark.parametrize("outcome", ["approved", "declined", "Approved "])
async def test_no_outcome_without_a_decision(db: Database, run_id: UUID, outcome: str) -> None:
    """DA-12. The database refuses an outcome for which no accepted decision row exists."""
    with pytest.raises(ConflictError, match="agent_runs_outcome_needs_decision"):
        await execute(db, COMPLETE, outcome, run_id)


async def test_decision_gives_its_own_outcome_only(db: Database, run_id: UUID) -> None:
    """DA-12. An accepted rejection does not let the run be approved."""
    await accept(db, run_id, command="reject", outcome="declined")
    with pytest.raises(ConflictError, match="agent_runs_outcome_needs_decision"):
        await execute(db, COMPLETE, "approved", run_id)
    assert await execute(db, COMPLETE, "declined", run_id) == 1


async def test_more_info_gives_no_outcome(db: Database, run_id: UUID) -> None:
    """DA-12. An accepted decision that asks for more closes nothing."""
    await accept(db, run_id, command="more_info", outcome=None)
    with pytest.raises(ConflictError, match="agent_runs_outcome_needs_decision"):
        await execute(db, COMPLETE, "approved", run_id)


async def test_ignored_decision_gives_no_outcome(db: Database, run_id: UUID) -> None:
    """DA-12. A decision that was ignored counts for nothing, and cannot carry an outcome at all."""
    await accept(db, run_id, accepted=False, ignored="stale", outcome="approved")
    with pytest.raises(ConflictError, match="agent_runs_outcome_needs_decision"):
        await execute(db, COMPLETE, "approved", run_id)
    with pytest.raises(ConflictError, match="outcome_only_accepted"):
        await execute(db, DECIDE, run_id, ids.review_id(run_id, "decision.1"), False, "why")


async def test_decision_of_another_run_does_not_count(db: Database, run_id: UUID) -> None:
    """DA-12. A run is closed by its own decision; one cannot be hung on another run's review."""
    other = uuid4()
    async with db.transaction() as conn:
        await runs.create_pending(conn, new_run(other))
    await accept(db, other)
    with pytest.raises(ConflictError, match="agent_runs_outcome_needs_decision"):
        await execute(db, COMPLETE, "approved", run_id)
    with pytest.raises(ConflictError, match="has no review"):
        await execute(db, DECIDE, run_id, ids.review_id(other, "decision.1"), True, None)


async def test_run_is_not_born_with_an_outcome(db: Database, run_id: UUID) -> None:
    """DA-12. Nor does an insert get past the guard, or an outcome beside a status that is not COMPLETED."""
    copy = (
        "insert into agent_ops.agent_runs (run_id, temporal_workflow_id, workflow_name, workflow_version, user_id,"
        " actor, request, request_hash, turn_limit, status, ended_at, outcome)"
        " values (%s, 't', 'w', 1, 'u', 'u', '{}', 'h', 5, 'COMPLETED', now(), 'approved')"
    )
    with pytest.raises(ConflictError, match="agent_runs_outcome_needs_decision"):
        await execute(db, copy, uuid4())
    await accept(db, run_id)
    with pytest.raises(ConflictError, match="outcome_only_when_completed"):
        await execute(db, "update agent_ops.agent_runs set outcome = 'approved' where run_id = %s", run_id)


async def test_accepted_decision_is_kept_as_given(db: Database, admin_db: Database, run_id: UUID) -> None:
    """DA-12. An accepted decision can be neither rewritten nor taken away while its run is there, by the owner too."""
    await accept(db, run_id, command="reject", outcome="declined")
    rewrite = "update agent_ops.agent_review_decisions set outcome = 'approved' where run_id = %s"
    with pytest.raises(ConflictError, match="is kept as it was given"):
        await execute(admin_db, rewrite, run_id)
    with pytest.raises(ConflictError, match="is kept as it was given"):
        await execute(admin_db, "delete from agent_ops.agent_review_decisions where run_id = %s", run_id)


async def test_one_accepted_decision_per_review(db: Database, run_id: UUID) -> None:
    """DA-29. DA-36. A partial unique index lets no second accepted decision in, whoever writes it."""
    await accept(db, run_id)
    with pytest.raises(ConflictError, match="agent_review_decisions_one_accepted"):
        await execute(db, DECIDE, run_id, ids.review_id(run_id, "decision.1"), True, None)


@pytest.mark.parametrize(
    "change",
    [
        "status = 'RUNNING', ended_at = null",
        "outcome = 'declined'",
        "version = version + 1",
        "run_id = gen_random_uuid()",
    ],
)
async def test_terminal_run_never_changes(db: Database, run_id: UUID, change: str) -> None:
    """DA-24. A run that has ended keeps status, outcome, version and identity."""
    await accept(db, run_id)
    await apply(db, run_id, running(2, status="COMPLETED", outcome="approved", at=at(30)))
    with pytest.raises(ConflictError, match="stays so"):
        await execute(db, f"update agent_ops.agent_runs set {change} where run_id = %s", run_id)


async def test_version_only_grows_and_orders_the_status(db: Database, run_id: UUID) -> None:
    """DA-25. A lower version is refused, and so is another status under the same version."""
    await apply(db, run_id, running(3))
    for change in ("version = 2", "status = 'AWAITING_REVIEW'"):
        with pytest.raises(ConflictError, match="agent_runs_version_grows"):
            await execute(db, f"update agent_ops.agent_runs set {change} where run_id = %s", run_id)


async def test_committed_step_never_changes(db: Database, run_id: UUID) -> None:
    """DA-24. A terminal ledger row keeps its result; the attempt of an open one only grows."""
    await claim(db, tool_claim(run_id))
    with pytest.raises(ConflictError, match="agent_steps_attempt_grows"):
        await execute(db, "update agent_ops.agent_steps set attempt = 0 where run_id = %s", run_id)
    await commit(db, done(run_id, 1))
    with pytest.raises(ConflictError, match="agent_steps_terminal_stays"):
        await execute(db, "update agent_ops.agent_steps set result = '{}' where run_id = %s", run_id)


async def test_decided_review_never_opens_again(db: Database, run_id: UUID) -> None:
    """DA-25. The same guard for reviews."""
    await accept(db, run_id)
    with pytest.raises(ConflictError, match="agent_reviews_terminal_stays"):
        await execute(
            db, "update agent_ops.agent_reviews set status = 'pending', ended_at = null where run_id = %s", run_id
        )


async def test_applied_workflow_never_changes(db: Database, admin_db: Database) -> None:
    """A version is immutable, for the owner too."""
    async with db.transaction() as conn:
        await workflows.publish(conn, TENANT, "loan", {"a": 1}, "h1")
    with pytest.raises(ConflictError, match="workflow_versions_immutable"):
        await execute(admin_db, "update agent_ops.workflow_versions set bundle = '{}'")


async def test_retention_takes_a_run_and_all_that_is_its_own(db: Database, database_dsn: str, run_id: UUID) -> None:
    """DA-29. Foreign keys cascade from a run to every table with a run_id, the accepted decision included."""
    await accept(db, run_id)
    await claim(db, tool_claim(run_id))
    await commit(db, done(run_id, 1))
    await apply(db, run_id, event("agent.started"), running(2, status="COMPLETED", outcome="approved", at=at(30)))
    found = await fetch(
        db,
        "select table_name from information_schema.columns where table_schema = 'agent_ops' and column_name = 'run_id'",
    )
    assert len(found) > 10
    async with await Database.open(database_dsn, role="casework_retention") as retention:
        assert await execute(retention, DELETE, run_id) == 1
    for row in found:
        left = await fetch(db, f"select 1 from agent_ops.{row['table_name']} where run_id = %s", run_id)
        assert not left, row["table_name"]


DELETE = "delete from agent_ops.agent_runs where run_id = %s"


async def test_an_open_run_is_deleted_by_nobody(admin_db: Database, db: Database, run_id: UUID) -> None:
    """A run goes only when it has ended, whoever asks."""
    for entries in ([], [running(1)], [running(2, status="AWAITING_REVIEW")]):
        await apply(db, run_id, *entries)
        with pytest.raises(ConflictError, match="agent_runs_deleted_when_ended"):
            await execute(admin_db, DELETE, run_id)


async def test_retention_takes_whole_runs_only(database_dsn: str, db: Database, run_id: UUID) -> None:
    """The role for retention reads and deletes runs, and can neither write one nor take a part of it."""
    await apply(db, run_id, event("agent.started"))
    async with await Database.open(database_dsn, role="casework_retention") as retention:
        for statement in (
            "delete from agent_ops.agent_events",
            "delete from agent_ops.workflow_versions",
            "select * from agent_ops.agent_messages",
            "update agent_ops.agent_runs set failure = 'x'",
            "select * from casework_auth.tokens",
        ):
            with pytest.raises(StoreUnavailableError, match="lacks a right"):
                await execute(retention, statement)


KEPT = [
    "agent_context",
    "agent_events",
    "agent_fork_seeds",
    "agent_logs",
    "agent_messages",
    "agent_operation_metrics",
    "agent_policy_uses",
    "agent_review_decisions",
    "agent_reviews",
    "agent_run_metrics",
    "agent_runs",
    "agent_step_attempts",
    "agent_steps",
    "agent_turn_metrics",
    "agent_workflow_metrics",
    "agent_workflow_totals",
    "resource_versions",
    "workflow_removals",
    "workflow_versions",
]
ROLL_UPS = ["agent_operation_metrics", "agent_workflow_metrics", "agent_workflow_totals"]
WRITTEN_ONCE = [
    "agent_events",
    "agent_fork_seeds",
    "agent_logs",
    "agent_messages",
    "agent_policy_uses",
    "agent_review_decisions",
    "resource_versions",
    "workflow_removals",
    "workflow_versions",
]


async def test_runtime_deletes_and_rewrites_no_evidence(db: Database, admin_db: Database) -> None:
    """DA-24. DA-40. The runtime's role deletes no row of any table, and updates none that is written once."""
    found = await fetch(
        admin_db,
        "select relname from pg_class where relnamespace = 'agent_ops'::regnamespace and relkind = 'r' order by 1",
    )
    assert [row["relname"] for row in found] == KEPT
    statements = [f"delete from agent_ops.{name}" for name in KEPT]
    statements += [f"truncate agent_ops.{name} cascade" for name in KEPT]
    statements += [f"update agent_ops.{name} set tenant = 'x'" for name in WRITTEN_ONCE + ROLL_UPS]
    statements += [f"insert into agent_ops.{name} default values" for name in ROLL_UPS]
    for statement in statements:
        with pytest.raises(StoreUnavailableError, match="lacks a right"):
            await execute(db, statement)


BEYOND_THE_RUNTIME = [
    "insert into agent_policy.underwriting_policy_limits select * from agent_policy.underwriting_policy_limits",
    "update agent_policy.underwriting_policy_limits set min_score = 0",
    "delete from agent_policy.underwriting_policy_limits",
    "truncate agent_policy.underwriting_policy_limits",
    "insert into agent_policy.sync_log (source) values ('mine')",
    "update casework_auth.tokens set roles = array['admin']",
    "delete from casework_auth.tokens",
    "alter table agent_ops.agent_runs disable trigger all",
    "drop trigger agent_runs_guard on agent_ops.agent_runs",
    "truncate agent_ops.agent_runs cascade",
    "update agent_ops.agent_tool_calls set result = null",
    "delete from casework_meta.migrations",
    "create table agent_ops.mine ()",
]


async def test_runtime_role_lacks_the_right(db: Database) -> None:
    """DA-40. The runtime's role cannot write the policy; nor tokens, guards, migrations or the shape of tables."""
    for statement in BEYOND_THE_RUNTIME:
        with pytest.raises(StoreUnavailableError, match="lacks a right"):
            await execute(db, statement)


async def test_policy_owner_writes_the_policy_and_no_run(owner_db: Database) -> None:
    """DA-40. The owner's role sees the policy and nothing of the runs."""
    assert await execute(owner_db, "delete from agent_policy.underwriting_policy_limits") == 0
    with pytest.raises(StoreUnavailableError, match="lacks a right"):
        await execute(owner_db, "select * from agent_ops.agent_runs")


async def test_claim_path_is_stored_beside_its_id(db: Database, run_id: UUID) -> None:
    """DA-23. The primary key of a step is uuid5 of run and path, the path stands beside; a tool call is the step."""
    await claim(db, tool_claim(run_id))
    row = (await fetch(db, "select tool_call_id, path, tool, state from agent_ops.agent_tool_calls"))[0]
    assert row == {"tool_call_id": ids.step_id(run_id, PATH), "path": PATH, "tool": "credit_check", "state": "STARTED"}
