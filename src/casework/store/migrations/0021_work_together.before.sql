-- Work on many Transactions of a tray by a few statements for all: Tasks that only compute, and Finalizers. Rows are looked
-- up one by one, by their key or their place: a plan that is made over a new table would look through all rows for each.

-- Writes Transactions whose rows the caller holds, as `write_transaction` does one: `afters` is what that takes as `after`,
-- with the Transaction's `uuid`. Only those of `uuids` are written.
create function process_ops.write_transactions(
    of_tenant text, afters jsonb, uuids uuid[], by_maker text, at_time timestamptz)
    returns void language plpgsql set search_path = pg_catalog set plan_cache_mode = force_generic_plan
    set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
    with after as materialized (
        select a.*, t.spot, t.was, t.had
        from jsonb_to_recordset(afters) as a (
            uuid uuid, status text, status_before_error text, claim_id uuid, process text, task text, priority integer,
            due_time timestamptz, end_time timestamptz, data jsonb, skip_until text, straight_through boolean,
            by_hand boolean, cleaned integer, stage_process text),
        lateral (
            select t.ctid as spot, t.status as was, t.claim_id as had from process_ops.transactions t
            where t.tenant = of_tenant and t.uuid = a.uuid offset 0) t
        where a.uuid = any (uuids)
    ), logged as (
        insert into process_ops.transaction_stages (
            tenant, transaction_uuid, before, after, process, made_by, claim_id, at)
        select of_tenant, a.uuid, a.was, a.status, a.stage_process, by_maker, a.had, at_time
        from after a where a.was <> a.status
    )
    update process_ops.transactions t
    set status = a.status, status_before_error = a.status_before_error, claim_id = a.claim_id, process = a.process,
        task = a.task, priority = a.priority, due_time = a.due_time, end_time = a.end_time,
        data = coalesce(a.data, t.data), skip_until = a.skip_until, straight_through = a.straight_through,
        by_hand = t.by_hand or a.by_hand, cleaned = t.cleaned + a.cleaned, updated_at = at_time
    from after a where t.ctid = a.spot;
end $$;

-- Completes steps of Tasks that only compute, which were never begun: `ends` is [step, uuid, seen, before, result, started]
-- with what `write_transactions` takes. `seen` is the version (xmin) of the row that the Task was given. Where it is that
-- still, in the tray `of_claim` and in status `before`, and no step is there, all of it is written, and the step returned.
-- Of all others nothing is.
create function process_ops.complete_tasks(
    of_tenant text, of_claim uuid, of_process text, of_task text, of_path text, of_kind text, of_version text,
    of_work_attempt integer, ends jsonb, at_time timestamptz)
    returns table (step_id uuid)
    language plpgsql set search_path = pg_catalog set plan_cache_mode = force_generic_plan
    set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    steps uuid[];
    uuids uuid[];
begin
    with ending as materialized (
        -- In one order, so that no two wait for each other.
        select e.* from jsonb_to_recordset(ends) as e (
            step uuid, uuid uuid, seen text, before text, result jsonb, started timestamptz)
        order by e.uuid
    ), held as materialized (
        select t.uuid from ending e, lateral (
            select t.uuid from process_ops.transactions t
            where t.tenant = of_tenant and t.uuid = e.uuid
              and t.status = e.before and (t.claim_id = of_claim) is true and t.end_time is null and t.xmin::text = e.seen
            for no key update) t
    ), made as (
        insert into process_ops.transaction_steps (
            tenant, step_id, transaction_uuid, claim_id, process, task, path, kind, task_version, state, attempt,
            work_attempt, begun_by, result, started_at, updated_at, ended_at)
        select of_tenant, e.step, e.uuid, of_claim, of_process, of_task, of_path, of_kind, of_version, 'COMPLETED', 1,
               of_work_attempt, pg_current_xact_id(), e.result, e.started, clock_timestamp(), clock_timestamp()
        from ending e join held h on h.uuid = e.uuid
        on conflict do nothing
        returning step_id, transaction_uuid
    )
    select array_agg(m.step_id), array_agg(m.transaction_uuid) into steps, uuids from made m;
    if steps is not null then
        perform process_ops.write_transactions(of_tenant, ends, uuids, of_task, at_time);
    end if;
    return query select unnest(steps);
end $$;

-- What of `asked` ([step, uuid, status] as arrays) a Task that only computes may work on: it is in the tray `of_claim` and
-- in that status, and no step is there. `seen` is the version of its row.
create function process_ops.computable_tasks(
    of_tenant text, of_claim uuid, steps uuid[], uuids uuid[], statuses text[])
    returns table (step_id uuid, seen text, item process_ops.transactions)
    language plpgsql stable set search_path = pg_catalog set plan_cache_mode = force_generic_plan
    set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
    return query
    select a.step, t.seen, t.item
    from unnest(steps, uuids, statuses) as a (step, uuid, status),
    lateral (
        select t.xmin::text as seen, t as item from process_ops.transactions t
        where t.tenant = of_tenant and t.uuid = a.uuid
          and t.status = a.status and (t.claim_id = of_claim) is true and t.end_time is null
        offset 0) t
    where (select s.step_id from process_ops.transaction_steps s
           where s.tenant = of_tenant and s.step_id = a.step) is null;
end $$;
