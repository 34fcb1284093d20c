-- The table of the transactional tool, in the database of the ledger. Run once, as the database's owner.
create schema if not exists change_of_address;

-- `key` is not unique on purpose: the tool is safe without such a help, and a drill could not count what it hides.
create table if not exists change_of_address.journal (
    id          bigint      generated always as identity primary key,
    tenant      text        not null,
    run_id      uuid        not null,
    key         text        not null,
    customer_id text        not null,
    entry       text        not null,
    at          timestamptz not null default clock_timestamp()
);

-- Workers write in this role, and it gets what the tool needs and no more.
grant usage on schema change_of_address to casework_runtime;
grant insert on change_of_address.journal to casework_runtime;
