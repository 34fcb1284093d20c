-- `updated_at` stays: a flag is not the run's own doing, and what is told is how long that has been quiet.
-- name: raise
update agent_ops.agent_runs set incident = %(incident)s, cleaned = cleaned + %(cleaned)s
where tenant = %(tenant)s and run_id = %(run_id)s and status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')
  and incident ->> 'kind' is distinct from %(kind)s

-- name: clear
update agent_ops.agent_runs r set incident = null
from (select incident from agent_ops.agent_runs where tenant = %(tenant)s and run_id = %(run_id)s) before
where r.tenant = %(tenant)s and r.run_id = %(run_id)s and r.incident is not null
returning before.incident
