-- The filters that are not asked for are constants to the planner, and vanish. `id > 0` is true of all; it stands in the
-- indexes that these lists go along.
-- name: transactions
select tenant, uuid, parent_uuid, root_uuid, cloned_from, status, status_before_error, claim_id, process, task,
       natural_key, business_key, priority, due_time, start_time, end_time, data, skip_until, straight_through, by_hand,
       cleaned, updated_at
from process_ops.transactions
where tenant = %(tenant)s and id > 0
  and (%(status)s::text is null or status = %(status)s)
  and (%(process)s::text is null or process = %(process)s)
  and (%(claim_id)s::uuid is null or claim_id = %(claim_id)s)
  and (%(parent)s::uuid is null or parent_uuid = %(parent)s)
  and (%(clone_of)s::uuid is null or cloned_from = %(clone_of)s)
  and (%(text)s::text is null or position(lower(%(text)s) in lower(natural_key)) > 0)
  and (%(natural_key)s::text is null or natural_key = %(natural_key)s)
  and (%(after_at)s::timestamptz is null or (start_time, uuid) < (%(after_at)s, %(after_id)s::uuid))
order by start_time desc, uuid desc
limit %(limit)s

-- name: transaction
select tenant, uuid, parent_uuid, root_uuid, cloned_from, status, status_before_error, claim_id, process, task,
       natural_key, business_key, priority, due_time, start_time, end_time, data, skip_until, straight_through, by_hand,
       cleaned, updated_at
from process_ops.transactions
where tenant = %(tenant)s and uuid = %(uuid)s

-- name: of_natural_key
select uuid from process_ops.transactions where tenant = %(tenant)s and natural_key = %(natural_key)s

-- name: counts
select process, status, count(*) as transactions, count(*) filter (where claim_id is not null and end_time is null)
       as claimed, min(start_time) as oldest
from process_ops.transactions
where tenant = %(tenant)s and (end_time is null or end_time >= %(since)s)
group by process, status
order by process nulls first, status

-- name: errors
select uuid, transaction_uuid as transaction, root_uuid as root, type, code, severity, short_text as short,
       full_text as "full", process, task, attempt, started_at as started, failed_at as failed
from process_ops.transaction_errors
where tenant = %(tenant)s
  and (%(process)s::text is null or process = %(process)s)
  and (%(root)s::uuid is null or root_uuid = %(root)s)
  and (%(after_at)s::timestamptz is null or (failed_at, uuid) < (%(after_at)s, %(after_id)s::uuid))
order by failed_at desc, uuid desc
limit %(limit)s

-- name: analytics
select transaction_uuid, root_uuid, process, start_time, end_time, seconds, stage_times, straight_through, by_hand,
       errors, cost
from process_ops.transaction_analytics
where tenant = %(tenant)s and transaction_uuid = %(uuid)s
