-- Roll-ups of workflows and operations, kept by the database itself: whoever ends a run or an attempt, of this release
-- or the one before, in the runtime or at a console, it is counted in the transaction that does it, and once.
--
--   an attempt ends           -> agent_operation_metrics (its tool or model), at the commit
--   a review opens, ends      -> agent_run_metrics, at once
--   a run ends                -> agent_workflow_metrics (its hour of acceptance) and agent_workflow_totals, at the commit
--   a figure of an ended run  -> the difference, to the same two rows (a late attempt)
--
-- Figures of open runs stay with the runs; readers add them through partial indexes.

-- Writers hold a run's row lock, so nobody writes until this has committed, and what is counted below is all there is.
lock table agent_ops.agent_runs in exclusive mode;

alter table agent_ops.agent_run_metrics
    add column reviews_asked   bigint  not null default 0,
    add column reviews_decided bigint  not null default 0,
    add column reviews_closed  bigint  not null default 0,
    add column review_seconds  numeric not null default 0,
    add column rolled_up       boolean not null default false;
create index agent_run_metrics_open on agent_ops.agent_run_metrics (tenant, run_id) where not rolled_up;

-- ---------------------------------------------------------------- tables

-- Ended runs by the hour in which they were accepted. Slots spread the writers; readers add them up.
create table agent_ops.agent_workflow_metrics (
    tenant             text        not null default 'default',
    workflow_name      text        not null,
    workflow_version   integer     not null,
    hour               timestamptz not null,
    status             text        not null check (status in ('COMPLETED', 'FAILED', 'CANCELLED')),
    outcome            text        not null default '',
    slot               integer     not null,
    runs               bigint      not null default 0,
    run_seconds        numeric     not null default 0,
    reviews_asked      bigint      not null default 0,
    reviews_decided    bigint      not null default 0,
    reviews_closed     bigint      not null default 0,
    review_seconds     numeric     not null default 0,
    model_calls        bigint      not null default 0,
    tool_calls         bigint      not null default 0,
    attempts_completed bigint      not null default 0,
    attempts_failed    bigint      not null default 0,
    attempts_lost      bigint      not null default 0,
    attempts_late      bigint      not null default 0,
    tokens_in          bigint      not null default 0,
    tokens_out         bigint      not null default 0,
    cost               numeric     not null default 0,
    latency_ms         bigint      not null default 0,
    updated_at         timestamptz not null default now(),
    primary key (tenant, hour, workflow_name, workflow_version, status, outcome, slot)
) with (fillfactor = 70);

-- The same since the first run, without hours: as many rows as there are workflows and ways to end, times slots.
create table agent_ops.agent_workflow_totals (
    tenant             text        not null default 'default',
    workflow_name      text        not null,
    status             text        not null check (status in ('COMPLETED', 'FAILED', 'CANCELLED')),
    outcome            text        not null default '',
    slot               integer     not null,
    runs               bigint      not null default 0,
    run_seconds        numeric     not null default 0,
    reviews_asked      bigint      not null default 0,
    reviews_decided    bigint      not null default 0,
    reviews_closed     bigint      not null default 0,
    review_seconds     numeric     not null default 0,
    model_calls        bigint      not null default 0,
    tool_calls         bigint      not null default 0,
    attempts_completed bigint      not null default 0,
    attempts_failed    bigint      not null default 0,
    attempts_lost      bigint      not null default 0,
    attempts_late      bigint      not null default 0,
    tokens_in          bigint      not null default 0,
    tokens_out         bigint      not null default 0,
    cost               numeric     not null default 0,
    latency_ms         bigint      not null default 0,
    updated_at         timestamptz not null default now(),
    primary key (tenant, workflow_name, status, outcome, slot)
) with (fillfactor = 50);

-- Every ended attempt by tool or model, since the first. An attempt that was LOST or FAILED and then came LATE counts as
-- LATE; `corrected_*` keep how many did so, for readers whose counters must never go back.
create table agent_ops.agent_operation_metrics (
    tenant             text        not null default 'default',
    kind               text        not null,
    name               text        not null,
    slot               integer     not null,
    attempts_completed bigint      not null default 0,
    attempts_failed    bigint      not null default 0,
    attempts_lost      bigint      not null default 0,
    attempts_late      bigint      not null default 0,
    corrected_failed   bigint      not null default 0,
    corrected_lost     bigint      not null default 0,
    tokens_in          bigint      not null default 0,
    tokens_out         bigint      not null default 0,
    cost               numeric     not null default 0,
    latency_ms         bigint      not null default 0,
    updated_at         timestamptz not null default now(),
    primary key (tenant, kind, name, slot)
) with (fillfactor = 50);

