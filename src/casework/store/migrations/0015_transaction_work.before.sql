-- What each Transaction passes often, as functions: the claim of trays, and the begin and end of a Task. One call is one
-- trip to the server, for one Transaction or for many. They write in the order that holds everywhere: the Transaction's
-- row is locked first, then come its step and the rest. Rows are found by their key or their place, never by an index
-- that a plan made over a new table might prefer.

-- ---------------------------------------------------------------- claims

-- Takes up to `size` waiting Transactions for each of `claims`, by priority, due time and age. A claim that was there
-- before takes nothing new: the caller reads what bears it. `place` is that of the Transaction among all, from 1.
create function process_ops.claim_transactions(
    of_tenant text, of_status text, into_status text, claims uuid[], size integer, of_process text, by_maker text,
    at_time timestamptz)
    returns table (place bigint, item process_ops.transactions)
    language plpgsql set search_path = pg_catalog set plan_cache_mode = force_custom_plan
    -- Whatever the planner knows of the table: along the index of what waits, and to each row by its place.
    set enable_sort = off set enable_bitmapscan = off set enable_seqscan = off
    set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
    -- Two of one claim, of an activity that is repeated while it still runs: the second sees what the first took.
    perform pg_advisory_xact_lock(hashtextextended('casework.claim:' || of_tenant || ':' || claims[1]::text, 0));
    if exists (select from process_ops.transaction_claims c where c.tenant = of_tenant and c.claim_id = any(claims)) then
        return;
    end if;
    return query
    with waiting as (
        select t.ctid as spot from process_ops.transactions t
        where t.tenant = of_tenant and t.status = of_status and t.claim_id is null and t.end_time is null
        order by t.priority desc, t.due_time, t.start_time, t.uuid
        limit size * cardinality(claims)
        for no key update skip locked
    ), placed as (
        select w.spot, row_number() over () as place from waiting w
    ), taken as (
        update process_ops.transactions t
        set status = into_status, claim_id = claims[((p.place - 1) / size + 1)::integer], process = of_process, task = null,
            updated_at = at_time
        from placed p where t.ctid = p.spot
        returning p.place, t as item, t.uuid, t.claim_id
    ), claimed as (
        insert into process_ops.transaction_claims (tenant, claim_id, process, made_by, taken, at)
        select of_tenant, k.claim_id, of_process, by_maker, count(*), at_time from taken k group by k.claim_id
    ), logged as (
        insert into process_ops.transaction_stages (
            tenant, transaction_uuid, before, after, process, made_by, claim_id, at)
        select of_tenant, k.uuid, of_status, into_status, of_process, by_maker, k.claim_id, at_time from taken k
        where of_status <> into_status
    )
    select k.place, k.item from taken k;
end $$;

-- ---------------------------------------------------------------- one Transaction

-- Adds a Transaction, with the row of its birth; false where its id or its natural key is there already.
create function process_ops.add_transaction(of_tenant text, made jsonb, by_maker text, at_time timestamptz)
    returns boolean language plpgsql set search_path = pg_catalog as $$
#variable_conflict use_column
declare
    m record;
begin
    select r.* into m from jsonb_to_record(made) as r (
        uuid uuid, parent_uuid uuid, cloned_from uuid, status text, status_before_error text, claim_id uuid,
        process text, task text, natural_key text, business_key text, priority integer, due_time timestamptz,
        start_time timestamptz, end_time timestamptz, data jsonb, skip_until text, straight_through boolean,
        cleaned integer, stage_process text);
    insert into process_ops.transactions (
        tenant, uuid, parent_uuid, root_uuid, cloned_from, status, status_before_error, claim_id, process, task,
        natural_key, business_key, priority, due_time, start_time, end_time, data, skip_until, straight_through, cleaned,
        updated_at)
    values (
        of_tenant, m.uuid, m.parent_uuid,
        coalesce((select p.root_uuid from process_ops.transactions p
                  where p.tenant = of_tenant and p.uuid = m.parent_uuid), m.parent_uuid, m.uuid),
        m.cloned_from, m.status, m.status_before_error, m.claim_id, m.process, m.task, m.natural_key, m.business_key,
        m.priority, m.due_time, m.start_time, m.end_time, m.data, m.skip_until, m.straight_through, m.cleaned, at_time)
    on conflict do nothing;
    if not found then
        return false;
    end if;
    insert into process_ops.transaction_stages (tenant, transaction_uuid, before, after, process, made_by, claim_id, at)
    values (of_tenant, m.uuid, null, m.status, m.stage_process, by_maker, m.claim_id, at_time);
    return true;
