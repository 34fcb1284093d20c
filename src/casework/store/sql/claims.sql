-- How they take them stands with the functions (migrations `transaction_work`, `analytics_and_keys`).
-- name: claim
select (c.item).tenant, (c.item).uuid, (c.item).parent_uuid, (c.item).status, (c.item).status_before_error,
       (c.item).claim_id, (c.item).process, (c.item).task, (c.item).natural_key, (c.item).priority, (c.item).due_time,
       (c.item).start_time, (c.item).end_time, (c.item).data, (c.item).skip_until, (c.item).straight_through, c.place
from process_ops.claim_transactions(
    %(tenant)s, %(status)s, %(into)s, %(claims)s, %(size)s, %(process)s, %(by)s, %(at)s) c

-- name: claim_by_key
select (c.item).tenant, (c.item).uuid, (c.item).parent_uuid, (c.item).status, (c.item).status_before_error,
       (c.item).claim_id, (c.item).process, (c.item).task, (c.item).natural_key, (c.item).priority, (c.item).due_time,
       (c.item).start_time, (c.item).end_time, (c.item).data, (c.item).skip_until, (c.item).straight_through, c.place
from process_ops.claim_by_key(
    %(tenant)s, %(status)s, %(into)s, %(claims)s, %(size)s, %(per_key)s, %(process)s, %(by)s, %(at)s) c

-- name: of_claims
select tenant, uuid, parent_uuid, status, status_before_error, claim_id, process, task, natural_key, priority, due_time,
       start_time, end_time, data, skip_until, straight_through
from process_ops.transactions
where tenant = %(tenant)s and claim_id = any(%(claims)s)
order by priority desc, due_time, start_time, uuid

-- A tray whose Transactions all wait for others must not keep these others out.
-- name: open_trays
select count(distinct t.claim_id) from process_ops.transactions t
where t.tenant = %(tenant)s and t.process = %(process)s and t.claim_id is not null and t.end_time is null
  and not exists (
      select from process_ops.waiting_parents w where w.tenant = t.tenant and w.transaction_uuid = t.uuid)
