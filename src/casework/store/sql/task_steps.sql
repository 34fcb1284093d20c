-- What they do stands with the functions (migration `transaction_work`).
-- name: begin
select b.met, b.step_id, b.state, b.attempt, b.result, b.error,
       (b.item).tenant, (b.item).uuid, (b.item).parent_uuid, (b.item).status, (b.item).status_before_error,
       (b.item).claim_id, (b.item).process, (b.item).task, (b.item).natural_key, (b.item).priority, (b.item).due_time,
       (b.item).start_time, (b.item).end_time, (b.item).data, (b.item).skip_until, (b.item).straight_through
from process_ops.begin_tasks(%(tenant)s, %(claim_id)s, %(asked)s) b

-- name: end
select step_id, met from process_ops.end_tasks(%(tenant)s, %(ends)s, %(whole)s)

-- name: of
select step_id, transaction_uuid, claim_id, process, task, path, kind, task_version, state, attempt, work_attempt, result,
       error, cleaned, started_at, updated_at, ended_at
from process_ops.transaction_steps
where tenant = %(tenant)s and transaction_uuid = %(uuid)s
order by started_at, step_id

-- name: current
select attempt from process_ops.transaction_steps
where tenant = %(tenant)s and step_id = %(step_id)s and state = 'STARTED'

-- name: result
select result from process_ops.transaction_steps
where tenant = %(tenant)s and step_id = %(step_id)s
  and (state = 'COMPLETED' or state = 'FAILED' and work_attempt >= %(work_attempt)s)