end $$;

-- Writes a Transaction over the one that is expected: its status and claim are those of `before`. False where they are
-- not, or there is none. What `after` has not is absent where it is null, and `data` where it stays.
create function process_ops.write_transaction(
    of_tenant text, of_transaction uuid, before_status text, before_claim uuid, after jsonb, by_maker text,
    at_time timestamptz)
    returns boolean language plpgsql set search_path = pg_catalog set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    spot tid;
    a    record;
begin
    select t.ctid into spot from process_ops.transactions t
    where t.tenant = of_tenant and t.uuid = of_transaction
      and t.status = before_status and t.claim_id is not distinct from before_claim
    for no key update;
    if not found then
        return false;
    end if;
    select r.* into a from jsonb_to_record(after) as r (
        status text, status_before_error text, claim_id uuid, process text, task text, priority integer,
        due_time timestamptz, end_time timestamptz, data jsonb, skip_until text, straight_through boolean,
        by_hand boolean, cleaned integer, stage_process text);
    if a.status <> before_status then
        insert into process_ops.transaction_stages (
            tenant, transaction_uuid, before, after, process, made_by, claim_id, at)
        values (of_tenant, of_transaction, before_status, a.status, a.stage_process, by_maker, before_claim, at_time);
    end if;
    update process_ops.transactions
    set status = a.status, status_before_error = a.status_before_error, claim_id = a.claim_id, process = a.process,
        task = a.task, priority = a.priority, due_time = a.due_time, end_time = a.end_time,
        data = coalesce(a.data, data), skip_until = a.skip_until, straight_through = a.straight_through,
        by_hand = by_hand or a.by_hand, cleaned = cleaned + a.cleaned, updated_at = at_time
    where ctid = spot;
    return true;
end $$;

-- ---------------------------------------------------------------- the ledger of tasks

-- Begins Tasks: `asked` is [step, transaction, status, process, task, path, kind, version, work_attempt]. For each, what
-- was met, the step as it is now, and the Transaction's columns that the caller reads:
--   begun   act, and end it as `attempt`
--   done    it is COMPLETED: `result` is what came of it
--   failed  it FAILED at this attempt of the walk: `result` and `error` are what was told
--   moved   status or claim are not those expected
--   ended   the Transaction is in a terminal status
--   absent  there is none
create function process_ops.begin_tasks(of_tenant text, of_claim uuid, asked jsonb)
    returns table (
        met text, step_id uuid, state text, attempt integer, result jsonb, error text, item process_ops.transactions)
    language plpgsql set search_path = pg_catalog set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    ask   record;
    known record;
begin
    -- In one order, so that no two wait for each other.
    for ask in
        select a.* from jsonb_to_recordset(asked) as a (
            step uuid, transaction uuid, status text, process text, task text, path text, kind text, version text,
            work_attempt integer)
        order by a.transaction
    loop
        step_id := ask.step;
        met := null;
        state := null;
        attempt := null;
        result := null;
        error := null;
        select t.* into item from process_ops.transactions t
        where t.tenant = of_tenant and t.uuid = ask.transaction for no key update;
        if not found then
            met := 'absent';
            return next;
            continue;
        end if;
        if item.status = ask.status and item.claim_id = of_claim and item.end_time is null then
            insert into process_ops.transaction_steps as s (
                tenant, step_id, transaction_uuid, claim_id, process, task, path, kind, task_version, state, attempt,
                work_attempt, begun_by, started_at, updated_at)
            values (
                of_tenant, ask.step, ask.transaction, of_claim, ask.process, ask.task, ask.path, ask.kind, ask.version,
                'STARTED', 1, ask.work_attempt, pg_current_xact_id(),
                clock_timestamp(), clock_timestamp())
            on conflict (tenant, step_id) do update
                set state = 'STARTED', attempt = s.attempt + 1, work_attempt = excluded.work_attempt, ended_at = null,
                    task_version = excluded.task_version, begun_by = excluded.begun_by,
                    error = null, result = null, updated_at = clock_timestamp()
                where s.state = 'STARTED' or s.state = 'FAILED' and s.work_attempt < excluded.work_attempt
            returning s.state, s.attempt into state, attempt;
            if found then
                met := 'begun';
                return next;
                continue;
            end if;
        end if;
        select s.state, s.attempt, s.work_attempt, s.result, s.error into known
        from process_ops.transaction_steps s where s.tenant = of_tenant and s.step_id = ask.step;
        met := case when item.end_time is null then 'moved' else 'ended' end;
        if found then
            state := known.state;
            attempt := known.attempt;
            result := known.result;
            error := known.error;
            if known.state = 'COMPLETED' then
                met := 'done';
            elsif known.state = 'FAILED' and known.work_attempt >= ask.work_attempt then
                met := 'failed';
            end if;
        end if;
        return next;
    end loop;
