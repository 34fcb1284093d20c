-- The logs of a session tell what the run did: its events, beside the few lines that the run writes for its reader.

-- One sequence numbers both, so that an id is there once, and the lines of a run, written under the lock of its row,
-- are in the order of their ids. No index: the view finds its rows by the run. Existing rows get their numbers now.
alter table agent_ops.agent_events
    add column id bigint not null default nextval('agent_ops.agent_logs_id_seq');
grant usage on sequence agent_ops.agent_logs_id_seq to casework_runtime;

create or replace view agent_ops.workflow_session_logs with (security_invoker = true) as
select id, run_id as session_id, nullif(node, '') as node_id, level as log_level, message, created_at
from agent_ops.agent_logs
where tenant = coalesce(nullif(current_setting('casework.tenant', true), ''), 'default')
union all
select e.id,
       e.run_id,
       -- The node is the first part of a path, without the number of the visit.
       coalesce(e.data ->> 'node', nullif(regexp_replace(split_part(e.path, '/', 1), '\.\d+$', ''), '')),
       case
           when k.kind in ('agent.run_failed', 'agent.node_failed', 'agent.branch_failed', 'agent.model_failed',
                           'agent.tool_failed', 'agent.history_limit', 'run_closed_from_outside', 'incident_raised',
                           'conflict')
             or k.kind = 'agent.sub_run_ended' and e.data ->> 'status' = 'FAILED' then 'ERROR'
           when k.kind in ('agent.run_cancelled', 'agent.run_cancel_requested', 'agent.run_cancel_ignored',
                           'agent.run_told_again', 'agent.node_terminated', 'agent.nodes_untold',
                           'agent.store_unavailable', 'agent.payload_unreadable', 'agent.signal_refused',
                           'decision_ignored', 'decision_stale', 'attempt_failed', 'attempt_lost', 'attempt_late',
                           'run_stale', 'context_stale', 'run_restored')
             or k.kind = 'agent.sub_run_ended' and e.data ->> 'status' = 'CANCELLED' then 'WARNING'
           else 'INFO'
       end,
       -- `node failed: error model 'a' gave up`; the node has a column of its own.
       replace(regexp_replace(k.kind, '^agent\.', ''), '_', ' ') || coalesce(': ' || said.words, ''),
       e.at
from agent_ops.agent_events e
cross join lateral (select split_part(e.kind, ':', 1) as kind) k
cross join lateral (
    select string_agg(replace(d.key, '_', ' ') || ' ' || left(d.value, 500), ', ' order by d.place) as words
    from jsonb_each_text(case jsonb_typeof(e.data) when 'object' then e.data else '{}' end)
        with ordinality d (key, value, place)
    where d.value is not null and d.value <> '' and d.key <> 'node'
) said
where e.tenant = coalesce(nullif(current_setting('casework.tenant', true), ''), 'default');
