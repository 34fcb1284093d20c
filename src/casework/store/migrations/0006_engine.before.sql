-- Which engine the runs of this database are in, and in which task queue a run is started.

-- Null in rows that are older than this column: any queue's sweep starts those.
alter table agent_ops.agent_runs add column task_queue text;

-- One row. The runtime writes the first and may not change it: a deliberate move to another engine is the owner's.
create table casework_meta.engine (
    only_row     boolean     primary key default true check (only_row),
    namespace_id text        not null check (namespace_id <> ''),
    namespace    text        not null,
    address      text        not null,
    cluster_id   text        not null,
    kept_at      timestamptz not null default clock_timestamp(),
    accepted_at  timestamptz
);
grant select, insert (namespace_id, namespace, address, cluster_id) on casework_meta.engine to casework_runtime;
