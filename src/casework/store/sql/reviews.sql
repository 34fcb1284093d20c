-- name: get
select v.tenant, v.review_id, v.run_id, v.path, v.node, v.turn, v.status, v.decisions, v.refused, v.recommendation,
       v.note, v.cleaned, v.created_at, v.ended_at, r.workflow_name, r.user_id
from agent_ops.agent_reviews v
join agent_ops.agent_runs r on r.tenant = v.tenant and r.run_id = v.run_id
where v.tenant = %(tenant)s and v.review_id = %(review_id)s

-- name: current
select v.tenant, v.review_id, v.run_id, v.path, v.node, v.turn, v.status, v.decisions, v.refused, v.recommendation,
       v.note, v.cleaned, v.created_at, v.ended_at, r.workflow_name, r.user_id
from agent_ops.agent_reviews v
join agent_ops.agent_runs r on r.tenant = v.tenant and r.run_id = v.run_id
where v.tenant = %(tenant)s and v.run_id = %(run_id)s and v.status = 'pending'
order by v.created_at desc, v.review_id
limit 1

-- name: of_run
select v.tenant, v.review_id, v.run_id, v.path, v.node, v.turn, v.status, v.decisions, v.refused, v.recommendation,
       v.note, v.cleaned, v.created_at, v.ended_at, r.workflow_name, r.user_id
from agent_ops.agent_reviews v
join agent_ops.agent_runs r on r.tenant = v.tenant and r.run_id = v.run_id
where v.tenant = %(tenant)s and v.run_id = %(run_id)s
order by v.created_at, v.review_id

-- name: waiting
select v.tenant, v.review_id, v.run_id, v.path, v.node, v.turn, v.status, v.decisions, v.refused, v.recommendation,
       v.note, v.cleaned, v.created_at, v.ended_at, r.workflow_name, r.user_id
from agent_ops.agent_reviews v
join agent_ops.agent_runs r on r.tenant = v.tenant and r.run_id = v.run_id
where v.tenant = %(tenant)s and v.status = 'pending'
  and (%(after_at)s::timestamptz is null or (v.created_at, v.review_id) > (%(after_at)s, %(after_id)s::uuid))
order by v.created_at, v.review_id
limit %(limit)s

-- name: write
insert into agent_ops.agent_reviews (
    tenant, review_id, run_id, path, node, turn, decisions, refused, recommendation, note, cleaned, created_at, status,
    ended_at)
select %(tenant)s, %(review_id)s::uuid, %(run_id)s::uuid, %(path)s, %(node)s, %(turn)s, %(decisions)s, %(refused)s,
       %(recommendation)s, %(note)s, %(cleaned)s, %(at)s::timestamptz,
       case when r.status in ('COMPLETED', 'FAILED', 'CANCELLED') then 'closed' else 'pending' end,
       case when r.status in ('COMPLETED', 'FAILED', 'CANCELLED') then %(at)s::timestamptz end
from agent_ops.agent_runs r
where r.tenant = %(tenant)s and r.run_id = %(run_id)s
on conflict (tenant, review_id) do nothing

-- name: same
select run_id = %(run_id)s and path = %(path)s and node = %(node)s and turn = %(turn)s
       and decisions = %(decisions)s::jsonb and refused is not distinct from %(refused)s::jsonb
       and recommendation is not distinct from %(recommendation)s::jsonb and note is not distinct from %(note)s::text
from agent_ops.agent_reviews
where tenant = %(tenant)s and review_id = %(review_id)s

-- name: status
select status from agent_ops.agent_reviews
where tenant = %(tenant)s and review_id = %(review_id)s and run_id = %(run_id)s
for update

-- name: decide
update agent_ops.agent_reviews set status = 'decided', ended_at = %(at)s
where tenant = %(tenant)s and review_id = %(review_id)s and status = 'pending'

-- name: write_decision
insert into agent_ops.agent_review_decisions (
    tenant, run_id, decision_id, review_id, path, command, reason, reviewer, accepted, ignored, outcome, cleaned,
    created_at)
values (
    %(tenant)s, %(run_id)s, %(decision_id)s, %(review_id)s, %(path)s, %(command)s, %(reason)s, %(reviewer)s,
    %(accepted)s, %(ignored)s, %(outcome)s, %(cleaned)s, %(at)s)
on conflict do nothing

-- name: same_decision
select review_id is not distinct from %(review_id)s::uuid and command = %(command)s and reason = %(reason)s
       and reviewer = %(reviewer)s and accepted = %(accepted)s and outcome is not distinct from %(outcome)s::text
from agent_ops.agent_review_decisions
where tenant = %(tenant)s and run_id = %(run_id)s and decision_id = %(decision_id)s

-- name: decisions
select run_id, decision_id, review_id, path, command, reason, reviewer, accepted, ignored, outcome, cleaned, created_at
from agent_ops.agent_review_decisions
where tenant = %(tenant)s and run_id = %(run_id)s
order by created_at, decision_id

-- name: decision
select run_id, decision_id, review_id, path, command, reason, reviewer, accepted, ignored, outcome, cleaned, created_at
from agent_ops.agent_review_decisions
where tenant = %(tenant)s and run_id = %(run_id)s and decision_id = %(decision_id)s

-- name: winner
select run_id, decision_id, review_id, path, command, reason, reviewer, accepted, ignored, outcome, cleaned, created_at
from agent_ops.agent_review_decisions
where tenant = %(tenant)s and review_id = %(review_id)s and accepted
