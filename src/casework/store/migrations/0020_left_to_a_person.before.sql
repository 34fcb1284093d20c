-- A Transaction that the Error process fails again and again is left to a person; and a project's entities are held
-- against an end that is under way.

-- How often an Error process has claimed a Transaction since it last was in no error.
create function process_ops.error_claims(of_tenant text, of_transaction uuid) returns bigint
    language sql stable set search_path = pg_catalog as $$
    select count(*) from process_ops.transaction_stages s
    where s.tenant = of_tenant and s.transaction_uuid = of_transaction
      and s.before = 'HAS_ERROR' and s.after = 'ERROR_IN_PROGRESS'
      and s.id > (select max(l.id) from process_ops.transaction_stages l
                  where l.tenant = of_tenant and l.transaction_uuid = of_transaction
                    and l.after not in ('HAS_ERROR', 'ERROR_IN_PROGRESS'))
$$;

-- The last of these claims that fails too says that there is no further one.
create function process_ops.leave_to_a_person() returns trigger language plpgsql set search_path = pg_catalog as $$
declare
    claims constant bigint := process_ops.error_claims(new.tenant, new.transaction_uuid);
begin
    if claims >= 5 then
        insert into process_ops.transaction_errors (
            tenant, uuid, transaction_uuid, root_uuid, type, code, severity, short_text, full_text, process, task,
            attempt, started_at, failed_at)
        select t.tenant, gen_random_uuid(), t.uuid, t.root_uuid, 'APPLICATION', 'LEFT_TO_A_PERSON', 'ERROR', w.words,
               w.words || ' Mend what fails there, and answer for the Transaction: abort it, or clone it.',
               new.process, coalesce(t.task, new.made_by), claims, new.at, new.at + interval '1 microsecond'
        from process_ops.transactions t,
             (select format('Process %s has failed it %s times and does not take it any more.', new.process, claims)
              as words) w
        where t.tenant = new.tenant and t.uuid = new.transaction_uuid;
    end if;
    return null;
end $$;
create trigger transaction_stages_left_to_a_person after insert on process_ops.transaction_stages
    for each row when (new.before = 'ERROR_IN_PROGRESS' and new.after = 'HAS_ERROR')
    execute function process_ops.leave_to_a_person();

-- As before, and without those that are left to a person.
create or replace function process_ops.claim_transactions(
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
          and (of_status <> 'HAS_ERROR' or process_ops.error_claims(of_tenant, t.uuid) < 5)
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

-- The same.
create or replace function process_ops.claim_by_key(
    of_tenant text, of_status text, into_status text, claims uuid[], size integer, per_key integer, of_process text,
    by_maker text, at_time timestamptz)
    returns table (place bigint, item process_ops.transactions)
    language plpgsql set search_path = pg_catalog set plan_cache_mode = force_custom_plan
    set enable_sort = off set enable_bitmapscan = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    wanted constant integer := size * cardinality(claims);
    full_keys       text[];
    candidate       record;
begin
    perform pg_advisory_xact_lock(hashtextextended('casework.claim:' || of_tenant || ':' || claims[1]::text, 0));
    if exists (select from process_ops.transaction_claims c where c.tenant = of_tenant and c.claim_id = any(claims)) then
        return;
    end if;
    full_keys := array(
        select t.business_key from process_ops.transactions t
        where t.tenant = of_tenant and t.process = of_process
          and t.business_key is not null and t.claim_id is not null and t.end_time is null
        group by t.business_key having count(*) >= per_key);
    place := 0;
    for candidate in
        select t.ctid as spot, t.business_key from process_ops.transactions t
        where t.tenant = of_tenant and t.status = of_status and t.claim_id is null and t.end_time is null
          and (of_status <> 'HAS_ERROR' or process_ops.error_claims(of_tenant, t.uuid) < 5)
          and (t.business_key is null or t.business_key <> all (full_keys))
        order by t.priority desc, t.due_time, t.start_time, t.uuid
        limit wanted * 10
        for no key update skip locked
    loop
        if candidate.business_key is not null then
            continue when candidate.business_key = any (full_keys);
            insert into process_ops.business_keys values (of_tenant, of_process, candidate.business_key)
            on conflict do nothing;
            perform from process_ops.business_keys k
            where k.tenant = of_tenant and k.process = of_process and k.business_key = candidate.business_key
            for no key update skip locked;
            if not found or per_key <= (
                    select count(*) from process_ops.transactions t
                    where t.tenant = of_tenant and t.process = of_process and t.business_key = candidate.business_key
                      and t.business_key is not null and t.claim_id is not null and t.end_time is null) then
                full_keys := full_keys || candidate.business_key;
                continue;
            end if;
        end if;
        place := place + 1;
        update process_ops.transactions t
        set status = into_status, claim_id = claims[((place - 1) / size + 1)::integer], process = of_process,
            task = null, updated_at = at_time
        where t.ctid = candidate.spot
        returning t.* into item;
        if of_status <> into_status then
            insert into process_ops.transaction_stages (
                tenant, transaction_uuid, before, after, process, made_by, claim_id, at)
            values (of_tenant, item.uuid, of_status, into_status, of_process, by_maker, item.claim_id, at_time);
        end if;
        return next;
        exit when place = wanted;
    end loop;
    insert into process_ops.transaction_claims (tenant, claim_id, process, made_by, taken, at)
    select of_tenant, c.claim_id, of_process, by_maker, least(size, place - (c.number - 1) * size), at_time
    from unnest(claims) with ordinality c (claim_id, number)
    where place > (c.number - 1) * size;
end $$;

-- As before; whoever writes an entity waits for the end of its Transaction that is under way, and an end for the writer.
create or replace function process_ops.guard_entity() returns trigger
    language plpgsql security definer set search_path = pg_catalog as $$
declare
    held  jsonb;
    ended text;
begin
    foreach held in array array[to_jsonb(old), to_jsonb(new)] loop
        perform from process_ops.transactions t
        where t.tenant = coalesce(held ->> 'tenant', 'default') and t.uuid = (held ->> tg_argv[0])::uuid
        for share;
        ended := process_ops.ended_status(coalesce(held ->> 'tenant', 'default'), (held ->> tg_argv[0])::uuid);
        if ended is not null then
            raise exception 'Transaction % is % and stays as it is, with its rows in %; make a new Transaction.',
                held ->> tg_argv[0], ended, tg_relid::regclass
                using errcode = 'check_violation', constraint = 'transactions_terminal_stays';
        end if;
    end loop;
    if tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end $$;
