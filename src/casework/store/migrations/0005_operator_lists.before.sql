-- What an operator asks for first: tools that failed for good, runs that ended so, and runs that an incident holds. All
-- are few.

create index agent_steps_failed on agent_ops.agent_steps (tenant, ended_at desc, step_id desc) where state = 'FAILED';
create index agent_runs_incidents on agent_ops.agent_runs (created_at, run_id) where incident is not null;
create index agent_runs_failed on agent_ops.agent_runs (ended_at) where status = 'FAILED';
