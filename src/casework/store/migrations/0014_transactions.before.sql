-- Transactions and what is done with them (process_ops). Every key starts with the tenant; what belongs to a Transaction
-- goes when it goes; `cleaned` counts the characters and numbers that PostgreSQL could not hold.

create schema process_ops;

-- ---------------------------------------------------------------- Transactions

-- `id` is the order in which they came to be: children of one split have it in the order of the split.
create table process_ops.transactions (
    tenant              text        not null default 'default' check (tenant <> '' and length(tenant) <= 100),
    uuid                uuid        not null,
    id                  bigint      not null generated always as identity,
    parent_uuid         uuid,
    root_uuid           uuid        not null,
    cloned_from         uuid,
    status              text        not null check (status ~ '^[A-Z][A-Z0-9_]{0,62}$'),
    status_before_error text,
    claim_id            uuid,
    process             text,
    task                text,
    natural_key         text        check (natural_key <> '' and length(natural_key) <= 500),
    business_key        text        check (business_key <> '' and length(business_key) <= 500),
    priority            integer     not null default 0,
    due_time            timestamptz,
    start_time          timestamptz not null,
    end_time            timestamptz,
    data                jsonb       not null default '{}' check (jsonb_typeof(data) = 'object'),
    skip_until          text,
    straight_through    boolean     not null default true,
    by_hand             boolean     not null default false,
    cleaned             integer     not null default 0,
    updated_at          timestamptz not null,
    ended_by            xid8,
    primary key (tenant, uuid),
    constraint transactions_ended_when_terminal check (end_time is not null or status not in ('COMPLETED', 'ABORTED')),
    constraint transactions_open_in_error check (end_time is null or status not in ('HAS_ERROR', 'ERROR_IN_PROGRESS'))
) with (fillfactor = 85);
create unique index transactions_one_per_natural_key on process_ops.transactions (tenant, natural_key)
    where natural_key is not null;
-- What waits for a claim, in the order of claims.
create index transactions_waiting on process_ops.transactions
    (tenant, status, priority desc, due_time, start_time, uuid) where claim_id is null and end_time is null;
create index transactions_by_claim on process_ops.transactions (tenant, claim_id, process) where claim_id is not null;
create index transactions_by_parent on process_ops.transactions (tenant, parent_uuid, id) where parent_uuid is not null;
create index transactions_by_root on process_ops.transactions (tenant, root_uuid, id) where parent_uuid is not null;
create index transactions_by_clone on process_ops.transactions (tenant, cloned_from) where cloned_from is not null;
-- For lists, which say `id > 0`. All have it; but who looks for a row by its key is kept off these two, which a plan that
-- is made over a new table would take for as good as the key, and look through all rows.
create index transactions_newest on process_ops.transactions (tenant, start_time desc, uuid desc) where id > 0;
create index transactions_by_status on process_ops.transactions (tenant, status, start_time desc, uuid desc)
    where id > 0;

-- Which claims there were: one that is repeated takes nothing new, even when all that it took is through.
create table process_ops.transaction_claims (
    tenant   text        not null default 'default',
    claim_id uuid        not null,
    process  text        not null,
    made_by  text        not null,
    taken    integer     not null check (taken > 0),
    at       timestamptz not null,
    primary key (tenant, claim_id)
);

-- ---------------------------------------------------------------- what belongs to a Transaction

-- One row for each status that it took; `before` is null at its birth.
create table process_ops.transaction_stages (
    tenant           text        not null default 'default',
    id               bigint      not null generated always as identity,
    transaction_uuid uuid        not null,
    before           text,
    after            text        not null,
    process          text        not null,
    made_by          text        not null,
    claim_id         uuid,
    at               timestamptz not null,
    primary key (tenant, transaction_uuid, id),
    foreign key (tenant, transaction_uuid) references process_ops.transactions on delete cascade
);

