-- name: has_come
select exists (
    select from process_ops.transactions where tenant = %(tenant)s and natural_key = %(natural_key)s)

-- The same guard as that of a claim by status: what another has taken, or a task has seen, is passed over.
-- name: claim_made
with taken as (
    update process_ops.transactions t set claim_id = %(claim_id)s, updated_at = %(at)s
    where t.tenant = %(tenant)s and t.uuid = any(%(uuids)s) and t.status = %(status)s and t.process = %(process)s
      and t.claim_id is null and t.task is null and t.end_time is null
    returning t.*
), claimed as (
    insert into process_ops.transaction_claims (tenant, claim_id, process, made_by, taken, at)
    select %(tenant)s, %(claim_id)s, %(process)s, %(by)s, count(*), %(at)s from taken having count(*) > 0
)
select tenant, uuid, parent_uuid, status, status_before_error, claim_id, process, task, natural_key, priority, due_time,
       start_time, end_time, data, skip_until, straight_through
from taken
order by priority desc, due_time, start_time, uuid

-- Not written since its birth: what was in a tray before, and stayed at the end of its line, is not taken again.
-- name: left_over
select uuid from process_ops.transactions
where tenant = %(tenant)s and status = %(status)s and process = %(process)s
  and claim_id is null and task is null and end_time is null and updated_at = start_time
order by start_time, uuid
limit %(most)s

-- name: unstarted
select tenant, uuid, parent_uuid, status, status_before_error, claim_id, process, task, natural_key, priority, due_time,
       start_time, end_time, data, skip_until, straight_through
from process_ops.transactions
where tenant = %(tenant)s and process = %(process)s and claim_id is not null and task is null and end_time is null
order by claim_id, priority desc, due_time, start_time, uuid

-- name: refuse
insert into process_ops.input_errors as e (
    tenant, uuid, process, monitor_class, natural_key, type, code, severity, short_text, full_text, times, first_at,
    last_at, cleaned)
values (
    %(tenant)s, %(uuid)s, %(process)s, %(monitor_class)s, %(natural_key)s, %(type)s, %(code)s, %(severity)s,
    %(short_text)s, %(full_text)s, %(times)s, %(first_at)s, %(last_at)s, %(cleaned)s)
on conflict (tenant, uuid) do update
    set times = e.times + excluded.times, last_at = excluded.last_at, full_text = excluded.full_text

-- name: refused
select uuid, process, monitor_class, natural_key, type, code, severity, short_text, full_text, times, first_at, last_at
from process_ops.input_errors
where tenant = %(tenant)s and (%(process)s::text is null or process = %(process)s)
order by last_at desc, uuid
limit %(most)s
