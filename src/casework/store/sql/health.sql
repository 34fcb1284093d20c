-- name: server
select pg_is_in_recovery() as in_recovery,
       current_setting('transaction_read_only') = 'on' as read_only,
       (select count(*) from pg_stat_activity where datid is not null)::int as connections,
       (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(nullif(current_setting('reserved_connections', true), '')::int, 0)) as most_connections

-- name: takes_no_writes
select current_setting('transaction_read_only') = 'on'

-- What of the rights that a run needs the role has not.
-- name: missing_rights
select p.privilege || ' on ' || n.nspname || '.' || c.relname as right_name
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
cross join (values ('SELECT'), ('INSERT'), ('UPDATE')) p (privilege)
where n.nspname = 'agent_ops' and c.relkind = 'r'
  and (c.relname = any(%(moved)s) or (c.relname = any(%(added)s) and p.privilege <> 'UPDATE'))
  and not has_table_privilege(current_user, c.oid, p.privilege)
order by 1

-- name: schema_right
select has_schema_privilege(current_user, 'agent_ops', 'usage')

-- The login's own rights, which may see more of other sessions than the role has.
-- name: as_login
set local role none

-- name: blocked
select a.pid as pid, extract(epoch from clock_timestamp() - a.query_start)::float8 as waits_s,
       b.pid as by_pid, coalesce(nullif(b.application_name, ''), 'unknown') as by_name,
       coalesce(b.state, 'unknown') as by_state,
       extract(epoch from clock_timestamp() - b.xact_start)::float8 as by_since_s
from pg_stat_activity a
join pg_stat_activity b on b.pid = any(pg_blocking_pids(a.pid))
where a.datname = current_database() and a.wait_event_type = 'Lock'
order by a.query_start
limit 1

-- name: work
select (select count(*) from agent_ops.agent_runs where status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')
        and status = 'PENDING')::int as pending,
       (select count(*) from agent_ops.agent_runs where status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')
        and status = 'RUNNING')::int as running,
       (select count(*) from agent_ops.agent_runs where status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')
        and status = 'AWAITING_REVIEW')::int as awaiting_review,
       (select count(*) from agent_ops.agent_reviews where status = 'pending')::int as reviews,
       (select min(created_at) from agent_ops.agent_reviews where status = 'pending') as oldest_review,
       (select count(*) from agent_ops.agent_steps
        where state = 'STARTED' and (attempt > 1 or error is not null))::int as retrying,
       (select min(started_at) from agent_ops.agent_steps
        where state = 'STARTED' and (attempt > 1 or error is not null)) as oldest_retry,
       (select count(*) from agent_ops.agent_steps s
        join agent_ops.agent_runs r on r.tenant = s.tenant and r.run_id = s.run_id
        where s.state = 'FAILED' and s.ended_at >= %(since)s and s.taken_from is null
          and s.error is distinct from 'the run ended ' || r.status and s.error is distinct from r.failure)::int
           as failed,
       (select count(*) from agent_ops.agent_runs where status = 'FAILED' and ended_at >= %(since)s)::int as runs_failed,
       (select count(*) from agent_ops.agent_runs where incident is not null
        and status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW'))::int as incidents

-- Runs that should move and whose rows have been still for a while, the longest first.
-- name: quiet
select r.tenant, r.run_id, r.status
from agent_ops.agent_runs r
where r.status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW') and r.status in ('PENDING', 'RUNNING')
  and r.updated_at < %(before)s
order by r.updated_at
limit %(limit)s

-- name: held
select run_id, coalesce(incident ->> 'reason', 'no reason is given') as reason
from agent_ops.agent_runs
where incident is not null and status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')
order by created_at, run_id
limit %(limit)s

-- name: claimed
select run_id, path, updated_at from agent_ops.agent_steps
where state = 'STARTED' and run_id = any(%(run_ids)s)
