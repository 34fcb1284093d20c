-- Analytics of Transactions, and claims that keep to a limit for each business key.

-- ---------------------------------------------------------------- analytics

-- One row for each Transaction that was COMPLETED, written in the database transaction that does it, whoever that is.
-- `stage_times` are the seconds that it was in each status, `cost` what its runs have cost.
create table process_ops.transaction_analytics (
    tenant           text        not null default 'default',
    transaction_uuid uuid        not null,
    root_uuid        uuid        not null,
    process          text,
    start_time       timestamptz not null,
    end_time         timestamptz not null,
    seconds          numeric     not null,
    stage_times      jsonb       not null,
    straight_through boolean     not null,
    by_hand          boolean     not null,
    errors           bigint      not null,
    cost             numeric     not null,
    primary key (tenant, transaction_uuid),
    foreign key (tenant, transaction_uuid) references process_ops.transactions on delete cascade
);
create index transaction_analytics_by_end on process_ops.transaction_analytics (tenant, end_time);

-- In its owner's right: the runtime reads this table alone, so nothing else gets in.
create function process_ops.analyse() returns trigger
    language plpgsql security definer set search_path = pg_catalog as $$
begin
    insert into process_ops.transaction_analytics (
        tenant, transaction_uuid, root_uuid, process, start_time, end_time, seconds, stage_times, straight_through,
        by_hand, errors, cost)
    values (
        new.tenant, new.uuid, new.root_uuid, new.process, new.start_time, new.end_time,
        extract(epoch from new.end_time - new.start_time),
        coalesce((
            select jsonb_object_agg(t.status, t.seconds)
            from (select s.after as status, sum(extract(epoch from s.until - s.at)) as seconds
                  from (select g.after, g.at, lead(g.at, 1, new.end_time) over (order by g.id) as until
                        from process_ops.transaction_stages g
                        where g.tenant = new.tenant and g.transaction_uuid = new.uuid and g.after <> 'COMPLETED') s
                  group by s.after) t), '{}'),
        new.straight_through, new.by_hand,
        (select count(*) from process_ops.transaction_errors f
         where f.tenant = new.tenant and f.transaction_uuid = new.uuid),
        coalesce((
            select sum(r.cost) from process_ops.transaction_runs l
            join agent_ops.agent_runs r on r.tenant = l.tenant and r.run_id = l.run_id
            where l.tenant = new.tenant and l.transaction_uuid = new.uuid), 0));
    return null;
end $$;
create trigger transactions_analyse_new after insert on process_ops.transactions
    for each row when (new.status = 'COMPLETED') execute function process_ops.analyse();
create trigger transactions_analyse after update on process_ops.transactions
    for each row when (new.status = 'COMPLETED' and old.status <> 'COMPLETED') execute function process_ops.analyse();
create trigger transaction_analytics_guard before update or delete on process_ops.transaction_analytics
    for each row execute function process_ops.guard_related();
alter table process_ops.transaction_analytics replica identity full;
grant select on process_ops.transaction_analytics to casework_runtime;

-- ---------------------------------------------------------------- limits by business key

-- The rows that claims lock: of two claims that want Transactions of one key, one counts and takes, the other passes on.
create table process_ops.business_keys (
    tenant       text not null default 'default',
    process      text not null,
    business_key text not null,
    primary key (tenant, process, business_key)
);
alter table process_ops.business_keys replica identity full;
grant select, insert on process_ops.business_keys to casework_runtime;
-- To lock a row takes the right to update one of its columns.
grant update (business_key) on process_ops.business_keys to casework_runtime;

create index transactions_by_key on process_ops.transactions (tenant, process, business_key)
    where business_key is not null and claim_id is not null and end_time is null;

-- As `claim_transactions`, with no more than `per_key` open Transactions of one business key in trays of the process.
-- Those that have none are not limited.
create function process_ops.claim_by_key(
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
