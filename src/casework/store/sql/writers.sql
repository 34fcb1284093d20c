-- A run that ends has perhaps not heard how far its last segment went: then the place stays that the segment wrote.
-- name: run
update agent_ops.agent_runs r
set version = %(version)s, status = %(status)s,
    turn = case when before.further then r.turn else %(turn)s end,
    current_node = case when before.further then r.current_node else %(current_node)s end,
    loop_count = case when before.further then r.loop_count else %(loop_count)s end,
    recommendation = %(recommendation)s, outcome = %(outcome)s, failure = %(failure)s,
    incident = null, cleaned = cleaned + %(cleaned)s, updated_at = %(at)s,
    started_at = case when %(status)s = 'PENDING' then started_at else coalesce(started_at, %(at)s) end,
    ended_at = case when %(status)s in ('COMPLETED', 'FAILED', 'CANCELLED') then %(at)s::timestamptz end
from (
    select incident,
           loop_count > %(loop_count)s and %(status)s in ('COMPLETED', 'FAILED', 'CANCELLED') as further
    from agent_ops.agent_runs where tenant = %(tenant)s and run_id = %(run_id)s
) before
where r.tenant = %(tenant)s and r.run_id = %(run_id)s and version < %(version)s
  and status not in ('COMPLETED', 'FAILED', 'CANCELLED')
returning before.incident

-- name: run_stored
select version, version > %(version)s as newer,
       version = %(version)s and status = %(status)s and turn = %(turn)s and loop_count = %(loop_count)s
       and current_node is not distinct from %(current_node)s::text
       and recommendation is not distinct from %(recommendation)s::jsonb
       and outcome is not distinct from %(outcome)s::text
       and failure is not distinct from %(failure)s::text as same,
       status in ('COMPLETED', 'FAILED', 'CANCELLED') as terminal
from agent_ops.agent_runs
where tenant = %(tenant)s and run_id = %(run_id)s

-- name: context
insert into agent_ops.agent_context as c (tenant, context_id, run_id, path, key, version, value, cleaned, created_at)
values (%(tenant)s, %(context_id)s, %(run_id)s, %(path)s, %(key)s, %(version)s, %(value)s, %(cleaned)s, %(at)s)
on conflict (tenant, context_id) do update
    set version = excluded.version, value = excluded.value, cleaned = excluded.cleaned, created_at = excluded.created_at
    where c.version < excluded.version

-- name: context_stored
select version, version > %(version)s as newer,
       version = %(version)s and value is not distinct from %(value)s::jsonb as same, false as terminal
from agent_ops.agent_context
where tenant = %(tenant)s and context_id = %(context_id)s

-- name: step
insert into agent_ops.agent_steps as s (
    tenant, step_id, run_id, path, kind, name, state, result, error, cleaned, started_at, updated_at, ended_at)
values (
    %(tenant)s, %(step_id)s, %(run_id)s, %(path)s, %(kind)s, %(name)s, %(state)s, %(result)s, %(error)s, %(cleaned)s,
    %(at)s, %(at)s, %(at)s)
on conflict (tenant, step_id) do update
    set state = excluded.state, result = excluded.result, error = excluded.error, cleaned = s.cleaned + excluded.cleaned,
        updated_at = excluded.updated_at, ended_at = excluded.ended_at
    where s.state = 'STARTED'

-- name: log
insert into agent_ops.agent_logs (tenant, log_id, run_id, path, node, level, message, cleaned, created_at)
values (%(tenant)s, %(log_id)s, %(run_id)s, %(path)s, %(node)s, %(level)s, %(message)s, %(cleaned)s, %(at)s)
on conflict (tenant, log_id) do nothing

-- name: close_reviews
update agent_ops.agent_reviews set status = 'closed', ended_at = coalesce(%(at)s, clock_timestamp())
where tenant = %(tenant)s and run_id = %(run_id)s and status = 'pending'

-- name: close_steps
update agent_ops.agent_steps
set state = 'FAILED', error = %(why)s, updated_at = coalesce(%(at)s, clock_timestamp()),
    ended_at = coalesce(%(at)s, clock_timestamp())
where tenant = %(tenant)s and run_id = %(run_id)s and state = 'STARTED'
returning path
