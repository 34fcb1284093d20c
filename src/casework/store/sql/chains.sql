-- The expected case of a link, in one statement: all of it, or nothing where the step that ends is not this attempt's
-- any more. What each part means stands with the queries of the ledger, the roll-ups, the events and the writers.
-- name: link
with run as (
    select status, incident from agent_ops.agent_runs where tenant = %(tenant)s and run_id = %(run_id)s
), done as (
    update agent_ops.agent_steps
    set state = 'COMPLETED', result = %(result)s, error = null, cleaned = cleaned + %(result_cleaned)s,
        updated_at = clock_timestamp(), ended_at = clock_timestamp()
    where tenant = %(tenant)s and step_id = %(done_id)s and attempt = 1 and state = 'STARTED'
    returning step_id
), goes_on as (
    select where %(done_id)s::uuid is null or exists (select from done)
), attempt as (
    update agent_ops.agent_step_attempts
    set outcome = 'COMPLETED', latency_ms = %(latency_ms)s, ended_at = clock_timestamp()
    where tenant = %(tenant)s and step_id = %(done_id)s and attempt = 1 and exists (select from done)
), of_run as (
    insert into agent_ops.agent_run_metrics as m (tenant, run_id, tool_calls, attempts_completed, latency_ms)
    select %(tenant)s, %(run_id)s, 1, 1, %(latency_ms)s from done
    on conflict (tenant, run_id) do update set
        tool_calls = m.tool_calls + 1, attempts_completed = m.attempts_completed + 1,
        latency_ms = m.latency_ms + excluded.latency_ms, updated_at = clock_timestamp()
), of_turn as (
    insert into agent_ops.agent_turn_metrics as m (tenant, run_id, turn, tool_calls, attempts_completed, latency_ms)
    select %(tenant)s, %(run_id)s, %(done_turn)s, 1, 1, %(latency_ms)s from done
    on conflict (tenant, run_id, turn) do update set
        tool_calls = m.tool_calls + 1, attempts_completed = m.attempts_completed + 1,
        latency_ms = m.latency_ms + excluded.latency_ms, updated_at = clock_timestamp()
), output as (
    insert into agent_ops.agent_context as c (tenant, context_id, run_id, path, key, version, value, cleaned, created_at)
    select %(tenant)s, %(context_id)s, %(run_id)s, %(output_path)s, %(output_key)s, %(output_version)s,
           %(output_value)s, %(output_cleaned)s, %(output_at)s
    from goes_on where %(context_id)s::uuid is not null
    on conflict (tenant, context_id) do update
        set version = excluded.version, value = excluded.value, cleaned = excluded.cleaned,
            created_at = excluded.created_at
        where c.version < excluded.version
    returning context_id
), given as (
    select e.*, n.number
    from jsonb_array_elements(%(events)s) with ordinality n (value, number)
    cross join lateral jsonb_to_record(n.value)
        as e (event_id uuid, path text, kind text, data jsonb, cleaned integer, at timestamptz)
), told as (
    insert into agent_ops.agent_events (tenant, event_id, run_id, seq, path, kind, data, cleaned, at)
    select %(tenant)s, event_id, %(run_id)s,
           (select coalesce(max(seq), 0) from agent_ops.agent_events
            where tenant = %(tenant)s and run_id = %(run_id)s) + row_number() over (order by number),
           path, kind, data, cleaned, at
    from given cross join goes_on
    where (select true from agent_ops.agent_events known
           where known.tenant = %(tenant)s and known.event_id = given.event_id) is null
    returning event_id
), moved as (
    update agent_ops.agent_runs r
    set version = %(version)s, status = 'RUNNING', turn = %(turn)s, current_node = %(node)s,
        loop_count = %(loop_count)s, recommendation = %(recommendation)s, incident = null,
        cleaned = cleaned + %(row_cleaned)s, updated_at = %(at)s, started_at = coalesce(started_at, %(at)s)
    from goes_on
    where tenant = %(tenant)s and run_id = %(run_id)s and version < %(version)s
      and status not in ('COMPLETED', 'FAILED', 'CANCELLED')
    returning version
), taken as (
    insert into agent_ops.agent_steps (
        tenant, step_id, run_id, path, kind, name, node, turn, tool_version, arguments, hash, state, attempt, cleaned,
        started_at, updated_at)
    select %(tenant)s, %(next_id)s, %(run_id)s, %(next_path)s, 'tool', %(name)s, %(node)s, %(turn)s, %(tool_version)s,
           %(arguments)s, %(hash)s, 'STARTED', 1, %(arguments_cleaned)s, clock_timestamp(), clock_timestamp()
    from goes_on cross join run
    where %(next_id)s::uuid is not null and run.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
    on conflict (tenant, step_id) do nothing
    returning step_id
), begun as (
    insert into agent_ops.agent_step_attempts (tenant, step_id, attempt, run_id, started_at)
    select %(tenant)s, step_id, 1, %(run_id)s, clock_timestamp() from taken
)
select exists (select from goes_on) as written, exists (select from output) as output, exists (select from moved) as moved,
       exists (select from taken) as claimed, run.status, run.incident,
       case when exists (select from told) then pg_notify('casework_events', %(run_id)s::uuid::text) end as notified
from run

-- Before it, the run's row, as everywhere. It has the plan of the link made once, and not for each link, which takes two
-- thirds as long as the link itself.
-- name: lock
select set_config('plan_cache_mode', 'force_generic_plan', true)
from agent_ops.agent_runs where tenant = %(tenant)s and run_id = %(run_id)s
for no key update