-- The ledger of tasks. `attempt` is the fence; `work_attempt` says which attempt of the tray's walk it was begun for, and
-- `begun_by` in which database transaction.
create table process_ops.transaction_steps (
    tenant           text        not null default 'default',
    step_id          uuid        not null,
    transaction_uuid uuid        not null,
    claim_id         uuid        not null,
    process          text        not null,
    task             text        not null,
    path             text        not null,
    kind             text        not null,
    task_version     text        not null,
    state            text        not null check (state in ('STARTED', 'COMPLETED', 'FAILED')),
    attempt          integer     not null check (attempt > 0),
    work_attempt     integer     not null check (work_attempt > 0),
    begun_by         xid8        not null,
    result           jsonb,
    error            text,
    cleaned          integer     not null default 0,
    started_at       timestamptz not null,
    updated_at       timestamptz not null,
    ended_at         timestamptz,
    primary key (tenant, step_id),
    constraint transaction_steps_ended_when_terminal check ((ended_at is null) = (state = 'STARTED')),
    foreign key (tenant, transaction_uuid) references process_ops.transactions on delete cascade
) with (fillfactor = 70);
-- Not the tenant first: a plan that is made over a new table would look for a step here, among all.
create index transaction_steps_by_transaction on process_ops.transaction_steps (transaction_uuid, tenant);

create table process_ops.transaction_errors (
    tenant           text        not null default 'default',
    uuid             uuid        not null,
    transaction_uuid uuid        not null,
    root_uuid        uuid        not null,
    type             text        not null check (type in ('BUSINESS', 'APPLICATION')),
    code             text        not null,
    severity         text        not null check (severity in ('WARNING', 'ERROR', 'CRITICAL')),
    short_text       text        not null,
    full_text        text        not null,
    process          text        not null,
    task             text        not null,
    attempt          integer     not null check (attempt > 0),
    started_at       timestamptz not null,
    failed_at        timestamptz not null,
    cleaned          integer     not null default 0,
    primary key (tenant, uuid),
    foreign key (tenant, transaction_uuid) references process_ops.transactions on delete cascade
);
create index transaction_errors_by_transaction on process_ops.transaction_errors
    (tenant, transaction_uuid, failed_at, uuid);
create index transaction_errors_newest on process_ops.transaction_errors (tenant, failed_at desc, uuid desc);

-- Children that have come to a join.
create table process_ops.transaction_arrivals (
    tenant           text        not null default 'default',
    parent_uuid      uuid        not null,
    transaction_uuid uuid        not null,
    task             text        not null,
    at               timestamptz not null,
    primary key (tenant, transaction_uuid),
    foreign key (tenant, transaction_uuid) references process_ops.transactions on delete cascade
);
create index transaction_arrivals_by_parent on process_ops.transaction_arrivals (tenant, parent_uuid);

-- Runs that an agent or manual task started. A run has a row of its own, which may be deleted before this one.
create table process_ops.transaction_runs (
    tenant           text        not null default 'default',
    transaction_uuid uuid        not null,
    run_id           uuid        not null,
    step_id          uuid        not null,
    task             text        not null,
    at               timestamptz not null,
    primary key (tenant, transaction_uuid, run_id),
    foreign key (tenant, transaction_uuid) references process_ops.transactions on delete cascade
);
create index transaction_runs_by_run on process_ops.transaction_runs (tenant, run_id);

-- ---------------------------------------------------------------- what no writer may do

-- Which database transaction ended it: what else that one writes of it still counts, in any order.
create function process_ops.mark_end() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    new.ended_by := coalesce(new.ended_by, pg_current_xact_id());
    return new;
end $$;
create trigger transactions_mark_end before insert or update on process_ops.transactions
    for each row when (new.end_time is not null) execute function process_ops.mark_end();

-- A Transaction in a terminal status stays as it is; only the role for erasure may touch it. An open one is deleted by
-- nobody.
create function process_ops.guard_transaction() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    if tg_op = 'DELETE' and old.end_time is null then
        raise exception 'Transaction % is % and is not deleted before it has ended; abort it first.',
            old.uuid, old.status
            using errcode = 'check_violation', constraint = 'transactions_deleted_when_ended';
    end if;
    if current_user <> 'casework_retention' then
        raise exception 'Transaction % is % and stays as it is; make a new Transaction.', old.uuid, old.status
            using errcode = 'check_violation', constraint = 'transactions_terminal_stays';
    end if;
    if tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end $$;
create trigger transactions_guard before update on process_ops.transactions
    for each row when (old.end_time is not null) execute function process_ops.guard_transaction();
create trigger transactions_guard_delete before delete on process_ops.transactions
    for each row execute function process_ops.guard_transaction();

-- The status of a Transaction that another database transaction has ended; null while rows of it may be written.
create function process_ops.ended_status(of_tenant text, of_transaction uuid) returns text
    language plpgsql set search_path = pg_catalog as $$