alter table agent_ops.agent_workflow_metrics replica identity full;
alter table agent_ops.agent_workflow_totals replica identity full;
alter table agent_ops.agent_operation_metrics replica identity full;

-- The triggers write these tables in their owner's right; the runtime only reads them.
grant select on agent_ops.agent_workflow_metrics, agent_ops.agent_workflow_totals, agent_ops.agent_operation_metrics
    to casework_runtime;

-- ---------------------------------------------------------------- how they are written

-- One of eight, by the last byte of the id, which is random in every kind of UUID that runs have.
create function agent_ops.roll_up_slot(run_id uuid) returns integer
    language sql immutable set search_path = pg_catalog return get_byte(uuid_send(run_id), 15) % 8;

-- A transaction that ends several attempts writes several rows of its slot: one lock for the slot, so that no two
-- transactions take them in different orders. It is taken at the commit, and held for no longer.
create function agent_ops.lock_roll_ups(tenant text, slot integer) returns void
    language sql set search_path = pg_catalog
    as $$ select pg_advisory_xact_lock(hashtextextended('casework.roll_up:' || tenant, slot)) $$;

create function agent_ops.add_to_workflow(
    run agent_ops.agent_runs, ended integer, seconds numeric, used agent_ops.agent_run_metrics)
    returns void language plpgsql set search_path = pg_catalog as $$
declare
    spot integer := agent_ops.roll_up_slot(run.run_id);
begin
    perform agent_ops.lock_roll_ups(run.tenant, spot);
    insert into agent_ops.agent_workflow_metrics as m (
        tenant, workflow_name, workflow_version, hour, status, outcome, slot, runs, run_seconds, reviews_asked,
        reviews_decided, reviews_closed, review_seconds, model_calls, tool_calls, attempts_completed, attempts_failed,
        attempts_lost, attempts_late, tokens_in, tokens_out, cost, latency_ms)
    values (
        run.tenant, run.workflow_name, run.workflow_version, date_trunc('hour', run.created_at, 'UTC'), run.status,
        coalesce(run.outcome, ''), spot, ended, seconds, used.reviews_asked, used.reviews_decided, used.reviews_closed,
        used.review_seconds, used.model_calls, used.tool_calls, used.attempts_completed, used.attempts_failed,
        used.attempts_lost, used.attempts_late, used.tokens_in, used.tokens_out, used.cost, used.latency_ms)
    on conflict (tenant, hour, workflow_name, workflow_version, status, outcome, slot) do update set
        runs = m.runs + excluded.runs, run_seconds = m.run_seconds + excluded.run_seconds,
        reviews_asked = m.reviews_asked + excluded.reviews_asked,
        reviews_decided = m.reviews_decided + excluded.reviews_decided,
        reviews_closed = m.reviews_closed + excluded.reviews_closed,
        review_seconds = m.review_seconds + excluded.review_seconds,
        model_calls = m.model_calls + excluded.model_calls, tool_calls = m.tool_calls + excluded.tool_calls,
        attempts_completed = m.attempts_completed + excluded.attempts_completed,
        attempts_failed = m.attempts_failed + excluded.attempts_failed,
        attempts_lost = m.attempts_lost + excluded.attempts_lost,
        attempts_late = m.attempts_late + excluded.attempts_late,
        tokens_in = m.tokens_in + excluded.tokens_in, tokens_out = m.tokens_out + excluded.tokens_out,
        cost = m.cost + excluded.cost, latency_ms = m.latency_ms + excluded.latency_ms, updated_at = clock_timestamp();
    insert into agent_ops.agent_workflow_totals as m (
        tenant, workflow_name, status, outcome, slot, runs, run_seconds, reviews_asked, reviews_decided, reviews_closed,
        review_seconds, model_calls, tool_calls, attempts_completed, attempts_failed, attempts_lost, attempts_late,
        tokens_in, tokens_out, cost, latency_ms)
    values (
        run.tenant, run.workflow_name, run.status, coalesce(run.outcome, ''), spot, ended, seconds, used.reviews_asked,
        used.reviews_decided, used.reviews_closed, used.review_seconds, used.model_calls, used.tool_calls,
        used.attempts_completed, used.attempts_failed, used.attempts_lost, used.attempts_late, used.tokens_in,
        used.tokens_out, used.cost, used.latency_ms)
    on conflict (tenant, workflow_name, status, outcome, slot) do update set
        runs = m.runs + excluded.runs, run_seconds = m.run_seconds + excluded.run_seconds,
        reviews_asked = m.reviews_asked + excluded.reviews_asked,
        reviews_decided = m.reviews_decided + excluded.reviews_decided,
        reviews_closed = m.reviews_closed + excluded.reviews_closed,
        review_seconds = m.review_seconds + excluded.review_seconds,
        model_calls = m.model_calls + excluded.model_calls, tool_calls = m.tool_calls + excluded.tool_calls,
        attempts_completed = m.attempts_completed + excluded.attempts_completed,
        attempts_failed = m.attempts_failed + excluded.attempts_failed,
        attempts_lost = m.attempts_lost + excluded.attempts_lost,
        attempts_late = m.attempts_late + excluded.attempts_late,
        tokens_in = m.tokens_in + excluded.tokens_in, tokens_out = m.tokens_out + excluded.tokens_out,
        cost = m.cost + excluded.cost, latency_ms = m.latency_ms + excluded.latency_ms, updated_at = clock_timestamp();
