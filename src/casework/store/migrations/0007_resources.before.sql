-- What people apply: each manifest as an immutable numbered version, and which workflows no new run is started of.

create table agent_ops.resource_versions (
    tenant     text        not null default 'default',
    kind       text        not null check (kind <> '' and length(kind) <= 63),
    name       text        not null check (name <> '' and length(name) <= 253),
    generation integer     not null check (generation > 0),
    hash       text        not null,
    manifest   jsonb,       -- null: deleted in this generation
    applied_by text        not null,
    run_id     uuid,        -- of a WorkflowSession
    cleaned    integer     not null default 0,
    created_at timestamptz not null default now(),
    primary key (tenant, kind, name, generation)
);

create function agent_ops.guard_resource_version() returns trigger language plpgsql as $$
begin
    raise exception 'Generation % of % % was applied and does not change; apply a new one.',
        old.generation, old.kind, old.name
        using errcode = 'check_violation', constraint = 'resource_versions_immutable';
end $$;
create trigger resource_versions_guard before update on agent_ops.resource_versions
    for each row execute function agent_ops.guard_resource_version();

-- A workflow is hidden up to the version that was the newest when it was deleted; one published later shows it again.
create table agent_ops.workflow_removals (
    tenant     text        not null default 'default',
    name       text        not null,
    version    integer     not null,
    removed_by text        not null,
    created_at timestamptz not null default now(),
    primary key (tenant, name, version),
    foreign key (tenant, name, version) references agent_ops.workflow_versions (tenant, name, version)
);

-- A version that was made for one session (with other limits) is pinned by its run and is nobody's newest.
alter table agent_ops.workflow_versions add column session uuid;

alter table agent_ops.resource_versions replica identity full;
alter table agent_ops.workflow_removals replica identity full;
grant select, insert on agent_ops.resource_versions, agent_ops.workflow_removals to casework_runtime;
