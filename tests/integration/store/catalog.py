"""The schema as text, from the catalogs, the same on every supported server version.

Written anew with `python -m tests.integration.store.catalog DSN > tests/integration/store/schema.txt`.
"""

from __future__ import annotations

import sys
from typing import Any

import psycopg

SCHEMAS = "('agent_ops', 'process_ops', 'agent_policy', 'casework_auth', 'casework_meta')"
ROLES = "('casework_runtime', 'casework_policy_owner', 'casework_retention')"

LINES = f"""
with relations as (
    select c.oid, n.nspname || '.' || c.relname as name, c.relkind, c.relreplident, c.relacl, c.relname
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in {SCHEMAS} and c.relkind in ('r', 'v')
)
select 'column ' || r.name || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
       || case when a.attnotnull then ' not null' else '' end
       || case a.attidentity when 'a' then ' identity always' when 'd' then ' identity' else '' end
       || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
from relations r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
union all
select 'constraint ' || r.name || ' ' || k.conname || ' ' || pg_get_constraintdef(k.oid)
from relations r join pg_constraint k on k.conrelid = r.oid and k.contype in ('p', 'u', 'f', 'c')
union all
select 'index ' || pg_get_indexdef(i.indexrelid)
from relations r join pg_index i on i.indrelid = r.oid
union all
select 'trigger ' || pg_get_triggerdef(t.oid)
from relations r join pg_trigger t on t.tgrelid = r.oid and not t.tgisinternal
union all
select 'replica identity ' || r.name || ' ' || r.relreplident::text from relations r where r.relkind = 'r'
union all
select 'view ' || r.name || ' ' || coalesce(array_to_string(c.reloptions, ','), '')
from relations r join pg_class c on c.oid = r.oid where r.relkind = 'v'
union all
select 'function ' || p.oid::regprocedure || ' ' || md5(p.prosrc)
from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in {SCHEMAS}
union all
select 'grant ' || g.privilege_type || ' on ' || r.name || ' to ' || g.grantee::regrole
from relations r cross join lateral aclexplode(r.relacl) g
where g.grantee::regrole::text in {ROLES}
union all
select 'grant ' || g.privilege_type || ' on schema ' || n.nspname || ' to ' || g.grantee::regrole
from pg_namespace n cross join lateral aclexplode(n.nspacl) g
where n.nspname in {SCHEMAS} and g.grantee::regrole::text in {ROLES}
order by 1
"""


def schema_lines(conn: psycopg.Connection[Any]) -> list[str]:
    """One line per column, constraint, index, trigger, function, right and replica identity, sorted in Python."""
    return sorted(row[0] for row in conn.execute(LINES.encode()).fetchall())


if __name__ == "__main__":
    with psycopg.connect(sys.argv[1]) as connection:
        sys.stdout.write("\n".join(schema_lines(connection)) + "\n")
