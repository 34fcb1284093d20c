-- Rows that contradict each other, for runs that are at rest: a step in flight is a fault here. `what` names the kind.
-- name: faults
with wanted as (
    select unnest(%(runs)s::uuid[]) as run_id
), run as (
    select r.* from agent_ops.agent_runs r where r.tenant = %(tenant)s
), mine as (
    select run.* from run join wanted using (run_id)
), step as (
    select s.* from agent_ops.agent_steps s join mine using (tenant, run_id)
), attempt as (
    select a.* from agent_ops.agent_step_attempts a join mine using (tenant, run_id)
), message as (
    select m.* from agent_ops.agent_messages m join mine using (tenant, run_id)
), event as (
    select e.* from agent_ops.agent_events e join mine using (tenant, run_id)
), review as (
    select v.* from agent_ops.agent_reviews v join mine using (tenant, run_id)
)
select 'run_missing' as what, run_id, 'no row' as found
from wanted where not exists (select from run where run.run_id = wanted.run_id)
union all
select 'run_unasked', run_id, status
from run where not exists (select from wanted where wanted.run_id = run.run_id)
union all
select 'run_failed', run_id, failure from mine where status = 'FAILED'
union all
select 'run_elsewhere', run_id, status from mine where status not in ('AWAITING_REVIEW', 'COMPLETED', 'FAILED')
union all
select 'run_incident', run_id, incident::text from mine where incident is not null
union all
select 'evidence_missing', mine.run_id, tool
from mine cross join unnest(%(tools)s::text[]) as tool
where not exists (
    select from step where step.run_id = mine.run_id and kind = 'tool' and name = tool and state = 'COMPLETED')
union all
select 'step_open', run_id, path || ' ' || state || coalesce(': ' || error, '') from step where state <> 'COMPLETED'
union all
select 'attempt_open', run_id, path || ' attempt ' || a.attempt
from attempt a join step s using (tenant, run_id, step_id) where a.outcome is null
union all
select 'result_twice', s.run_id, s.path || ' has ' || count(a.attempt) || ' completed attempts'
from step s left join attempt a
    on a.tenant = s.tenant and a.step_id = s.step_id and a.outcome = 'COMPLETED'
where s.kind <> 'decision' and s.state = 'COMPLETED' and s.taken_from is null group by s.run_id, s.step_id, s.path having count(a.attempt) <> 1
union all
select 'transcript_hole', run_id, count(*) || ' messages, the last at ' || max(position)
from message group by run_id having min(position) <> 1 or count(*) <> max(position)
union all
select 'message_note', run_id, content from message where role = 'note'
union all
select 'message_count', mine.run_id, format('%%s answers of %%s model calls, %%s results of %%s tool calls',
    m.answers, s.models, m.results, s.tools)
from mine
cross join lateral (
    select count(*) filter (where role = 'assistant') as answers, count(distinct call_id) filter (where role = 'tool')
        as distinct_results, count(*) filter (where role = 'tool') as results
    from message where message.run_id = mine.run_id) m
cross join lateral (
    select count(*) filter (where kind = 'model') as models, count(*) filter (where kind = 'tool') as tools
    from step where step.run_id = mine.run_id) s
where m.answers <> s.models or m.results <> s.tools or m.distinct_results <> m.results
union all
select 'event_hole', run_id, count(*) || ' events, the last is ' || max(seq)
from event group by run_id having min(seq) <> 1 or count(*) <> max(seq)
union all
select 'event_count', mine.run_id, format('%%s completions of %%s tools, %%s answers of %%s model calls, %%s reviews asked',
    e.completed, s.tools, e.answered, s.models, e.asked)
from mine
cross join lateral (
    select count(*) filter (where kind = 'agent.tool_completed') as completed,
        count(*) filter (where kind = 'agent.model_answered') as answered,
        count(*) filter (where kind = 'agent.review_pending') as asked
    from event where event.run_id = mine.run_id) e
cross join lateral (
    select count(*) filter (where kind = 'model') as models, count(*) filter (where kind = 'tool') as tools
    from step where step.run_id = mine.run_id and taken_from is null) s
where e.completed <> s.tools or e.answered <> s.models
    or e.asked <> (select count(*) from review where review.run_id = mine.run_id)
union all
select 'event_conflict', run_id, kind from event where kind like 'conflict:%%'
union all
select 'review_count', mine.run_id, mine.status || ' with ' || count(review.review_id) || ' pending reviews'
from mine left join review on review.run_id = mine.run_id and review.status = 'pending'
group by mine.run_id, mine.status having count(review.review_id) <> (mine.status = 'AWAITING_REVIEW')::int
union all
select 'metrics_count', mine.run_id, format('the roll-up has %%s, %%s, %%s, %%s, and the attempts are %%s, %%s, %%s, %%s',
    m.attempts_completed, m.attempts_failed, m.attempts_lost, m.attempts_late, a.completed, a.failed, a.lost, a.late)
from mine
left join agent_ops.agent_run_metrics m on m.tenant = mine.tenant and m.run_id = mine.run_id
cross join lateral (
    select count(*) filter (where outcome = 'COMPLETED') as completed, count(*) filter (where outcome = 'FAILED') as failed,
        count(*) filter (where outcome = 'LOST') as lost, count(*) filter (where outcome = 'LATE') as late
    from attempt where attempt.run_id = mine.run_id) a
where (m.attempts_completed, m.attempts_failed, m.attempts_lost, m.attempts_late)
    is distinct from (a.completed, a.failed, a.lost, a.late)
order by what, run_id
limit 200

-- name: totals
select
    (select count(*) from agent_ops.agent_runs where tenant = %(tenant)s) as runs,
    (select count(*) from agent_ops.agent_steps where tenant = %(tenant)s) as steps,
    (select count(*) from agent_ops.agent_step_attempts where tenant = %(tenant)s) as attempts,
    (select count(*) from agent_ops.agent_step_attempts where tenant = %(tenant)s and outcome = 'LOST') as attempts_lost,
    (select count(*) from agent_ops.agent_step_attempts where tenant = %(tenant)s and outcome = 'FAILED')
        as attempts_failed,
    (select count(*) from agent_ops.agent_step_attempts where tenant = %(tenant)s and outcome = 'LATE') as attempts_late,
    (select count(*) from agent_ops.agent_messages where tenant = %(tenant)s) as messages,
    (select count(*) from agent_ops.agent_events where tenant = %(tenant)s) as events,
    (select count(*) from agent_ops.agent_reviews where tenant = %(tenant)s and status = 'pending') as reviews_pending
