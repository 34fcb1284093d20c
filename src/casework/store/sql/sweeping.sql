-- name: open_page
select tenant, run_id, status, version, created_at, updated_at, incident, task_queue
from agent_ops.agent_runs r
where status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')
  and (%(after_at)s::timestamptz is null or (created_at, run_id) > (%(after_at)s, %(after_id)s::uuid))
  -- A run that another is about to start is that one's to start.
  and not (status = 'PENDING' and parent_run_id is not null and exists (
      select from agent_ops.agent_runs p
      where p.tenant = r.tenant and p.run_id = r.parent_run_id
        and p.status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')))
  -- One that a tray is about to start is the tray's, as long as that holds the Transaction. By its limit this is asked
  -- for each run, by index. Of `exists` a plan may answer all runs at once, from the whole of these tables.
  and not (status = 'PENDING' and coalesce((
      select true from process_ops.transaction_runs l
      join process_ops.transaction_steps s on s.tenant = l.tenant and s.step_id = l.step_id
      join process_ops.transactions t on t.tenant = l.tenant and t.uuid = l.transaction_uuid and t.claim_id = s.claim_id
      where l.tenant = r.tenant and l.run_id = r.run_id limit 1), false))
order by created_at, run_id
limit %(limit)s

-- name: counted
select
    count(*) filter (where status <> 'PENDING') as open,
    count(*) filter (where status = 'PENDING') as pending,
    count(*) filter (where incident is not null
        or (status <> 'PENDING' and task_queue is distinct from %(queue)s)) as told
from agent_ops.agent_runs
where status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')

-- name: few
(select tenant, run_id, status, version, created_at, updated_at, incident, task_queue
 from agent_ops.agent_runs where status = 'RUNNING' and updated_at < %(before)s order by random() limit %(limit)s)
union all
(select tenant, run_id, status, version, created_at, updated_at, incident, task_queue
 from agent_ops.agent_runs where status = 'AWAITING_REVIEW' and updated_at < %(before)s
 order by random() limit 2 * %(limit)s)
union all
(select tenant, run_id, status, version, created_at, updated_at, incident, task_queue
 from agent_ops.agent_runs r where status = 'PENDING'
  -- As above.
  and not (parent_run_id is not null and exists (
      select from agent_ops.agent_runs p
      where p.tenant = r.tenant and p.run_id = r.parent_run_id
        and p.status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW')))
  -- As above.
  and not coalesce((
      select true from process_ops.transaction_runs l
      join process_ops.transaction_steps s on s.tenant = l.tenant and s.step_id = l.step_id
      join process_ops.transactions t on t.tenant = l.tenant and t.uuid = l.transaction_uuid and t.claim_id = s.claim_id
      where l.tenant = r.tenant and l.run_id = r.run_id limit 1), false))

-- name: known
select tenant, run_id, status, failure, ended_at from agent_ops.agent_runs
where run_id = any(%(run_ids)s)

-- name: busy
select distinct run_id from agent_ops.agent_steps
where state = 'STARTED' and updated_at > %(since)s and run_id = any(%(run_ids)s)
