-- A step that only computes is written when it has ended, and needs no claim: one row, one attempt, at once.

-- An attempt that is born with its outcome counts as one that gets it later.
create or replace function agent_ops.roll_up_attempt() returns trigger
    language plpgsql security definer set search_path = pg_catalog as $$
declare
    step record;
    spot integer := agent_ops.roll_up_slot(new.run_id);
begin
    select s.kind, s.name into step from agent_ops.agent_steps s
    where s.tenant = new.tenant and s.step_id = new.step_id;
    if not found then
        return null;
    end if;
    perform agent_ops.lock_roll_ups(new.tenant, spot);
    insert into agent_ops.agent_operation_metrics as m (
        tenant, kind, name, slot, attempts_completed, attempts_failed, attempts_lost, attempts_late, corrected_failed,
        corrected_lost, tokens_in, tokens_out, cost, latency_ms)
    values (
        new.tenant, step.kind, step.name, spot,
        (new.outcome = 'COMPLETED')::integer - coalesce((old.outcome = 'COMPLETED')::integer, 0),
        (new.outcome = 'FAILED')::integer - coalesce((old.outcome = 'FAILED')::integer, 0),
        (new.outcome = 'LOST')::integer - coalesce((old.outcome = 'LOST')::integer, 0),
        (new.outcome = 'LATE')::integer - coalesce((old.outcome = 'LATE')::integer, 0),
        coalesce((old.outcome = 'FAILED' and new.outcome <> 'FAILED')::integer, 0),
        coalesce((old.outcome = 'LOST' and new.outcome <> 'LOST')::integer, 0),
        new.tokens_in - coalesce(old.tokens_in, 0), new.tokens_out - coalesce(old.tokens_out, 0),
        new.cost - coalesce(old.cost, 0),
        coalesce(new.latency_ms, 0) - coalesce(old.latency_ms, 0))
    on conflict (tenant, kind, name, slot) do update set
        attempts_completed = m.attempts_completed + excluded.attempts_completed,
        attempts_failed = m.attempts_failed + excluded.attempts_failed,
        attempts_lost = m.attempts_lost + excluded.attempts_lost,
        attempts_late = m.attempts_late + excluded.attempts_late,
        corrected_failed = m.corrected_failed + excluded.corrected_failed,
        corrected_lost = m.corrected_lost + excluded.corrected_lost,
        tokens_in = m.tokens_in + excluded.tokens_in, tokens_out = m.tokens_out + excluded.tokens_out,
        cost = m.cost + excluded.cost, latency_ms = m.latency_ms + excluded.latency_ms, updated_at = clock_timestamp();
    return null;
end $$;
create constraint trigger agent_step_attempts_roll_up_ended after insert on agent_ops.agent_step_attempts
    deferrable initially deferred for each row when (new.outcome is not null)
    execute function agent_ops.roll_up_attempt();

-- A link of a chain of steps: the end of one, what the run tells of it, and the claim of the next, in one trip to the
-- server. It knows the expected case alone: a first attempt that ends well, and a next step that nobody has touched.
-- Links of workers that know claimed steps only are written as before.
--
-- `link` is one object; what it has not is absent, never null:
--   done    id, latency_ms, turn, cleaned, result    the step that ends COMPLETED; of one that was not claimed also
--           path, name, node, tool_version, arguments, hash
--   output  id, path, key, version, cleaned, at      what it leaves in the context: its result
--   events  [id, path, kind, data, cleaned, at]      in this order
--   run     version, turn, node, loop_count, recommendation, cleaned, at
--   next    id, path, name, turn, node, tool_version, arguments, hash, cleaned
--
-- One row says what was met, none that there is no such run. Nothing is written where it says `odd` or `overtaken`:
--   odd        only if not `whole`: the run's row or the output is newer than the link, or the flag of an incident is up
--   overtaken  the step that ends was claimed anew, or closed; or it was not claimed, and has a row or an ended run
--   written    all, save what the other columns say: `output_written` false where that is newer, `run_moved` false where
--              the run's row is newer or has ended, `claimed` false where the next step has a row, or the run has ended
create or replace function agent_ops.write_link(of_tenant text, of_run uuid, link jsonb, whole boolean)
    returns table (met text, output_written boolean, run_moved boolean, claimed boolean, run_status text, flag jsonb)
    language plpgsql set search_path = pg_catalog set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    done   constant jsonb := link -> 'done';
    output constant jsonb := link -> 'output';
    place  constant jsonb := link -> 'run';
    next   constant jsonb := link -> 'next';
    took   constant bigint := (done ->> 'latency_ms')::bigint;
    moment timestamptz;
    run    record;
    ended  boolean;
