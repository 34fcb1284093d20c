-- Runs, seen as sessions: views for readers of SQL over the one truth, with columns that do not change.
-- A session is a run. The views have no tenant among their columns, so each shows one tenant's rows only: the one that
-- `set casework.tenant = '...'` names, else `default`. They are read only, and go by the reader's own rights.

create view agent_ops.workflow_sessions with (security_invoker = true) as
select r.run_id as session_id,
       r.workflow_name,
       case
           when r.status = 'AWAITING_REVIEW' then 'WAITING_APPROVAL'
           -- The decision that ended the run was a person's no.
           when r.status = 'COMPLETED' and exists (
               select from agent_ops.agent_review_decisions d
               where d.tenant = r.tenant and d.run_id = r.run_id
                 and d.accepted and d.command = 'reject' and d.outcome = r.outcome
           ) then 'REJECTED'
           else r.status
       end as status,
       r.current_node as current_node_id,
       r.loop_count,
       coalesce((
           select jsonb_object_agg(c.key, c.value)
           from agent_ops.agent_context_latest c
           where c.tenant = r.tenant and c.run_id = r.run_id
       ), '{}') as context_data,
       r.created_at,
       r.updated_at
from agent_ops.agent_runs r
where r.tenant = coalesce(nullif(current_setting('casework.tenant', true), ''), 'default');

-- A note stands where a failed step left no message; it is nobody's memory.
create view agent_ops.session_short_memory with (security_invoker = true) as
select id, run_id as session_id, agent as agent_name, role, content, created_at
from agent_ops.agent_messages
where role <> 'note' and tenant = coalesce(nullif(current_setting('casework.tenant', true), ''), 'default');

create view agent_ops.workflow_session_logs with (security_invoker = true) as
select id, run_id as session_id, nullif(node, '') as node_id, level as log_level, message, created_at
from agent_ops.agent_logs
where tenant = coalesce(nullif(current_setting('casework.tenant', true), ''), 'default');

grant select on agent_ops.workflow_sessions, agent_ops.session_short_memory, agent_ops.workflow_session_logs
    to casework_runtime;
