-- Who may do what, and whole rows in the write-ahead log for the change feed.

grant usage on schema agent_ops, agent_policy, casework_auth to casework_runtime;
grant select, insert, update, delete on all tables in schema agent_ops to casework_runtime;
revoke insert, update, delete on agent_ops.agent_context_latest, agent_ops.agent_tool_calls from casework_runtime;
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
