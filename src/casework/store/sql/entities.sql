-- name: guards
select w.name,
       c.oid is not null as found,
       c.relreplident is not distinct from 'f' as whole_rows,
       exists (
           select from pg_trigger t
           where t.tgrelid = c.oid and t.tgfoid = 'process_ops.guard_entity'::regproc and t.tgenabled in ('O', 'A')
       ) as guarded
from unnest(%(tables)s::text[]) with ordinality w (name, place)
left join pg_class c on c.oid = to_regclass(w.name) and c.relkind in ('r', 'p')
order by w.place
