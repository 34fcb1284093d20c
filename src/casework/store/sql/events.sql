-- The run's row lock makes max(seq) + 1 exact; a repeat takes no number, because nothing is drawn from a sequence.
-- name: add_many
with given as (
    select e.*, n.number
    from jsonb_array_elements(%(events)s::jsonb) with ordinality n (value, number)
    cross join lateral jsonb_to_record(n.value)
        as e (event_id uuid, path text, kind text, data jsonb, cleaned integer, at timestamptz)
), made as (
    insert into agent_ops.agent_events (tenant, event_id, run_id, seq, path, kind, data, cleaned, at)
    select %(tenant)s, event_id, %(run_id)s,
           (select coalesce(max(seq), 0) from agent_ops.agent_events
            where tenant = %(tenant)s and run_id = %(run_id)s) + row_number() over (order by number),
           path, kind, data, cleaned, coalesce(at, clock_timestamp())
    from given
    where not exists (
        select from agent_ops.agent_events known
        where known.tenant = %(tenant)s and known.event_id = given.event_id)
    returning run_id
)
select pg_notify('casework_events', %(run_id)s::uuid::text) where exists (select from made)

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
