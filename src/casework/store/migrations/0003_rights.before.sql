-- Who may do what, and whole rows in the write-ahead log for the change feed.

grant usage on schema agent_ops, agent_policy, casework_auth to casework_runtime;
-- What a run leaves behind is evidence: the runtime adds to it, moves the rows that have a state, and deletes nothing.
-- Transcript, events, logs, decisions, the policy used and the workflows as applied are written once.
grant select, insert on all tables in schema agent_ops to casework_runtime;
revoke insert on agent_ops.agent_context_latest, agent_ops.agent_tool_calls from casework_runtime;
grant update on
    agent_ops.agent_runs, agent_ops.agent_context, agent_ops.agent_steps, agent_ops.agent_step_attempts,
    agent_ops.agent_run_metrics, agent_ops.agent_turn_metrics, agent_ops.agent_reviews
    to casework_runtime;

-- Retention takes whole runs that have ended, and all that is theirs with them.
grant usage on schema agent_ops to casework_retention;
grant select, delete on agent_ops.agent_runs to casework_retention;

grant select on all tables in schema agent_policy to casework_runtime;
grant select on casework_auth.tokens to casework_runtime;

grant usage on schema agent_policy to casework_policy_owner;
grant select, insert, update, delete on agent_policy.underwriting_policy_limits to casework_policy_owner;
grant select, insert on agent_policy.sync_log to casework_policy_owner;

do $$
declare
    name regclass;
begin
    for name in
        select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in ('agent_ops', 'agent_policy') and c.relkind = 'r'
    loop
        execute format('alter table %s replica identity full', name);
    end loop;
end $$;
