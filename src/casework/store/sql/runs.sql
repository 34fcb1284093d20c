-- name: lock
select status, version from agent_ops.agent_runs
where tenant = %(tenant)s and run_id = %(run_id)s
for no key update

-- name: create_pending
insert into agent_ops.agent_runs (
    tenant, run_id, temporal_workflow_id, workflow_name, workflow_version, user_id, actor, request, request_hash,
    policy_adoption, model, turn_limit, task_queue, parent_run_id, parent_path, forked_from_run_id,
    forked_from_path, cleaned, created_at, updated_at)
values (
    %(tenant)s, %(run_id)s, %(temporal_workflow_id)s, %(workflow_name)s, %(workflow_version)s, %(user_id)s, %(actor)s,
    %(request)s, %(request_hash)s, %(policy_adoption)s, %(model)s, %(turn_limit)s, %(task_queue)s, %(parent_run_id)s::uuid,
    %(parent_path)s, %(forked_from_run_id)s::uuid, %(forked_from_path)s, %(cleaned)s,
    coalesce(%(at)s, now()), coalesce(%(at)s, now()))
on conflict (tenant, run_id) do nothing

-- name: get
select tenant, run_id, status, version, temporal_workflow_id, workflow_name, workflow_version, user_id, actor, request,
       request_hash, policy_adoption, model, turn, turn_limit, current_node, loop_count, tokens_in, tokens_out, cost,
       recommendation, outcome, failure, incident, task_queue, cleaned, created_at, updated_at, started_at, ended_at,
       parent_run_id, parent_path, forked_from_run_id, forked_from_path
from agent_ops.agent_runs
where tenant = %(tenant)s and run_id = %(run_id)s

-- The filters that are not asked for are constants to the planner, and vanish.
-- name: list_page
select tenant, run_id, status, version, temporal_workflow_id, workflow_name, workflow_version, user_id, actor, request,
       request_hash, policy_adoption, model, turn, turn_limit, current_node, loop_count, tokens_in, tokens_out, cost,
       recommendation, outcome, failure, incident, task_queue, cleaned, created_at, updated_at, started_at, ended_at,
       parent_run_id, parent_path, forked_from_run_id, forked_from_path
from agent_ops.agent_runs
where tenant = %(tenant)s
  and (%(user)s::text is null or user_id = %(user)s)
  and (%(status)s::text is null or status = %(status)s)
  and (%(workflow)s::text is null or workflow_name = %(workflow)s)
  and (%(after_at)s::timestamptz is null or (created_at, run_id) < (%(after_at)s, %(after_id)s::uuid))
order by created_at desc, run_id desc
limit %(limit)s

-- name: events
select run_id, seq, event_id, path, kind, data, cleaned, at, written_at
from agent_ops.agent_events
where tenant = %(tenant)s and run_id = %(run_id)s and seq > %(after_seq)s
order by seq
limit %(limit)s

-- name: context
select key, path, version, value, created_at from agent_ops.agent_context_latest
where tenant = %(tenant)s and run_id = %(run_id)s
order by key

-- name: steps
select step_id, run_id, path, kind, name, node, turn, tool_version, arguments, hash, state, attempt, result, error,
       cleaned, started_at, updated_at, ended_at, taken_from
from agent_ops.agent_steps
where tenant = %(tenant)s and run_id = %(run_id)s
order by started_at, step_id

-- name: attempts
select step_id, attempt, outcome, result, error, latency_ms, tokens_in, tokens_out, cost, cleaned, started_at, ended_at
from agent_ops.agent_step_attempts
where tenant = %(tenant)s and run_id = %(run_id)s
order by started_at, step_id, attempt

-- name: logs
select id, path, node, level, message, cleaned, created_at
from agent_ops.agent_logs
where tenant = %(tenant)s and run_id = %(run_id)s and id > %(after)s
order by id
limit %(limit)s

-- name: close_from_outside
update agent_ops.agent_runs r
set status = 'FAILED', version = version + 1, failure = %(reason)s, cleaned = cleaned + %(cleaned)s, incident = null,
    updated_at = coalesce(%(at)s, now()), ended_at = coalesce(%(at)s, now())
from (select incident from agent_ops.agent_runs where tenant = %(tenant)s and run_id = %(run_id)s) before
where r.tenant = %(tenant)s and r.run_id = %(run_id)s and r.status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')
returning before.incident
