-- Figures of the whole installation, of every tenant, since the first run. Their size is that of workflows, ways to
-- end, tools and open runs, and none grows with history. Sums of what others report have no bound, so they are numeric:
-- one row with absurd figures is not to take everybody's away.

-- name: one_snapshot
set transaction isolation level repeatable read, read only

-- name: bounded
select set_config('statement_timeout', %(timeout)s, true)

-- name: ended
select tenant, workflow_name, status, outcome, sum(runs)::bigint as runs, sum(run_seconds) as run_seconds,
       sum(reviews_asked)::bigint as reviews_asked, sum(reviews_decided)::bigint as reviews_decided,
       sum(reviews_closed)::bigint as reviews_closed, sum(review_seconds) as review_seconds,
       sum(model_calls)::bigint as model_calls, sum(tool_calls)::bigint as tool_calls,
       sum(tokens_in) as tokens_in, sum(tokens_out) as tokens_out, sum(cost) as cost
from agent_ops.agent_workflow_totals
group by tenant, workflow_name, status, outcome

-- name: live
select r.tenant, r.workflow_name, r.status, count(*) as runs, count(r.incident) as incidents,
       coalesce(sum(m.reviews_asked), 0)::bigint as reviews_asked,
       coalesce(sum(m.reviews_decided), 0)::bigint as reviews_decided,
       coalesce(sum(m.reviews_closed), 0)::bigint as reviews_closed,
       coalesce(sum(m.review_seconds), 0) as review_seconds,
       coalesce(sum(m.model_calls), 0)::bigint as model_calls, coalesce(sum(m.tool_calls), 0)::bigint as tool_calls,
       coalesce(sum(m.tokens_in), 0) as tokens_in, coalesce(sum(m.tokens_out), 0) as tokens_out,
       coalesce(sum(m.cost), 0) as cost,
       extract(epoch from clock_timestamp() - min(r.created_at)) as oldest_seconds
from agent_ops.agent_runs r
left join agent_ops.agent_run_metrics m on m.tenant = r.tenant and m.run_id = r.run_id and not m.rolled_up
where r.status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')
group by r.tenant, r.workflow_name, r.status

-- name: waiting
select v.tenant, r.workflow_name, count(*) as reviews,
       extract(epoch from clock_timestamp() - min(v.created_at)) as oldest_seconds
from agent_ops.agent_reviews v
join agent_ops.agent_runs r on r.tenant = v.tenant and r.run_id = v.run_id
    and r.status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')
where v.status = 'pending'
group by v.tenant, r.workflow_name

-- What was LOST and then came LATE was lost all the same: a counter does not go back.
-- name: operations
select tenant, kind, name, sum(attempts_completed)::bigint as completed,
       sum(attempts_failed + corrected_failed)::bigint as failed, sum(attempts_lost + corrected_lost)::bigint as lost,
       sum(attempts_late)::bigint as late, sum(latency_ms) as latency_ms
from agent_ops.agent_operation_metrics
group by tenant, kind, name

-- name: in_flight
select tenant, kind, name, count(*) as steps, count(*) filter (where attempt > 1 or error is not null) as retrying
from agent_ops.agent_steps
where state = 'STARTED'
group by tenant, kind, name
