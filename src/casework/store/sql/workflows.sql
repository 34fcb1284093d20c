-- One publisher of a name at a time, so that numbers have no holes and no race.
-- name: lock
select pg_advisory_xact_lock(hashtextextended('casework.workflow:' || %(tenant)s || ':' || %(name)s, 0))

-- name: publish
with last as (
    select version, hash from agent_ops.workflow_versions
    where tenant = %(tenant)s and name = %(name)s
    order by version desc
    limit 1
), made as (
    insert into agent_ops.workflow_versions (tenant, name, version, hash, bundle, cleaned)
    select %(tenant)s, %(name)s, coalesce((select version from last), 0) + 1, %(hash)s, %(bundle)s, %(cleaned)s
    where not exists (select from last where hash = %(hash)s)
    returning version
)
select coalesce((select version from made), (select version from last))

-- name: latest
select version, bundle from agent_ops.workflow_versions
where tenant = %(tenant)s and name = %(name)s
order by version desc
limit 1

-- name: get
select bundle from agent_ops.workflow_versions
where tenant = %(tenant)s and name = %(name)s and version = %(version)s

-- name: names
select name, max(version) as version from agent_ops.workflow_versions
where tenant = %(tenant)s
group by name
order by name