begin
    return (select t.status from process_ops.transactions t
            where t.tenant = of_tenant and t.uuid = of_transaction and t.end_time is not null
              and t.ended_by is distinct from pg_current_xact_id_if_assigned());
end $$;

-- Rows of a Transaction are written while it is open, and go only with it. Of those that are written once none changes.
create function process_ops.guard_related() returns trigger language plpgsql set search_path = pg_catalog as $$
declare
    ended text;
begin
    if tg_op = 'DELETE' then
        if not exists (select from process_ops.transactions t
                       where t.tenant = old.tenant and t.uuid = old.transaction_uuid) then
            return old;
        end if;
        raise exception 'Rows of Transaction % are kept as long as it is.', old.transaction_uuid
            using errcode = 'check_violation', constraint = tg_table_name || '_kept';
    end if;
    if tg_op = 'UPDATE' and tg_table_name <> 'transaction_steps' then
        raise exception 'Rows of % are written once.', tg_table_name
            using errcode = 'check_violation', constraint = tg_table_name || '_kept';
    end if;
    ended := process_ops.ended_status(new.tenant, new.transaction_uuid);
    if ended is not null then
        raise exception 'Transaction % is % and stays as it is, with all its rows; make a new Transaction.',
            new.transaction_uuid, ended
            using errcode = 'check_violation', constraint = 'transactions_terminal_stays';
    end if;
    return new;
end $$;

-- A step that is COMPLETED stays so, and the fence only grows.
create function process_ops.guard_step() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    if old.state = 'COMPLETED' then
        raise exception 'Step % of Transaction % is COMPLETED and stays so.', old.path, old.transaction_uuid
            using errcode = 'check_violation', constraint = 'transaction_steps_terminal_stays';
    end if;
    if new.attempt < old.attempt or old.state = 'FAILED' and new.attempt = old.attempt then
        raise exception 'Step % of Transaction % is at attempt %; attempt % is older.',
            old.path, old.transaction_uuid, old.attempt, new.attempt
            using errcode = 'check_violation', constraint = 'transaction_steps_attempt_grows';
    end if;
    return new;
end $$;
create trigger transaction_steps_guard_state before update on process_ops.transaction_steps
    for each row execute function process_ops.guard_step();

-- The same guard for a project's own entities, by the Transaction that `of_column` names: call it in the project's
-- migration for each table. Where the table has a column `tenant`, that is the tenant, else it is `default`.
create function process_ops.guard_entity() returns trigger
    language plpgsql security definer set search_path = pg_catalog as $$
declare
    held  jsonb;
    ended text;
begin
    foreach held in array array[to_jsonb(old), to_jsonb(new)] loop
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

create function process_ops.guard_entities(of_table regclass, of_column name default 'transaction_uuid') returns void
    language plpgsql set search_path = pg_catalog as $$
begin
    if not exists (select from pg_attribute a where a.attrelid = of_table and a.attname = of_column
                   and a.atttypid = 'uuid'::regtype and not a.attisdropped) then
        raise exception 'Table % has no column % of type uuid. Add it: it names the Transaction of the row.',
            of_table, of_column using errcode = 'undefined_column';
    end if;
    execute format(
        'create or replace trigger casework_guard before insert or update or delete on %s for each row '
        'when (current_user <> ''casework_retention'') execute function process_ops.guard_entity(%L)',
        of_table, of_column);
    execute format('alter table %s replica identity full', of_table);
end $$;

-- ---------------------------------------------------------------- rights, and whole rows in the write-ahead log

grant usage on schema process_ops to casework_runtime, casework_retention;
grant select, insert on all tables in schema process_ops to casework_runtime;
grant update on process_ops.transactions, process_ops.transaction_steps to casework_runtime;
grant select, update, delete on process_ops.transactions to casework_retention;

do $$
declare
    name text;
begin
    foreach name in array array['stages', 'steps', 'errors', 'arrivals', 'runs'] loop
        execute format(
            'create trigger transaction_%1$s_guard before insert or update or delete on process_ops.transaction_%1$s '
            'for each row execute function process_ops.guard_related()', name);
    end loop;
    foreach name in array array['', '_claims', '_stages', '_steps', '_errors', '_arrivals', '_runs'] loop
        execute format(
            'alter table process_ops.transaction%s replica identity full', case name when '' then 's' else name end);
    end loop;
end $$;
