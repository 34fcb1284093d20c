-- One load of a tenant's policy at a time.
-- name: lock
select pg_advisory_xact_lock(hashtextextended('casework.policy:' || %(tenant)s, 0))

-- name: clear
delete from agent_policy.underwriting_policy_limits where tenant = %(tenant)s

-- name: insert
insert into agent_policy.underwriting_policy_limits (
    tenant, purpose, valid_from, valid_until, policy_name, version, min_score, auto_approve_ratio, hard_decline_score,
    hard_decline_ratio, material_delinquencies, source, cleaned, synced_at)
values (
    %(tenant)s, %(purpose)s, coalesce(%(valid_from)s::date, '-infinity'), %(valid_until)s, %(policy_name)s, %(version)s,
    %(min_score)s, %(auto_approve_ratio)s, %(hard_decline_score)s, %(hard_decline_ratio)s, %(material_delinquencies)s,
    %(source)s, %(cleaned)s, %(synced_at)s)

-- name: log
insert into agent_policy.sync_log (
    tenant, source, source_version, rows_read, rows_loaded, rows_removed, refused, lag_ms, cleaned, at)
values (
    %(tenant)s, %(source)s, %(source_version)s, %(rows_read)s, %(rows_loaded)s, %(rows_removed)s, %(refused)s,
    %(lag_ms)s, %(cleaned)s, %(at)s)

-- name: read
select purpose, policy_name, version, min_score, auto_approve_ratio, hard_decline_score, hard_decline_ratio,
       material_delinquencies, nullif(valid_from, '-infinity') as valid_from, valid_until, source, synced_at
from agent_policy.underwriting_policy_limits
where tenant = %(tenant)s and purpose = %(purpose)s
  and valid_from <= coalesce(%(on)s::date, (now() at time zone 'UTC')::date)
  and (valid_until is null or valid_until > coalesce(%(on)s::date, (now() at time zone 'UTC')::date))
order by underwriting_policy_limits.valid_from desc
limit 1

-- name: rows
select purpose, policy_name, version, min_score, auto_approve_ratio, hard_decline_score, hard_decline_ratio,
       material_delinquencies, nullif(valid_from, '-infinity') as valid_from, valid_until, source, synced_at
from agent_policy.underwriting_policy_limits
where tenant = %(tenant)s
order by purpose, underwriting_policy_limits.valid_from

-- name: pin
insert into agent_ops.agent_policy_uses (tenant, run_id, purpose, turn, policy_name, version, source, row, cleaned)
values (
    %(tenant)s, %(run_id)s, %(purpose)s, %(turn)s, %(policy_name)s, %(version)s, %(source)s, %(row)s, %(cleaned)s)
on conflict (tenant, run_id, purpose, turn) do nothing

-- name: pinned
select row, created_at from agent_ops.agent_policy_uses
where tenant = %(tenant)s and run_id = %(run_id)s and purpose = %(purpose)s and turn = %(turn)s

-- name: uses
select purpose, turn, policy_name, version, source, row, created_at
from agent_ops.agent_policy_uses
where tenant = %(tenant)s and run_id = %(run_id)s
order by created_at, purpose, turn

-- name: syncs
select id, source, source_version, rows_read, rows_loaded, rows_removed, refused, lag_ms, at
from agent_policy.sync_log
where tenant = %(tenant)s
order by id desc
limit %(limit)s