end $$;

-- A run ends once (agent_runs_guard), so this fires once for it; `rolled_up` would stop a second time all the same.
create function agent_ops.roll_up_run() returns trigger
    language plpgsql security definer set search_path = pg_catalog as $$
declare
    used agent_ops.agent_run_metrics;
begin
    insert into agent_ops.agent_run_metrics as m (tenant, run_id, rolled_up)
    select r.tenant, r.run_id, true from agent_ops.agent_runs r where r.tenant = new.tenant and r.run_id = new.run_id
    on conflict (tenant, run_id) do update set rolled_up = true where not m.rolled_up
    returning * into used;
    if found then
        perform agent_ops.add_to_workflow(
            new, 1, greatest(extract(epoch from new.ended_at - new.created_at), 0), used);
    end if;
    return null;
end $$;
create constraint trigger agent_runs_roll_up after update on agent_ops.agent_runs
    deferrable initially deferred for each row
    when (new.status in ('COMPLETED', 'FAILED', 'CANCELLED') and old.status not in ('COMPLETED', 'FAILED', 'CANCELLED'))
    execute function agent_ops.roll_up_run();

create function agent_ops.roll_up_afterwards() returns trigger
    language plpgsql security definer set search_path = pg_catalog as $$
declare
    run agent_ops.agent_runs;
    used agent_ops.agent_run_metrics := new;
begin
    select * into run from agent_ops.agent_runs r where r.tenant = new.tenant and r.run_id = new.run_id;
    if not found then
        return null;
    end if;
    used.reviews_asked := new.reviews_asked - old.reviews_asked;
    used.reviews_decided := new.reviews_decided - old.reviews_decided;
    used.reviews_closed := new.reviews_closed - old.reviews_closed;
    used.review_seconds := new.review_seconds - old.review_seconds;
    used.model_calls := new.model_calls - old.model_calls;
    used.tool_calls := new.tool_calls - old.tool_calls;
    used.attempts_completed := new.attempts_completed - old.attempts_completed;
    used.attempts_failed := new.attempts_failed - old.attempts_failed;
    used.attempts_lost := new.attempts_lost - old.attempts_lost;
    used.attempts_late := new.attempts_late - old.attempts_late;
    used.tokens_in := new.tokens_in - old.tokens_in;
    used.tokens_out := new.tokens_out - old.tokens_out;
    used.cost := new.cost - old.cost;
    used.latency_ms := new.latency_ms - old.latency_ms;
    perform agent_ops.add_to_workflow(run, 0, 0, used);
    return null;
end $$;
create constraint trigger agent_run_metrics_roll_up after update on agent_ops.agent_run_metrics
    deferrable initially deferred for each row when (old.rolled_up)
    execute function agent_ops.roll_up_afterwards();

-- Not at the commit but at once: the rows are the run's own, nobody waits for them, and the run's end finds them whole.
create function agent_ops.roll_up_review() returns trigger
    language plpgsql security definer set search_path = pg_catalog as $$
declare
    asked integer := (tg_op = 'INSERT')::integer;
    decided integer := (new.status = 'decided')::integer;
begin
    insert into agent_ops.agent_run_metrics as m (
        tenant, run_id, reviews_asked, reviews_decided, reviews_closed, review_seconds)
    values (
        new.tenant, new.run_id, asked, decided, (new.status = 'closed')::integer,
        decided * greatest(coalesce(extract(epoch from new.ended_at - new.created_at), 0), 0))
    on conflict (tenant, run_id) do update set
        reviews_asked = m.reviews_asked + excluded.reviews_asked,
        reviews_decided = m.reviews_decided + excluded.reviews_decided,
        reviews_closed = m.reviews_closed + excluded.reviews_closed,
        review_seconds = m.review_seconds + excluded.review_seconds,
        updated_at = clock_timestamp();
    return null;
end $$;
create trigger agent_reviews_roll_up_asked after insert on agent_ops.agent_reviews
    for each row execute function agent_ops.roll_up_review();
create trigger agent_reviews_roll_up_ended after update on agent_ops.agent_reviews
    for each row when (old.status = 'pending' and new.status <> 'pending')
    execute function agent_ops.roll_up_review();