begin
    -- First of all, as everywhere: whoever writes of a run holds its row.
    select r.status, r.incident, r.version, r.ctid as spot into run
    from agent_ops.agent_runs r where r.tenant = of_tenant and r.run_id = of_run for no key update;
    if not found then
        return;
    end if;
    ended := run.status in ('COMPLETED', 'FAILED', 'CANCELLED');
    output_written := true;
    run_moved := false;
    claimed := false;
    run_status := run.status;
    flag := run.incident;

    if not whole and (
        run.incident is not null
        or not ended and run.version >= (place ->> 'version')::integer
        or output is not null and exists (
            select from agent_ops.agent_context c
            where c.tenant = of_tenant and c.context_id = (output ->> 'id')::uuid
              and c.version >= (output ->> 'version')::integer)
    ) then
        met := 'odd';
        return next;
        return;
    end if;

    if done is not null then
        moment := clock_timestamp();
        if done ? 'hash' then
            insert into agent_ops.agent_steps (
                tenant, step_id, run_id, path, kind, name, node, turn, tool_version, arguments, hash, state, attempt,
                result, cleaned, started_at, updated_at, ended_at)
            select of_tenant, (done ->> 'id')::uuid, of_run, done ->> 'path', 'tool', done ->> 'name', done ->> 'node',
                   (done ->> 'turn')::integer, done ->> 'tool_version', done -> 'arguments', done ->> 'hash',
                   'COMPLETED', 1, done -> 'result', (done ->> 'cleaned')::integer,
                   moment - took * interval '1 millisecond', moment, moment
            where not ended
            on conflict (tenant, step_id) do nothing;
        else
            -- An upsert, so that the row is found by its key. An update would be planned by what the planner knows of a
            -- new table, and look through all steps in flight. A row that is not there cannot come about: no run has
            -- that id.
            insert into agent_ops.agent_steps as s (
                tenant, step_id, run_id, path, kind, name, state, started_at, updated_at)
            values (
                of_tenant, (done ->> 'id')::uuid, '00000000-0000-0000-0000-000000000000', '', 'tool', '', 'STARTED',
                moment, moment)
            on conflict (tenant, step_id) do update
                set state = 'COMPLETED', result = done -> 'result', error = null,
                    cleaned = s.cleaned + (done ->> 'cleaned')::integer, updated_at = moment, ended_at = moment
                where s.attempt = 1 and s.state = 'STARTED';
        end if;
        if not found then
            met := 'overtaken';
            return next;
            return;
        end if;
        if done ? 'hash' then
            insert into agent_ops.agent_step_attempts (
                tenant, step_id, attempt, run_id, outcome, latency_ms, started_at, ended_at)
            values (
                of_tenant, (done ->> 'id')::uuid, 1, of_run, 'COMPLETED', took,
                moment - took * interval '1 millisecond', moment);
        else
            update agent_ops.agent_step_attempts
            set outcome = 'COMPLETED', latency_ms = took, ended_at = moment
            where tenant = of_tenant and step_id = (done ->> 'id')::uuid and attempt = 1;
        end if;
        insert into agent_ops.agent_run_metrics as m (tenant, run_id, tool_calls, attempts_completed, latency_ms)
        values (of_tenant, of_run, 1, 1, took)
        on conflict (tenant, run_id) do update set
            tool_calls = m.tool_calls + 1, attempts_completed = m.attempts_completed + 1,
            latency_ms = m.latency_ms + excluded.latency_ms, updated_at = moment;
        insert into agent_ops.agent_turn_metrics as m (tenant, run_id, turn, tool_calls, attempts_completed, latency_ms)
        values (of_tenant, of_run, (done ->> 'turn')::integer, 1, 1, took)
        on conflict (tenant, run_id, turn) do update set
            tool_calls = m.tool_calls + 1, attempts_completed = m.attempts_completed + 1,
            latency_ms = m.latency_ms + excluded.latency_ms, updated_at = moment;
    end if;

    if output is not null then
        insert into agent_ops.agent_context as c (
            tenant, context_id, run_id, path, key, version, value, cleaned, created_at)
        values (
            of_tenant, (output ->> 'id')::uuid, of_run, output ->> 'path', output ->> 'key',
            (output ->> 'version')::integer, done -> 'result', (output ->> 'cleaned')::integer,
            (output ->> 'at')::timestamptz)
        on conflict (tenant, context_id) do update
            set version = excluded.version, value = excluded.value, cleaned = excluded.cleaned,
                created_at = excluded.created_at
            where c.version < excluded.version;
        output_written := found;
    end if;

    insert into agent_ops.agent_events (tenant, event_id, run_id, seq, path, kind, data, cleaned, at)
    select of_tenant, e.id, of_run,
           (select coalesce(max(k.seq), 0) from agent_ops.agent_events k
            where k.tenant = of_tenant and k.run_id = of_run) + row_number() over (order by n.number),
           e.path, e.kind, e.data, e.cleaned, e.at
    from jsonb_array_elements(link -> 'events') with ordinality n (value, number)
    cross join lateral jsonb_to_record(n.value)
        as e (id uuid, path text, kind text, data jsonb, cleaned integer, at timestamptz)
    -- One look by its key for each, and no join, for which all events would be read.
    where (select true from agent_ops.agent_events known
           where known.tenant = of_tenant and known.event_id = e.id) is null;
    if found then
        perform pg_notify('casework_events', of_run::text);
    end if;

    if place is not null and not ended then
        update agent_ops.agent_runs
        set version = (place ->> 'version')::integer, status = 'RUNNING', turn = (place ->> 'turn')::integer,
            current_node = place ->> 'node', loop_count = (place ->> 'loop_count')::integer,
            recommendation = place -> 'recommendation', incident = null,
            cleaned = cleaned + (place ->> 'cleaned')::integer, updated_at = (place ->> 'at')::timestamptz,
            started_at = coalesce(started_at, (place ->> 'at')::timestamptz)
        where ctid = run.spot and version < (place ->> 'version')::integer;
        run_moved := found;
    end if;

    if next is not null and not ended then
        insert into agent_ops.agent_steps (
            tenant, step_id, run_id, path, kind, name, node, turn, tool_version, arguments, hash, state, attempt,
            cleaned, started_at, updated_at)
        values (
            of_tenant, (next ->> 'id')::uuid, of_run, next ->> 'path', 'tool', next ->> 'name', next ->> 'node',
            (next ->> 'turn')::integer, next ->> 'tool_version', next -> 'arguments', next ->> 'hash', 'STARTED', 1,
            (next ->> 'cleaned')::integer, clock_timestamp(), clock_timestamp())
        on conflict (tenant, step_id) do nothing;
        claimed := found;
        if claimed then
            insert into agent_ops.agent_step_attempts (tenant, step_id, attempt, run_id, started_at)
            values (of_tenant, (next ->> 'id')::uuid, 1, of_run, clock_timestamp());
        end if;
    end if;

    met := 'written';
    return next;
end $$;
