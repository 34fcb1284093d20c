-- name: business_key
select business_key from process_ops.transactions where tenant = %(tenant)s and uuid = %(uuid)s

-- name: clone_of
select uuid from process_ops.transactions where tenant = %(tenant)s and cloned_from = %(uuid)s
order by id limit 1

-- name: guarded
-- The argument of the guard is the column that names the Transaction, and the server ends it by a zero byte.
select n.nspname as schema, c.relname as name,
       convert_from(substring(t.tgargs from 1 for position('\x00'::bytea in t.tgargs) - 1), 'UTF8') as "column",
       exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped)
           as has_tenant
from pg_trigger t
join pg_class c on c.oid = t.tgrelid
join pg_namespace n on n.oid = c.relnamespace
where t.tgrelid = to_regclass(%(table)s) and t.tgname = 'casework_guard'
