-- What was accepted over HTTP and waits for an input Monitor. A key is known for as long as its row is there.

create table process_ops.inbox_items (
    tenant    text        not null default 'default' check (tenant <> '' and length(tenant) <= 100),
    inbox     text        not null check (inbox <> '' and length(inbox) <= 100),
    key       text        not null check (key <> '' and length(key) <= 255),
    body      jsonb       not null check (jsonb_typeof(body) = 'object'),
    body_hash text        not null,
    received  timestamptz not null,
    state     text        not null default 'waiting' check (state in ('waiting', 'taken', 'refused')),
    tries     integer     not null default 0 check (tries >= 0),
    why       text,
    told_at   timestamptz,
    cleaned   integer     not null default 0,
    primary key (tenant, inbox, key)
) with (fillfactor = 70);
-- First those never tried, the oldest first.
create index inbox_items_waiting on process_ops.inbox_items (tenant, inbox, tries, received, key)
    where state = 'waiting';

grant select, insert, update on process_ops.inbox_items to casework_runtime;
grant select, delete on process_ops.inbox_items to casework_retention;
alter table process_ops.inbox_items replica identity full;
