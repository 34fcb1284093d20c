-- name: note
insert into process_ops.transaction_waits (tenant, transaction_uuid, step_id, claim_id, process, task, since)
values (%(tenant)s, %(uuid)s, %(step_id)s, %(claim_id)s, %(process)s, %(task)s, %(since)s)
on conflict do nothing

-- name: since
select since from process_ops.transaction_waits
where tenant = %(tenant)s and transaction_uuid = %(uuid)s and step_id = %(step_id)s

-- name: of
select process, task, claim_id, since from process_ops.waiting_parents
where tenant = %(tenant)s and transaction_uuid = %(uuid)s

-- name: of_process
select count(*) as transactions, min(since) as since from process_ops.waiting_parents
where tenant = %(tenant)s and process = %(process)s