create function agent_ops.roll_up_attempt() returns trigger
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
        new.tokens_in - old.tokens_in, new.tokens_out - old.tokens_out, new.cost - old.cost,
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
create constraint trigger agent_step_attempts_roll_up after update on agent_ops.agent_step_attempts
    deferrable initially deferred for each row when (new.outcome is not null)
    execute function agent_ops.roll_up_attempt();

-- ---------------------------------------------------------------- what there is already

insert into agent_ops.agent_run_metrics as m (
    tenant, run_id, reviews_asked, reviews_decided, reviews_closed, review_seconds)
select tenant, run_id, count(*), count(*) filter (where status = 'decided'), count(*) filter (where status = 'closed'),
       coalesce(sum(greatest(extract(epoch from ended_at - created_at), 0)) filter (where status = 'decided'), 0)
from agent_ops.agent_reviews
group by tenant, run_id
on conflict (tenant, run_id) do update set
    reviews_asked = excluded.reviews_asked, reviews_decided = excluded.reviews_decided,
    reviews_closed = excluded.reviews_closed, review_seconds = excluded.review_seconds;

insert into agent_ops.agent_run_metrics (tenant, run_id, rolled_up)
select tenant, run_id, true from agent_ops.agent_runs where status in ('COMPLETED', 'FAILED', 'CANCELLED')
on conflict (tenant, run_id) do update set rolled_up = true;

insert into agent_ops.agent_workflow_metrics (
    tenant, workflow_name, workflow_version, hour, status, outcome, slot, runs, run_seconds, reviews_asked,
    reviews_decided, reviews_closed, review_seconds, model_calls, tool_calls, attempts_completed, attempts_failed,
    attempts_lost, attempts_late, tokens_in, tokens_out, cost, latency_ms)
select r.tenant, r.workflow_name, r.workflow_version, date_trunc('hour', r.created_at, 'UTC'), r.status,
       coalesce(r.outcome, ''), agent_ops.roll_up_slot(r.run_id), count(*),
       sum(greatest(extract(epoch from r.ended_at - r.created_at), 0)), sum(m.reviews_asked), sum(m.reviews_decided),
       sum(m.reviews_closed), sum(m.review_seconds), sum(m.model_calls), sum(m.tool_calls), sum(m.attempts_completed),
       sum(m.attempts_failed), sum(m.attempts_lost), sum(m.attempts_late), sum(m.tokens_in), sum(m.tokens_out),
       sum(m.cost), sum(m.latency_ms)
from agent_ops.agent_runs r
join agent_ops.agent_run_metrics m on m.tenant = r.tenant and m.run_id = r.run_id and m.rolled_up
group by 1, 2, 3, 4, 5, 6, 7;

insert into agent_ops.agent_workflow_totals (
    tenant, workflow_name, status, outcome, slot, runs, run_seconds, reviews_asked, reviews_decided, reviews_closed,
    review_seconds, model_calls, tool_calls, attempts_completed, attempts_failed, attempts_lost, attempts_late,
    tokens_in, tokens_out, cost, latency_ms)
select tenant, workflow_name, status, outcome, slot, sum(runs), sum(run_seconds), sum(reviews_asked),
       sum(reviews_decided), sum(reviews_closed), sum(review_seconds), sum(model_calls), sum(tool_calls),
       sum(attempts_completed), sum(attempts_failed), sum(attempts_lost), sum(attempts_late), sum(tokens_in),
       sum(tokens_out), sum(cost), sum(latency_ms)
from agent_ops.agent_workflow_metrics
group by 1, 2, 3, 4, 5;

insert into agent_ops.agent_operation_metrics (
    tenant, kind, name, slot, attempts_completed, attempts_failed, attempts_lost, attempts_late, tokens_in, tokens_out,
    cost, latency_ms)
select a.tenant, s.kind, s.name, agent_ops.roll_up_slot(a.run_id), count(*) filter (where a.outcome = 'COMPLETED'),
       count(*) filter (where a.outcome = 'FAILED'), count(*) filter (where a.outcome = 'LOST'),
       count(*) filter (where a.outcome = 'LATE'), sum(a.tokens_in), sum(a.tokens_out), sum(a.cost),
       coalesce(sum(a.latency_ms), 0)
from agent_ops.agent_step_attempts a
join agent_ops.agent_steps s on s.tenant = a.tenant and s.step_id = a.step_id
where a.outcome is not null
group by 1, 2, 3, 4;

-- ---------------------------------------------------------------- a token that reads /metrics and nothing else

alter table casework_auth.tokens
    drop constraint tokens_roles_check,
    add constraint tokens_roles_check check (roles <@ array['viewer', 'reviewer', 'operator', 'admin', 'metrics']);