end $$;

-- Ends Tasks that were begun: `ends` is [step, attempt, state, result, error, cleaned, transaction, before, claim, after,
-- maker, at, children, failure, arrived], of which `children`, `failure` (the row of an error) and `arrived` (the parent at
-- whose join it has come) may be absent. For each, what was met:
--   written    all of it
--   overtaken  the step was begun anew, or has ended: nothing is written
--   moved      status or claim of the Transaction are not those of `before`: nothing is written
-- Where it is `whole`, all of it is written, in the database transaction in which the Tasks were begun, or an error is
-- raised.
create function process_ops.end_tasks(of_tenant text, ends jsonb, whole boolean)
    returns table (step_id uuid, met text)
    language plpgsql set search_path = pg_catalog set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    e     record;
    known record;
    child jsonb;
begin
    for e in
        select n.* from jsonb_to_recordset(ends) as n (
            step uuid, attempt integer, state text, result jsonb, error text, cleaned integer, transaction uuid,
            before text, claim uuid, after jsonb, maker text, at timestamptz, children jsonb, failure jsonb, arrived uuid)
        order by n.transaction
    loop
        step_id := e.step;
        met := 'written';
        -- Its lock is the Transaction's, which whoever writes a step holds.
        perform from process_ops.transactions t
        where t.tenant = of_tenant and t.uuid = e.transaction for no key update;
        select s.ctid as spot, s.state, s.attempt, s.begun_by, s.task into known
        from process_ops.transaction_steps s where s.tenant = of_tenant and s.step_id = e.step;
        if not found or known.state <> 'STARTED' or known.attempt <> e.attempt then
            met := 'overtaken';
        elsif whole and known.begun_by <> pg_current_xact_id() then
            raise exception 'The database transaction in which step % was begun was ended by its task.', e.step
                using errcode = 'invalid_transaction_termination';
        elsif not process_ops.write_transaction(
                of_tenant, e.transaction, e.before, e.claim, e.after, e.maker, e.at) then
            met := 'moved';
        end if;
        if met <> 'written' then
            if whole then
                raise exception 'Attempt % of step % was %: it is no longer the current one.', e.attempt, e.step, met
                    using errcode = 'serialization_failure';
            end if;
            return next;
            continue;
        end if;
        update process_ops.transaction_steps
        set state = e.state, result = e.result, error = e.error, cleaned = cleaned + e.cleaned,
            updated_at = clock_timestamp(), ended_at = clock_timestamp()
        where ctid = known.spot;
        for child in select c.value from jsonb_array_elements(e.children) with ordinality c (value, place)
                     order by c.place loop
            perform process_ops.add_transaction(of_tenant, child, e.maker, e.at);
        end loop;
        if e.failure is not null then
            perform process_ops.add_error(of_tenant, e.failure);
        end if;
        if e.arrived is not null then
            insert into process_ops.transaction_arrivals (tenant, parent_uuid, transaction_uuid, task, at)
            values (of_tenant, e.arrived, e.transaction, known.task, e.at) on conflict do nothing;
        end if;
        return next;
    end loop;
end $$;

-- The row of an error; one that is there already stays.
create function process_ops.add_error(of_tenant text, failure jsonb) returns boolean
    language plpgsql set search_path = pg_catalog set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    insert into process_ops.transaction_errors (
        tenant, uuid, transaction_uuid, root_uuid, type, code, severity, short_text, full_text, process, task, attempt,
        started_at, failed_at, cleaned)
    select of_tenant, f.uuid, f.transaction, f.root, f.type, f.code, f.severity, f.short, f."full", f.process, f.task,
           f.attempt, f.started, f.failed, f.cleaned
    from jsonb_to_record(failure) as f (
        uuid uuid, transaction uuid, root uuid, type text, code text, severity text, short text, "full" text,
        process text, task text, attempt integer, started timestamptz, failed timestamptz, cleaned integer)
    on conflict do nothing;
    return found;
end $$;
