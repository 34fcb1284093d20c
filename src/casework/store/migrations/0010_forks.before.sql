-- A run that was forked from another: which run, from which step, what it begins with, and which rows it took over.

-- Without a foreign key: where a fork came from stays told when the other run is deleted.
alter table agent_ops.agent_runs
    add column forked_from_run_id uuid,
    add column forked_from_path   text,
    add constraint agent_runs_fork_has_path check ((forked_from_run_id is null) = (forked_from_path is null));
create index agent_runs_by_fork on agent_ops.agent_runs (tenant, forked_from_run_id) where forked_from_run_id is not null;

-- What a fork is started with, beside its row: whoever starts it, now or later, starts the same.
create table agent_ops.agent_fork_seeds (
    tenant     text        not null default 'default',
    run_id     uuid        not null,
    seed       jsonb       not null,
    cleaned    integer     not null default 0,
    created_at timestamptz not null default now(),
    primary key (tenant, run_id),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);

-- Rows that a fork took over name the run in which they came about. Such a step was done there: here it has no attempt,
-- so that nothing is counted twice, and it is never open.
alter table agent_ops.agent_steps
    add column taken_from uuid,
    add constraint agent_steps_taken_when_ended check (taken_from is null or state <> 'STARTED');
alter table agent_ops.agent_messages add column taken_from uuid;
alter table agent_ops.agent_context add column taken_from uuid;

alter table agent_ops.agent_fork_seeds replica identity full;
grant select, insert on agent_ops.agent_fork_seeds to casework_runtime;
