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

-- Ended runs from their roll-up rows, open ones from partial indexes. One statement, so one snapshot: a run that ends
-- meanwhile is in one half. `begin` is the start of the hour or day of acceptance, where a series is asked for.
-- name: workflows
with ended as (
    select workflow_name, case when %(series)s then date_trunc(%(by)s::text, hour, 'UTC') else 'epoch' end as begin,
           sum(runs) as runs,
           sum(runs) filter (where status = 'COMPLETED') as completed,
           sum(runs) filter (where status = 'FAILED') as failed,
           sum(runs) filter (where status = 'CANCELLED') as cancelled,
           sum(run_seconds) as run_seconds, sum(reviews_asked) as reviews_asked,
           sum(reviews_decided) as reviews_decided, sum(reviews_closed) as reviews_closed,
           sum(review_seconds) as review_seconds, sum(model_calls) as model_calls, sum(tool_calls) as tool_calls,
           sum(attempts_completed) as attempts_completed, sum(attempts_failed) as attempts_failed,
           sum(attempts_lost) as attempts_lost, sum(attempts_late) as attempts_late, sum(tokens_in) as tokens_in,
           sum(tokens_out) as tokens_out, sum(cost) as cost, sum(latency_ms) as latency_ms
    from agent_ops.agent_workflow_metrics
    where tenant = %(tenant)s and hour >= %(since)s and (%(workflow)s::text is null or workflow_name = %(workflow)s)
    group by 1, 2
), outcomes as (
    select workflow_name, begin, jsonb_object_agg(outcome, runs) as outcomes
    from (
        select workflow_name, case when %(series)s then date_trunc(%(by)s::text, hour, 'UTC') else 'epoch' end as begin,
               outcome, sum(runs) as runs
        from agent_ops.agent_workflow_metrics
        where tenant = %(tenant)s and hour >= %(since)s and outcome <> ''
          and (%(workflow)s::text is null or workflow_name = %(workflow)s)
        group by 1, 2, 3
    ) each
    group by 1, 2
), live as (
    select r.workflow_name, case when %(series)s then date_trunc(%(by)s::text, r.created_at, 'UTC') else 'epoch' end as begin,
           count(*) as runs, count(*) filter (where r.status = 'PENDING') as pending,
           count(*) filter (where r.status = 'RUNNING') as running,
           count(*) filter (where r.status = 'AWAITING_REVIEW') as awaiting_review,
           count(*) filter (where r.incident is not null) as incidents,
           sum(m.reviews_asked) as reviews_asked, sum(m.reviews_decided) as reviews_decided,
           sum(m.reviews_closed) as reviews_closed, sum(m.review_seconds) as review_seconds,
           sum(m.model_calls) as model_calls, sum(m.tool_calls) as tool_calls,
           sum(m.attempts_completed) as attempts_completed, sum(m.attempts_failed) as attempts_failed,
           sum(m.attempts_lost) as attempts_lost, sum(m.attempts_late) as attempts_late, sum(m.tokens_in) as tokens_in,
           sum(m.tokens_out) as tokens_out, sum(m.cost) as cost, sum(m.latency_ms) as latency_ms
    from agent_ops.agent_runs r
    left join agent_ops.agent_run_metrics m on m.tenant = r.tenant and m.run_id = r.run_id and not m.rolled_up
    where r.tenant = %(tenant)s and r.status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW') and r.created_at >= %(since)s
      and (%(workflow)s::text is null or r.workflow_name = %(workflow)s)
    group by 1, 2
), united as (
    select workflow_name, begin, coalesce(e.runs, 0)::bigint as ended, coalesce(e.runs, 0) + coalesce(l.runs, 0) as runs,
           coalesce(l.pending, 0) as pending, coalesce(l.running, 0) as running,
           coalesce(l.awaiting_review, 0) as awaiting_review, coalesce(l.incidents, 0) as incidents,
           coalesce(e.completed, 0) as completed, coalesce(e.failed, 0) as failed,
           coalesce(e.cancelled, 0) as cancelled, e.run_seconds,
           coalesce(e.reviews_asked, 0) + coalesce(l.reviews_asked, 0) as reviews_asked,
           coalesce(e.reviews_decided, 0) + coalesce(l.reviews_decided, 0) as reviews_decided,
           coalesce(e.reviews_closed, 0) + coalesce(l.reviews_closed, 0) as reviews_closed,
           coalesce(e.review_seconds, 0) + coalesce(l.review_seconds, 0) as review_seconds,
           coalesce(e.model_calls, 0) + coalesce(l.model_calls, 0) as model_calls,
           coalesce(e.tool_calls, 0) + coalesce(l.tool_calls, 0) as tool_calls,
           coalesce(e.attempts_completed, 0) + coalesce(l.attempts_completed, 0) as attempts_completed,
           coalesce(e.attempts_failed, 0) + coalesce(l.attempts_failed, 0) as attempts_failed,
           coalesce(e.attempts_lost, 0) + coalesce(l.attempts_lost, 0) as attempts_lost,
           coalesce(e.attempts_late, 0) + coalesce(l.attempts_late, 0) as attempts_late,
           coalesce(e.tokens_in, 0) + coalesce(l.tokens_in, 0) as tokens_in,
           coalesce(e.tokens_out, 0) + coalesce(l.tokens_out, 0) as tokens_out,
           coalesce(e.cost, 0) + coalesce(l.cost, 0) as cost,
           coalesce(e.latency_ms, 0) + coalesce(l.latency_ms, 0) as latency_ms,
           e.tokens_in as ended_in, e.tokens_out as ended_out, e.cost as ended_cost
    from ended e full join live l using (workflow_name, begin)
)
select b.workflow_name, case when %(series)s then b.begin end as begin, b.runs::bigint, b.pending, b.running,
       b.awaiting_review, b.completed::bigint, b.failed::bigint, b.cancelled::bigint, b.incidents,
       b.reviews_asked::bigint, b.reviews_decided::bigint, b.reviews_closed::bigint, b.model_calls::bigint,
       b.tool_calls::bigint, b.attempts_completed::bigint, b.attempts_failed::bigint, b.attempts_lost::bigint,
       b.attempts_late::bigint, b.tokens_in, b.tokens_out, b.cost, b.latency_ms,
       round(b.run_seconds / nullif(b.ended, 0), 3) as mean_seconds,
       round(b.review_seconds / nullif(b.reviews_decided, 0), 3) as mean_review_seconds,
       round(b.ended_in::numeric / nullif(b.ended, 0), 1) as mean_tokens_in,
       round(b.ended_out::numeric / nullif(b.ended, 0), 1) as mean_tokens_out,
       round(b.ended_cost / nullif(b.ended, 0), 6) as mean_cost, coalesce(o.outcomes, '{}') as outcomes
from united b left join outcomes o using (workflow_name, begin)
order by b.workflow_name, b.begin

-- Attempts that did not end well are few, and have an index of their own. Each is led to its step by key (the limit
-- keeps the planner from reading all steps instead).
-- name: retries
select s.kind, s.name,
       count(*) filter (where a.outcome = 'FAILED') as failed,
       count(*) filter (where a.outcome = 'LOST') as lost,
       count(*) filter (where a.outcome = 'LATE') as late,
       count(distinct a.step_id) as steps,
       count(distinct a.step_id) filter (where s.state = 'STARTED') as retrying,
       count(distinct a.step_id) filter (where s.state = 'FAILED') as given_up,
       max(a.started_at) as last_at
from agent_ops.agent_step_attempts a
cross join lateral (
    select kind, name, state from agent_ops.agent_steps
    where tenant = a.tenant and step_id = a.step_id
    limit 1
) s
where a.tenant = %(tenant)s and a.outcome in ('FAILED', 'LOST', 'LATE') and a.started_at >= %(since)s
group by s.kind, s.name
order by s.kind, s.name
