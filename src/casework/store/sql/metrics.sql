-- The run's row is written only where there is something to add: it is wide, and the change feed logs it whole.
-- name: roll_up
with of_run as (
    insert into agent_ops.agent_run_metrics as m (
        tenant, run_id, model_calls, tool_calls, attempts_completed, attempts_failed, attempts_lost, attempts_late,
        tokens_in, tokens_out, cost, latency_ms)
    values (
        %(tenant)s, %(run_id)s, %(model_calls)s, %(tool_calls)s, %(attempts_completed)s, %(attempts_failed)s,
        %(attempts_lost)s, %(attempts_late)s, %(tokens_in)s, %(tokens_out)s, %(cost)s, %(latency_ms)s)
    on conflict (tenant, run_id) do update set
        model_calls = m.model_calls + excluded.model_calls,
        tool_calls = m.tool_calls + excluded.tool_calls,
        attempts_completed = m.attempts_completed + excluded.attempts_completed,
        attempts_failed = m.attempts_failed + excluded.attempts_failed,
        attempts_lost = m.attempts_lost + excluded.attempts_lost,
        attempts_late = m.attempts_late + excluded.attempts_late,
        tokens_in = m.tokens_in + excluded.tokens_in,
        tokens_out = m.tokens_out + excluded.tokens_out,
        cost = m.cost + excluded.cost,
        latency_ms = m.latency_ms + excluded.latency_ms,
        updated_at = clock_timestamp()
), of_turn as (
    insert into agent_ops.agent_turn_metrics as m (
        tenant, run_id, turn, model_calls, tool_calls, attempts_completed, attempts_failed, attempts_lost,
        attempts_late, tokens_in, tokens_out, cost, latency_ms)
    values (
        %(tenant)s, %(run_id)s, %(turn)s, %(model_calls)s, %(tool_calls)s, %(attempts_completed)s, %(attempts_failed)s,
        %(attempts_lost)s, %(attempts_late)s, %(tokens_in)s, %(tokens_out)s, %(cost)s, %(latency_ms)s)
    on conflict (tenant, run_id, turn) do update set
        model_calls = m.model_calls + excluded.model_calls,
        tool_calls = m.tool_calls + excluded.tool_calls,
        attempts_completed = m.attempts_completed + excluded.attempts_completed,
        attempts_failed = m.attempts_failed + excluded.attempts_failed,
        attempts_lost = m.attempts_lost + excluded.attempts_lost,
        attempts_late = m.attempts_late + excluded.attempts_late,
        tokens_in = m.tokens_in + excluded.tokens_in,
        tokens_out = m.tokens_out + excluded.tokens_out,
        cost = m.cost + excluded.cost,
        latency_ms = m.latency_ms + excluded.latency_ms,
        updated_at = clock_timestamp()
)
update agent_ops.agent_runs
set tokens_in = tokens_in + %(tokens_in)s, tokens_out = tokens_out + %(tokens_out)s, cost = cost + %(cost)s
where tenant = %(tenant)s and run_id = %(run_id)s
  and (%(tokens_in)s::bigint <> 0 or %(tokens_out)s::bigint <> 0 or %(cost)s::numeric <> 0)

-- name: run_metrics
select model_calls, tool_calls, attempts_completed, attempts_failed, attempts_lost, attempts_late, tokens_in,
       tokens_out, cost, latency_ms
from agent_ops.agent_run_metrics
where tenant = %(tenant)s and run_id = %(run_id)s

-- name: turn_metrics
select turn, model_calls, tool_calls, attempts_completed, attempts_failed, attempts_lost, attempts_late, tokens_in,
       tokens_out, cost, latency_ms
from agent_ops.agent_turn_metrics
where tenant = %(tenant)s and run_id = %(run_id)s
order by turn

-- name: workflows
select r.workflow_name, count(*) as runs,
       count(*) filter (where r.status = 'PENDING') as pending,
       count(*) filter (where r.status = 'RUNNING') as running,
       count(*) filter (where r.status = 'AWAITING_REVIEW') as awaiting_review,
       count(*) filter (where r.status = 'COMPLETED') as completed,
       count(*) filter (where r.status = 'FAILED') as failed,
       count(*) filter (where r.status = 'CANCELLED') as cancelled,
       count(*) filter (where r.incident is not null) as incidents,
       coalesce(sum(m.model_calls), 0)::bigint as model_calls,
       coalesce(sum(m.tool_calls), 0)::bigint as tool_calls,
       coalesce(sum(m.tokens_in), 0)::bigint as tokens_in,
       coalesce(sum(m.tokens_out), 0)::bigint as tokens_out,
       coalesce(sum(m.cost), 0) as cost,
       coalesce(sum(m.latency_ms), 0)::bigint as latency_ms,
       round(avg(extract(epoch from r.ended_at - r.created_at)) filter (where r.ended_at is not null), 3) as mean_seconds
from agent_ops.agent_runs r
left join agent_ops.agent_run_metrics m on m.tenant = r.tenant and m.run_id = r.run_id
where r.tenant = %(tenant)s and r.created_at >= %(since)s
  and (%(workflow)s::text is null or r.workflow_name = %(workflow)s)
group by r.workflow_name
order by r.workflow_name

-- name: outcomes
select r.workflow_name, r.outcome, count(*) as runs
from agent_ops.agent_runs r
where r.tenant = %(tenant)s and r.created_at >= %(since)s and r.outcome is not null
  and (%(workflow)s::text is null or r.workflow_name = %(workflow)s)
group by r.workflow_name, r.outcome

-- name: retries
select s.kind, s.name,
       count(*) filter (where a.outcome = 'FAILED') as failed,
       count(*) filter (where a.outcome = 'LOST') as lost,
       count(*) filter (where a.outcome = 'LATE') as late,
       count(distinct s.step_id) as steps,
       count(distinct s.step_id) filter (where s.state = 'STARTED') as retrying,
       count(distinct s.step_id) filter (where s.state = 'FAILED') as given_up,
       max(a.started_at) as last_at
from agent_ops.agent_step_attempts a
join agent_ops.agent_steps s on s.tenant = a.tenant and s.step_id = a.step_id
where a.tenant = %(tenant)s and a.outcome in ('FAILED', 'LOST', 'LATE') and a.started_at >= %(since)s
group by s.kind, s.name
order by s.kind, s.name

-- name: in_flight
select step_id, run_id, path, kind, name, node, turn, tool_version, arguments, hash, state, attempt, result, error,
       cleaned, started_at, updated_at, ended_at
from agent_ops.agent_steps
where tenant = %(tenant)s and state = 'STARTED'
order by started_at
limit %(limit)s
