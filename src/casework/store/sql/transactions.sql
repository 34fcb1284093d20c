-- name: get
select tenant, uuid, parent_uuid, status, status_before_error, claim_id, process, task, natural_key, priority, due_time,
       start_time, end_time, data, skip_until, straight_through
from process_ops.transactions
where tenant = %(tenant)s and uuid = %(uuid)s

-- name: lock
select tenant, uuid, parent_uuid, status, status_before_error, claim_id, process, task, natural_key, priority, due_time,
       start_time, end_time, data, skip_until, straight_through
from process_ops.transactions
where tenant = %(tenant)s and uuid = %(uuid)s
for no key update

-- name: lock_all
select tenant, uuid, parent_uuid, status, status_before_error, claim_id, process, task, natural_key, priority, due_time,
       start_time, end_time, data, skip_until, straight_through
from process_ops.transactions
where tenant = %(tenant)s and uuid = any(%(uuids)s)
order by uuid
for no key update

-- name: insert
select process_ops.add_transaction(%(tenant)s, %(made)s, %(by)s, %(at)s)

-- name: write
select process_ops.write_transaction(
    %(tenant)s, %(uuid)s, %(status)s, %(claim_id)s, %(after)s, %(by)s, %(at)s)

-- name: write_all
select process_ops.write_transactions(%(tenant)s, %(afters)s, %(uuids)s, %(by)s, %(at)s)

-- Of a child that was cloned the clone is awaited in its place.
-- name: family
select t.tenant, t.uuid, t.parent_uuid, t.status, t.status_before_error, t.claim_id, t.process, t.task, t.natural_key,
       t.priority, t.due_time, t.start_time, t.end_time, t.data, t.skip_until, t.straight_through,
       a.transaction_uuid is not null as arrived
from process_ops.transactions t
left join process_ops.transaction_arrivals a on a.tenant = t.tenant and a.transaction_uuid = t.uuid
where t.tenant = %(tenant)s and t.parent_uuid = %(uuid)s
  and not exists (select from process_ops.transactions c where c.tenant = t.tenant and c.cloned_from = t.uuid)
order by t.id

-- name: arrive
insert into process_ops.transaction_arrivals (tenant, parent_uuid, transaction_uuid, task, at)
values (%(tenant)s, %(parent)s, %(uuid)s, %(task)s, clock_timestamp())
on conflict do nothing

-- name: root
select root_uuid from process_ops.transactions where tenant = %(tenant)s and uuid = %(uuid)s

-- name: of_claim
select tenant, uuid, parent_uuid, status, status_before_error, claim_id, process, task, natural_key, priority, due_time,
       start_time, end_time, data, skip_until, straight_through
from process_ops.transactions
where tenant = %(tenant)s and claim_id = %(claim_id)s
order by priority desc, due_time, start_time, uuid

-- Those that have ended stay as they are.
-- name: release
update process_ops.transactions set claim_id = null, updated_at = clock_timestamp()
where tenant = %(tenant)s and claim_id = %(claim_id)s and end_time is null

-- name: stages
select before, after, process, made_by, claim_id, at
from process_ops.transaction_stages
where tenant = %(tenant)s and transaction_uuid = %(uuid)s
order by id

-- name: was_made_by
select exists (
    select from process_ops.transaction_stages
    where tenant = %(tenant)s and transaction_uuid = %(uuid)s and made_by = %(by)s and claim_id = %(claim_id)s
      and after = %(status)s)
