-- Parents that wait at a join for children in other trays. A row says since when; whether it holds still is said by the
-- view: the Transaction is in the same tray, and the step of the join is not in the ledger, as it is once it was done.

create table process_ops.transaction_waits (
    tenant           text        not null default 'default',
    transaction_uuid uuid        not null,
    step_id          uuid        not null,
    claim_id         uuid        not null,
    process          text        not null,
    task             text        not null,
    since            timestamptz not null,
    primary key (tenant, transaction_uuid, step_id),
    foreign key (tenant, transaction_uuid) references process_ops.transactions on delete cascade
);

create view process_ops.waiting_parents with (security_invoker = true) as
    select w.tenant, w.transaction_uuid, w.claim_id, w.process, w.task, w.since
    from process_ops.transaction_waits w
    join process_ops.transactions t on t.tenant = w.tenant and t.uuid = w.transaction_uuid
    where t.claim_id = w.claim_id and t.end_time is null
      and not exists (select from process_ops.transaction_steps s where s.tenant = w.tenant and s.step_id = w.step_id);

grant select, insert on process_ops.transaction_waits to casework_runtime;
grant select on process_ops.waiting_parents to casework_runtime;
create trigger transaction_waits_guard before insert or update or delete on process_ops.transaction_waits
    for each row execute function process_ops.guard_related();
alter table process_ops.transaction_waits replica identity full;
