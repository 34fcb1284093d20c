-- name: visits
select path, kind, data ->> 'error' as error
from agent_ops.agent_events
where tenant = %(tenant)s and run_id = %(run_id)s
  and kind in ('agent.node_started', 'agent.node_completed', 'agent.node_failed')
order by seq

-- name: branches
select path from agent_ops.agent_events
where tenant = %(tenant)s and run_id = %(run_id)s and kind in ('agent.review_pending', 'agent.sub_run_started')
order by seq

-- name: outputs
select context_id, path, key, version, value, created_at
from agent_ops.agent_context
where tenant = %(tenant)s and run_id = %(run_id)s
order by version, created_at, context_id

-- name: messages
select message_id, path, position, role
from agent_ops.agent_messages
where tenant = %(tenant)s and run_id = %(run_id)s
order by position

-- name: take_steps
insert into agent_ops.agent_steps (
    tenant, step_id, run_id, path, kind, name, node, turn, tool_version, arguments, hash, state, attempt, result, error,
    cleaned, started_at, updated_at, ended_at, taken_from)
select s.tenant, taken.id, %(run_id)s, s.path, s.kind, s.name, s.node, s.turn, s.tool_version, s.arguments, s.hash,
       s.state, s.attempt, s.result, s.error, s.cleaned, s.started_at, s.updated_at, s.ended_at,
       coalesce(s.taken_from, s.run_id)
from unnest(%(old)s::uuid[], %(new)s::uuid[]) as taken (old, id)
join agent_ops.agent_steps s on s.tenant = %(tenant)s and s.step_id = taken.old

-- name: take_messages
insert into agent_ops.agent_messages (
    tenant, message_id, run_id, path, position, agent, role, content, requests, call_id, tool, parts, cleaned, created_at,
    taken_from)
select m.tenant, taken.id, %(run_id)s, m.path, m.position, m.agent, m.role, m.content, m.requests, m.call_id, m.tool,
       m.parts, m.cleaned, m.created_at, coalesce(m.taken_from, m.run_id)
from unnest(%(old)s::uuid[], %(new)s::uuid[]) as taken (old, id)
join agent_ops.agent_messages m on m.tenant = %(tenant)s and m.message_id = taken.old
order by m.position

-- name: take_outputs
insert into agent_ops.agent_context (
    tenant, context_id, run_id, path, key, version, value, cleaned, created_at, taken_from)
select c.tenant, taken.id, %(run_id)s, c.path, c.key, c.version, c.value, c.cleaned, c.created_at,
       coalesce(c.taken_from, c.run_id)
from unnest(%(old)s::uuid[], %(new)s::uuid[]) as taken (old, id)
join agent_ops.agent_context c on c.tenant = %(tenant)s and c.context_id = taken.old

-- name: keep_seed
insert into agent_ops.agent_fork_seeds (tenant, run_id, seed, cleaned)
values (%(tenant)s, %(run_id)s, %(seed)s, %(cleaned)s)
on conflict (tenant, run_id) do nothing

-- name: seed
select seed from agent_ops.agent_fork_seeds where tenant = %(tenant)s and run_id = %(run_id)s

-- name: forks
select run_id, forked_from_path as path, status, created_at
from agent_ops.agent_runs
where tenant = %(tenant)s and forked_from_run_id = %(run_id)s
order by created_at, run_id
limit %(limit)s

-- The policy that was read by the time the last step was done which the fork takes over.
-- name: take_policies
insert into agent_ops.agent_policy_uses (
    tenant, run_id, purpose, turn, policy_name, version, source, row, cleaned, created_at)
select u.tenant, %(run_id)s, u.purpose, u.turn, u.policy_name, u.version, u.source, u.row, u.cleaned, u.created_at
from agent_ops.agent_policy_uses u
where u.tenant = %(tenant)s and u.run_id = %(source)s and u.created_at <= %(until)s
