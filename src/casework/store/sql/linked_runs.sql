-- name: link
insert into process_ops.transaction_runs (tenant, transaction_uuid, run_id, step_id, task, at)
values (%(tenant)s, %(uuid)s, %(run_id)s, %(step_id)s, %(task)s, %(at)s)
on conflict do nothing

-- name: of
select l.transaction_uuid, l.run_id, l.step_id, l.task, r.status, l.at
from process_ops.transaction_runs l
left join agent_ops.agent_runs r on r.tenant = l.tenant and r.run_id = l.run_id
where l.tenant = %(tenant)s and l.transaction_uuid = %(uuid)s
order by l.at, l.run_id

-- name: transaction_of
select transaction_uuid from process_ops.transaction_runs where tenant = %(tenant)s and run_id = %(run_id)s
