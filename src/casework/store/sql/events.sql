-- The run's row lock makes max(seq) + 1 exact; a repeat takes no number, because `seq` is not drawn from a sequence.
-- name: add
with made as (
    insert into agent_ops.agent_events (tenant, event_id, run_id, seq, path, kind, data, cleaned, at)
    values (
        %(tenant)s, %(event_id)s, %(run_id)s,
        (select coalesce(max(seq), 0) + 1 from agent_ops.agent_events
         where tenant = %(tenant)s and run_id = %(run_id)s),
        %(path)s, %(kind)s, %(data)s, %(cleaned)s, coalesce(%(at)s, clock_timestamp()))
    on conflict (tenant, event_id) do nothing
    returning run_id
)
select pg_notify('casework_events', run_id::text) from made
