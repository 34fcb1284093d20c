-- The three lists of an operator are three queries, so that each is read along one partial index.
-- name: failed
select s.step_id, s.run_id, s.path, s.kind, s.name, s.node, s.turn, s.state, s.attempt, s.error, s.started_at,
       s.updated_at, s.ended_at, r.workflow_name, r.user_id, r.status as run_status
from agent_ops.agent_steps s
join agent_ops.agent_runs r on r.tenant = s.tenant and r.run_id = s.run_id
where s.tenant = %(tenant)s and s.state = 'FAILED' and s.ended_at >= %(since)s and s.taken_from is null
  and s.error is distinct from 'the run ended ' || r.status and s.error is distinct from r.failure
  and (%(kind)s::text is null or s.kind = %(kind)s)
  and (%(name)s::text is null or s.name = %(name)s)
  and (%(workflow)s::text is null or r.workflow_name = %(workflow)s)
  and (%(run_id)s::uuid is null or s.run_id = %(run_id)s)
  and (%(after_at)s::timestamptz is null or (s.ended_at, s.step_id) < (%(after_at)s, %(after_id)s::uuid))
order by s.ended_at desc, s.step_id desc
limit %(limit)s

-- Steps in flight are as few as workers can hold, and those that are tried again are picked out of them.
-- name: in_flight
select s.step_id, s.run_id, s.path, s.kind, s.name, s.node, s.turn, s.state, s.attempt,
       coalesce(s.error, (
           select a.error from agent_ops.agent_step_attempts a
           where a.tenant = s.tenant and a.step_id = s.step_id and a.error is not null
           order by a.attempt desc limit 1)) as error,
       s.started_at, s.updated_at, s.ended_at, r.workflow_name, r.user_id, r.status as run_status
from agent_ops.agent_steps s
join agent_ops.agent_runs r on r.tenant = s.tenant and r.run_id = s.run_id
where s.tenant = %(tenant)s and s.state = 'STARTED'
  and (not %(again)s or s.attempt > 1 or s.error is not null)
  and (%(since)s::timestamptz is null or s.started_at >= %(since)s)
  and (%(kind)s::text is null or s.kind = %(kind)s)
  and (%(name)s::text is null or s.name = %(name)s)
  and (%(workflow)s::text is null or r.workflow_name = %(workflow)s)
  and (%(run_id)s::uuid is null or s.run_id = %(run_id)s)
  and (%(after_at)s::timestamptz is null or (s.started_at, s.step_id) > (%(after_at)s, %(after_id)s::uuid))
order by s.started_at, s.step_id
limit %(limit)s

-- An attempt that reported its failure by itself and was then given up has this event, and one that ended its step has not.
-- name: told_of
select event_id from agent_ops.agent_events
where tenant = %(tenant)s and event_id = any(%(event_ids)s)

-- name: page_of_run
select step_id, run_id, path, kind, name, node, turn, tool_version, arguments, hash, state, attempt, result, error,
       cleaned, started_at, updated_at, ended_at, taken_from
from agent_ops.agent_steps
where tenant = %(tenant)s and run_id = %(run_id)s
  and (%(after_at)s::timestamptz is null or (started_at, step_id) > (%(after_at)s, %(after_id)s::uuid))
order by started_at, step_id
limit %(limit)s

-- name: latest_of_run
select step_id, run_id, path, kind, name, node, turn, tool_version, arguments, hash, state, attempt, result, error,
       cleaned, started_at, updated_at, ended_at, taken_from
from agent_ops.agent_steps
where tenant = %(tenant)s and run_id = %(run_id)s
order by started_at desc, step_id desc
limit %(limit)s

-- name: attempts_of
select step_id, attempt, outcome, result, error, latency_ms, tokens_in, tokens_out, cost, cleaned, started_at, ended_at
from agent_ops.agent_step_attempts
where tenant = %(tenant)s and step_id = any(%(step_ids)s)
order by started_at, step_id, attempt

-- name: evidence
select distinct on (name) name, result from agent_ops.agent_steps
where tenant = %(tenant)s and run_id = %(run_id)s and kind = 'tool' and state = 'COMPLETED'
order by name, ended_at desc, step_id
