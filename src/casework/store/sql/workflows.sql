-- One publisher of a name at a time, so that numbers have no holes and no race.
-- name: lock
select pg_advisory_xact_lock(hashtextextended('casework.workflow:' || %(tenant)s || ':' || %(name)s, 0))

-- name: publish
with last as (
    select version, hash from agent_ops.workflow_versions
    where tenant = %(tenant)s and name = %(name)s and session is null
      and version > coalesce((
          select max(version) from agent_ops.workflow_removals where tenant = %(tenant)s and name = %(name)s), 0)
    order by version desc
    limit 1
), made as (
    insert into agent_ops.workflow_versions (tenant, name, version, hash, bundle, cleaned)
    select %(tenant)s, %(name)s, coalesce((
            select max(version) from agent_ops.workflow_versions where tenant = %(tenant)s and name = %(name)s), 0) + 1,
        %(hash)s, %(bundle)s, %(cleaned)s
    where not exists (select from last where hash = %(hash)s)
    returning version
)
select coalesce((select version from made), (select version from last))

-- name: publish_for_session
insert into agent_ops.workflow_versions (tenant, name, version, hash, bundle, session, cleaned)
select %(tenant)s, %(name)s, coalesce(max(version), 0) + 1, %(hash)s, %(bundle)s, %(session)s, %(cleaned)s
from agent_ops.workflow_versions
where tenant = %(tenant)s and name = %(name)s
returning version

-- name: latest
select version, hash, bundle from agent_ops.workflow_versions
where tenant = %(tenant)s and name = %(name)s and session is null
  and version > coalesce((
      select max(version) from agent_ops.workflow_removals where tenant = %(tenant)s and name = %(name)s), 0)
order by version desc
limit 1

-- name: version_of
select max(version) from agent_ops.workflow_versions
where tenant = %(tenant)s and name = %(name)s and hash = %(hash)s

-- name: get
select bundle from agent_ops.workflow_versions
where tenant = %(tenant)s and name = %(name)s and version = %(version)s

-- name: names
select name, max(version) as version from agent_ops.workflow_versions v
where tenant = %(tenant)s and session is null
  and not exists (
      select from agent_ops.workflow_removals r
      where r.tenant = v.tenant and r.name = v.name and r.version >= v.version)
group by name
order by name

-- name: remove
insert into agent_ops.workflow_removals (tenant, name, version, removed_by)
values (%(tenant)s, %(name)s, %(version)s, %(by)s)
on conflict do nothing
