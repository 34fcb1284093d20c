-- name: record
select process_ops.add_error(%(tenant)s, %(failure)s)

-- name: of
select uuid, transaction_uuid as transaction, root_uuid as root, type, code, severity, short_text as short,
       full_text as "full", process, task, attempt, started_at as started, failed_at as failed
from process_ops.transaction_errors
where tenant = %(tenant)s and transaction_uuid = %(uuid)s
order by failed_at, attempt, uuid
