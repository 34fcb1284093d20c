-- A run that a SUBWORKFLOW node of another run has started: that run, and the path of the node in it.

alter table agent_ops.agent_runs
    add column parent_run_id uuid,
    add column parent_path   text,
    add constraint agent_runs_parent_has_path check ((parent_run_id is null) = (parent_path is null));
create index agent_runs_by_parent on agent_ops.agent_runs (tenant, parent_run_id) where parent_run_id is not null;
