-- Monitors: one row for each process, how each is configured, what its rounds came to, and what it refused.

create table process_ops.monitor (
    tenant            text        not null default 'default' check (tenant <> '' and length(tenant) <= 100),
    uuid              uuid        not null default gen_random_uuid(),
    monitor_id        text        not null check (monitor_id <> ''),
    creation_time     timestamptz not null default clock_timestamp(),
    completed_loops   integer     not null default 0 check (completed_loops >= 0),
    last_polling_time timestamptz,
    stopped           smallint    not null default 0 check (stopped in (0, 1)),
    primary key (tenant, uuid),
    unique (tenant, monitor_id)
) with (fillfactor = 50);

-- Read as text: what does not hold is told and ignored by whoever reads it, and refused by nobody.
create table process_ops.monitor_configuration (
    tenant           text    not null default 'default' check (tenant <> '' and length(tenant) <= 100),
    uuid             uuid    not null default gen_random_uuid(),
    monitor_class    text    not null check (monitor_class <> ''),
    polling_interval text,
    sleep_time       text,
    max_loops        integer,
    max_running_time text,
    primary key (tenant, uuid),
    unique (tenant, monitor_class)
);

-- Rounds that polled, and each last one. `life` is the id of the Monitor's life in the engine.
create table process_ops.monitor_rounds (
    tenant       text        not null default 'default',
    monitor_uuid uuid        not null,
    monitor_class text        not null,
    life          uuid        not null,
    round        integer     not null check (round >= 0),
    polled       boolean     not null,
    claimed      integer     not null default 0,
    trays        integer     not null default 0,
    taken_in     integer     not null default 0,
    repeated     integer     not null default 0,
    bad          integer     not null default 0,
    failure      text,
    loop_record  boolean     not null,
    stopped      text,
    cleaned      integer     not null default 0,
    at           timestamptz not null,
    primary key (tenant, monitor_uuid, life, round),
    foreign key (tenant, monitor_uuid) references process_ops.monitor on delete cascade
);
create index monitor_rounds_newest on process_ops.monitor_rounds (tenant, monitor_uuid, at desc);

-- What each Monitor emitted: a record for each Transaction that it let onto its line, and one for each loop.
create view process_ops.monitor_records with (security_invoker = true) as
    select m.tenant, m.monitor_id, s.transaction_uuid, s.claim_id, false as _sys_repeat, s.at
    from process_ops.monitor m
    cross join lateral (select distinct r.monitor_class from process_ops.monitor_rounds r
                        where r.tenant = m.tenant and r.monitor_uuid = m.uuid) c
    join process_ops.transaction_stages s
        on s.tenant = m.tenant and s.process = m.monitor_id and s.made_by = c.monitor_class
    union all
    select r.tenant, m.monitor_id, null, null, true, r.at
    from process_ops.monitor_rounds r
    join process_ops.monitor m on m.tenant = r.tenant and m.uuid = r.monitor_uuid
    where r.loop_record;

-- Entities from outside that could not be taken in, and polls that failed. There is no Transaction of them, so they are
-- no errors of one. The same error of the same entity is one row, which counts how often it came.
create table process_ops.input_errors (
    tenant        text        not null default 'default' check (tenant <> '' and length(tenant) <= 100),
    uuid          uuid        not null,
    process       text        not null,
    monitor_class text        not null,
    natural_key   text,
    type          text        not null check (type in ('BUSINESS', 'APPLICATION')),
    code          text        not null,
    severity      text        not null check (severity in ('WARNING', 'ERROR', 'CRITICAL')),
    short_text    text        not null,
    full_text     text        not null,
    times         integer     not null default 1 check (times > 0),
    first_at      timestamptz not null,
    last_at       timestamptz not null,
    cleaned       integer     not null default 0,
    primary key (tenant, uuid)
) with (fillfactor = 85);
create index input_errors_newest on process_ops.input_errors (tenant, last_at desc, uuid);

grant select, insert, update on process_ops.monitor, process_ops.monitor_configuration, process_ops.monitor_rounds,
    process_ops.input_errors to casework_runtime;
grant select on process_ops.monitor_records to casework_runtime;
grant select, delete on process_ops.monitor, process_ops.monitor_rounds, process_ops.input_errors to casework_retention;

do $$
declare
    name text;
begin
    foreach name in array array['monitor', 'monitor_configuration', 'monitor_rounds', 'input_errors'] loop
        execute format('alter table process_ops.%s replica identity full', name);
    end loop;
end $$;
