-- STARTED is set only over a row that is not terminal and is asked for the same act.
-- name: claim
with taken as (
    insert into agent_ops.agent_steps as s (
        tenant, step_id, run_id, path, kind, name, node, turn, tool_version, arguments, hash, state, attempt, cleaned,
        started_at, updated_at)
    values (
        %(tenant)s, %(step_id)s, %(run_id)s, %(path)s, %(kind)s, %(name)s, %(node)s, %(turn)s, %(tool_version)s,
        %(arguments)s, %(hash)s, 'STARTED', 1, %(cleaned)s, clock_timestamp(), clock_timestamp())
    on conflict (tenant, step_id) do update
        set attempt = s.attempt + 1, updated_at = clock_timestamp()
        where s.state = 'STARTED' and s.hash = excluded.hash
    returning attempt
)
insert into agent_ops.agent_step_attempts (tenant, step_id, attempt, run_id, started_at)
select %(tenant)s, %(step_id)s, attempt, %(run_id)s, clock_timestamp() from taken
returning attempt

-- name: read_back
select state, hash, attempt, result, error from agent_ops.agent_steps
where tenant = %(tenant)s and step_id = %(step_id)s

-- name: lose_attempts
update agent_ops.agent_step_attempts a
set outcome = 'LOST', error = %(error)s, ended_at = clock_timestamp()
from agent_ops.agent_steps s
where a.tenant = %(tenant)s and a.step_id = %(step_id)s and a.attempt < %(below)s and a.outcome is null
  and s.tenant = a.tenant and s.step_id = a.step_id
returning a.attempt, s.turn, s.name

-- The fence: the row is STARTED and its attempt is still the committer's.
-- name: commit
update agent_ops.agent_steps
set state = %(state)s, result = %(result)s, error = %(error)s, cleaned = cleaned + %(cleaned)s,
    updated_at = clock_timestamp(), ended_at = clock_timestamp()
where tenant = %(tenant)s and step_id = %(step_id)s and attempt = %(attempt)s and state = 'STARTED'
returning kind, turn, name

-- name: note_error
update agent_ops.agent_steps
set error = %(error)s, cleaned = cleaned + %(cleaned)s, updated_at = clock_timestamp()
where tenant = %(tenant)s and step_id = %(step_id)s and attempt = %(attempt)s and state = 'STARTED'
returning kind, turn, name

-- name: compare
select s.kind, s.turn, s.name, s.attempt as current, s.state, a.outcome,
       (s.state = %(state)s::text and s.result is not distinct from %(result)s::jsonb
        and s.error is not distinct from %(error)s::text) as same,
       s.state <> 'STARTED' and a.attempt = s.attempt and a.outcome = s.state
       and a.error is not distinct from s.error as own
from agent_ops.agent_steps s
left join agent_ops.agent_step_attempts a
       on a.tenant = s.tenant and a.step_id = s.step_id and a.attempt = %(attempt)s
where s.tenant = %(tenant)s and s.step_id = %(step_id)s

-- name: end_attempt
with before as (
    select outcome, coalesce(latency_ms, 0) as latency_ms, tokens_in, tokens_out, cost
    from agent_ops.agent_step_attempts
    where tenant = %(tenant)s and step_id = %(step_id)s and attempt = %(attempt)s
)
update agent_ops.agent_step_attempts a
set outcome = %(outcome)s, result = %(result)s, error = %(error)s, latency_ms = %(latency_ms)s,
    tokens_in = %(tokens_in)s, tokens_out = %(tokens_out)s, cost = %(cost)s, cleaned = a.cleaned + %(cleaned)s,
    ended_at = clock_timestamp()
from before
where a.tenant = %(tenant)s and a.step_id = %(step_id)s and a.attempt = %(attempt)s
returning before.outcome, before.latency_ms, before.tokens_in, before.tokens_out, before.cost

-- name: lock_attempt
select attempt = %(attempt)s and state = 'STARTED' from agent_ops.agent_steps
where tenant = %(tenant)s and step_id = %(step_id)s
for update

-- name: case_of
select (select request from agent_ops.agent_runs where tenant = %(tenant)s and run_id = %(run_id)s) as request,
       (select coalesce(jsonb_object_agg(name, result), '{}')
        from (select distinct on (name) name, result from agent_ops.agent_steps
              where tenant = %(tenant)s and run_id = %(run_id)s and kind = 'tool' and state = 'COMPLETED'
              order by name, ended_at desc, step_id) latest) as evidence
