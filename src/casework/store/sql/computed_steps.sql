-- name: computable
select c.step_id, c.seen,
       (c.item).tenant, (c.item).uuid, (c.item).parent_uuid, (c.item).status, (c.item).status_before_error,
       (c.item).claim_id, (c.item).process, (c.item).task, (c.item).natural_key, (c.item).priority, (c.item).due_time,
       (c.item).start_time, (c.item).end_time, (c.item).data, (c.item).skip_until, (c.item).straight_through
from process_ops.computable_tasks(%(tenant)s, %(claim_id)s, %(steps)s, %(uuids)s, %(statuses)s) c

-- name: complete
select step_id from process_ops.complete_tasks(
    %(tenant)s, %(claim_id)s, %(process)s, %(task)s, %(path)s, %(kind)s, %(version)s, %(work_attempt)s, %(ends)s, %(at)s)
