-- name: of_run
select begun.run_id, begun.path, begun.data ->> 'signal' as signal, begun.data ->> 'until' as until, begun.at
from agent_ops.agent_events begun
where begun.tenant = %(tenant)s and begun.run_id = %(run_id)s and begun.kind = 'agent.wait_started'
  and not exists (
      select from agent_ops.agent_events over_
      where over_.tenant = begun.tenant and over_.run_id = begun.run_id and over_.path = begun.path
        and over_.kind = 'agent.wait_over')
order by begun.at, begun.path

-- name: subs
select begun.path, begun.data ->> 'run_id' as run_id, begun.data ->> 'workflow' as workflow, begun.at
from agent_ops.agent_events begun
where begun.tenant = %(tenant)s and begun.run_id = %(run_id)s and begun.kind = 'agent.sub_run_started'
  and not exists (
      select from agent_ops.agent_events over_
      where over_.tenant = begun.tenant and over_.run_id = begun.run_id and over_.path = begun.path
        and over_.kind = 'agent.sub_run_ended')
order by begun.at, begun.path

-- name: total
select count(distinct begun.run_id) as runs, min(begun.at) as oldest
from agent_ops.agent_runs r
join agent_ops.agent_events begun
    on begun.tenant = r.tenant and begun.run_id = r.run_id and begun.kind = 'agent.wait_started'
where r.status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')
  and not exists (
      select from agent_ops.agent_events over_
      where over_.tenant = begun.tenant and over_.run_id = begun.run_id and over_.path = begun.path
        and over_.kind = 'agent.wait_over')
