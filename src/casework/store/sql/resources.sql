-- One applier of a tenant at a time: what is applied is admitted together with all that is there.
-- name: lock
select pg_advisory_xact_lock(hashtextextended('casework.resources:' || %(tenant)s, 0))

-- name: add
insert into agent_ops.resource_versions (tenant, kind, name, generation, hash, manifest, applied_by, run_id, cleaned)
select %(tenant)s, %(kind)s, %(name)s, coalesce(max(generation), 0) + 1, %(hash)s, %(manifest)s, %(by)s, %(run_id)s,
       %(cleaned)s
from agent_ops.resource_versions
where tenant = %(tenant)s and kind = %(kind)s and name = %(name)s
returning kind, name, generation, hash, manifest, applied_by, run_id, created_at

-- name: generations
select kind, name, generation, hash, manifest, applied_by, run_id, created_at
from agent_ops.resource_versions
where tenant = %(tenant)s and kind = %(kind)s and name = %(name)s
order by generation desc
limit %(limit)s

-- Of each resource its newest generation, unless that says that it is deleted.
-- name: page
select kind, name, generation, hash, manifest, applied_by, run_id, created_at
from agent_ops.resource_versions v
where tenant = %(tenant)s
  and (%(kind)s::text is null or kind = %(kind)s)
  and (%(definitions)s::boolean is false or kind <> 'WorkflowSession')
  and (kind, name) > (%(after_kind)s, %(after_name)s)
  and manifest is not null
  and not exists (
      select from agent_ops.resource_versions n
      where n.tenant = v.tenant and n.kind = v.kind and n.name = v.name and n.generation > v.generation)
order by kind, name
limit %(limit)s
