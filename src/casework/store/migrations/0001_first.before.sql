-- The projection of runs (agent_ops), the read-only copy of the policy (agent_policy) and the tokens (casework_auth).
-- The roles exist already (casework.store.roles). Every key starts with the tenant, so that row-level security can be
-- switched on; every row that a run owns goes when the run goes; `cleaned` counts the characters and numbers that
-- PostgreSQL could not hold (casework.values.clean).

create schema agent_ops;
create schema agent_policy;
create schema casework_auth;

-- ---------------------------------------------------------------- runs

create table agent_ops.agent_runs (
    tenant               text        not null default 'default' check (tenant <> '' and length(tenant) <= 100),
    run_id               uuid        not null,
    status               text        not null default 'PENDING'
        check (status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW', 'COMPLETED', 'FAILED', 'CANCELLED')),
    version              bigint      not null default 0 check (version >= 0),
    temporal_workflow_id text        not null,
    workflow_name        text        not null check (length(workflow_name) <= 253),
    workflow_version     integer     not null,
    user_id              text        not null check (user_id <> '' and length(user_id) <= 320),
    actor                text        not null,
    request              jsonb       not null,
    request_hash         text        not null,
    policy_adoption      text        not null default 'pinned' check (policy_adoption in ('pinned', 'next_turn')),
    model                text,
    turn                 integer     not null default 0,
    turn_limit           integer     not null check (turn_limit > 0),
    current_node         text,
    loop_count           integer     not null default 0,
    tokens_in            bigint      not null default 0,
    tokens_out           bigint      not null default 0,
    cost                 numeric     not null default 0 check (cost >= 0 and cost < 'Infinity'),
    recommendation       jsonb,
    outcome              text        check (length(outcome) <= 253),
    failure              text,
    incident             jsonb,
    cleaned              integer     not null default 0,
    created_at           timestamptz not null default now(),
    updated_at           timestamptz not null default now(),
    started_at           timestamptz,
    ended_at             timestamptz,
    primary key (tenant, run_id),
    constraint agent_runs_outcome_only_when_completed check (outcome is null or status = 'COMPLETED'),
    constraint agent_runs_failed_has_reason check (status <> 'FAILED' or failure is not null),
    constraint agent_runs_ended_when_terminal
        check ((ended_at is not null) = (status in ('COMPLETED', 'FAILED', 'CANCELLED')))
);
create index agent_runs_newest on agent_ops.agent_runs (tenant, created_at desc, run_id desc);
create index agent_runs_by_user on agent_ops.agent_runs (tenant, user_id, created_at desc, run_id desc);
create index agent_runs_by_user_and_status
    on agent_ops.agent_runs (tenant, user_id, status, created_at desc, run_id desc);
create index agent_runs_by_status on agent_ops.agent_runs (tenant, status, created_at desc, run_id desc);
create index agent_runs_by_workflow on agent_ops.agent_runs (tenant, workflow_name, created_at desc, run_id desc);
create index agent_runs_open on agent_ops.agent_runs (created_at, run_id)
    where status in ('PENDING', 'RUNNING', 'AWAITING_REVIEW');

-- ---------------------------------------------------------------- context: one row per output, the latest counts

create table agent_ops.agent_context (
    tenant     text        not null default 'default',
    context_id uuid        not null,
    run_id     uuid        not null,
    path       text        not null,
    key        text        not null,
    version    bigint      not null,
    value      jsonb,
    cleaned    integer     not null default 0,
    created_at timestamptz not null,
    primary key (tenant, context_id),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);
create index agent_context_by_run on agent_ops.agent_context (tenant, run_id, version);

create view agent_ops.agent_context_latest with (security_invoker = true) as
select distinct on (tenant, run_id, key) tenant, run_id, key, path, version, value, created_at
from agent_ops.agent_context
order by tenant, run_id, key, version desc, created_at desc, context_id;

-- ---------------------------------------------------------------- transcript

create table agent_ops.agent_messages (
    tenant     text        not null default 'default',
    message_id uuid        not null,
    id         bigint      not null generated always as identity unique,
    run_id     uuid        not null,
    path       text        not null,
    position   integer     not null check (position > 0),
    agent      text        not null,
    role       text        not null check (role in ('user', 'assistant', 'tool', 'note')),
    content    text        not null,
    requests   jsonb       not null default '[]' check (jsonb_typeof(requests) = 'array'),
    call_id    text,
    tool       text,
    parts      jsonb,
    cleaned    integer     not null default 0,
    created_at timestamptz not null,
    primary key (tenant, message_id),
    constraint agent_messages_one_per_position unique (tenant, run_id, position),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);

-- ---------------------------------------------------------------- the ledger

create table agent_ops.agent_steps (
    tenant       text        not null default 'default',
    step_id      uuid        not null,
    run_id       uuid        not null,
    path         text        not null,
    kind         text        not null check (kind in ('tool', 'model', 'decision')),
    name         text        not null,
    node         text,
    turn         integer     not null default 0,
    tool_version text,
    arguments    jsonb,
    hash         text,
    state        text        not null check (state in ('STARTED', 'COMPLETED', 'FAILED')),
    attempt      integer     not null default 0 check (attempt >= 0),
    result       jsonb,
    error        text,
    cleaned      integer     not null default 0,
    started_at   timestamptz not null,
    updated_at   timestamptz not null,
    ended_at     timestamptz,
    primary key (tenant, step_id),
    constraint agent_steps_ended_when_terminal check ((ended_at is null) = (state = 'STARTED')),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);
create index agent_steps_by_run on agent_ops.agent_steps (tenant, run_id, started_at, step_id);
create index agent_steps_in_flight on agent_ops.agent_steps (tenant, started_at) where state = 'STARTED';

create view agent_ops.agent_tool_calls with (security_invoker = true) as
select tenant, step_id as tool_call_id, run_id, path, name as tool, node, turn, tool_version, arguments, hash, state,
       attempt, result, error, cleaned, started_at, updated_at, ended_at
from agent_ops.agent_steps
where kind = 'tool';

create table agent_ops.agent_step_attempts (
    tenant     text        not null default 'default',
    step_id    uuid        not null,
    attempt    integer     not null check (attempt > 0),
    run_id     uuid        not null,
    outcome    text        check (outcome in ('COMPLETED', 'FAILED', 'LOST', 'LATE')),
    result     jsonb,
    error      text,
    latency_ms bigint,
    tokens_in  bigint      not null default 0,
    tokens_out bigint      not null default 0,
    cost       numeric     not null default 0 check (cost >= 0 and cost < 'Infinity'),
    cleaned    integer     not null default 0,
    started_at timestamptz not null,
    ended_at   timestamptz,
    primary key (tenant, step_id, attempt),
    constraint agent_step_attempts_ended_with_outcome check ((ended_at is null) = (outcome is null)),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade,
    foreign key (tenant, step_id) references agent_ops.agent_steps on delete cascade
);
create index agent_step_attempts_by_run on agent_ops.agent_step_attempts (tenant, run_id);
create index agent_step_attempts_not_well on agent_ops.agent_step_attempts (tenant, started_at)
    where outcome in ('FAILED', 'LOST', 'LATE');

-- ---------------------------------------------------------------- roll-ups: every finished attempt counts once

create table agent_ops.agent_run_metrics (
    tenant             text        not null default 'default',
    run_id             uuid        not null,
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
    primary key (tenant, run_id),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);

create table agent_ops.agent_turn_metrics (
    tenant             text        not null default 'default',
    run_id             uuid        not null,
    turn               integer     not null,
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
    primary key (tenant, run_id, turn),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);

-- ---------------------------------------------------------------- reviews and decisions

create table agent_ops.agent_reviews (
    tenant         text        not null default 'default',
    review_id      uuid        not null,
    run_id         uuid        not null,
    path           text        not null,
    node           text        not null,
    turn           integer     not null,
    status         text        not null default 'pending' check (status in ('pending', 'decided', 'closed')),
    decisions      jsonb       not null check (jsonb_typeof(decisions) = 'array'),
    refused        jsonb,
    recommendation jsonb,
    note           text,
    cleaned        integer     not null default 0,
    created_at     timestamptz not null,
    ended_at       timestamptz,
    primary key (tenant, review_id),
    constraint agent_reviews_ended_unless_pending check ((ended_at is null) = (status = 'pending')),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);
create index agent_reviews_by_run on agent_ops.agent_reviews (tenant, run_id, created_at);
create index agent_reviews_waiting on agent_ops.agent_reviews (tenant, created_at, review_id) where status = 'pending';

-- A decision may name a review that never was (a stale page, a made-up id): such a row has review_id null and says so.
create table agent_ops.agent_review_decisions (
    tenant      text        not null default 'default',
    run_id      uuid        not null,
    decision_id text        not null check (decision_id <> '' and length(decision_id) <= 255),
    review_id   uuid,
    path        text        not null,
    command     text        not null,
    reason      text        not null,
    reviewer    text        not null,
    accepted    boolean     not null,
    ignored     text,
    outcome     text,
    cleaned     integer     not null default 0,
    created_at  timestamptz not null,
    primary key (tenant, run_id, decision_id),
    constraint agent_review_decisions_ignored_says_why check (accepted = (ignored is null)),
    constraint agent_review_decisions_accepted_has_review check (not accepted or review_id is not null),
    constraint agent_review_decisions_outcome_only_accepted check (outcome is null or accepted),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);
create unique index agent_review_decisions_one_accepted on agent_ops.agent_review_decisions (tenant, review_id)
    where accepted;

-- ---------------------------------------------------------------- events and logs

create table agent_ops.agent_events (
    tenant     text        not null default 'default',
    event_id   uuid        not null,
    run_id     uuid        not null,
    seq        bigint      not null check (seq > 0),
    path       text        not null,
    kind       text        not null,
    data       jsonb,
    cleaned    integer     not null default 0,
    at         timestamptz not null,
    written_at timestamptz not null default clock_timestamp(),
    primary key (tenant, event_id),
    constraint agent_events_one_per_seq unique (tenant, run_id, seq),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);

create table agent_ops.agent_logs (
    tenant     text        not null default 'default',
    log_id     uuid        not null,
    id         bigint      not null generated always as identity unique,
    run_id     uuid        not null,
    path       text        not null,
    node       text        not null,
    level      text        not null default 'INFO' check (level in ('DEBUG', 'INFO', 'WARNING', 'ERROR')),
    message    text        not null,
    cleaned    integer     not null default 0,
    created_at timestamptz not null,
    primary key (tenant, log_id),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);
create index agent_logs_by_run on agent_ops.agent_logs (tenant, run_id, id);

-- ---------------------------------------------------------------- workflows as applied, immutable

create table agent_ops.workflow_versions (
    tenant     text        not null default 'default',
    name       text        not null check (name <> '' and length(name) <= 253),
    version    integer     not null check (version > 0),
    hash       text        not null,
    bundle     jsonb       not null,
    cleaned    integer     not null default 0,
    created_at timestamptz not null default now(),
    primary key (tenant, name, version)
);

-- ---------------------------------------------------------------- policy: the copy, and what each run used

create table agent_policy.underwriting_policy_limits (
    tenant                 text        not null default 'default',
    purpose                text        not null check (purpose <> '' and length(purpose) <= 253),
    valid_from             date        not null default '-infinity',
    valid_until            date,
    policy_name            text        not null,
    version                integer     not null,
    min_score              integer     not null,
    auto_approve_ratio     numeric     not null,
    hard_decline_score     integer     not null,
    hard_decline_ratio     numeric     not null,
    material_delinquencies integer     not null,
    source                 text        not null,
    cleaned                integer     not null default 0,
    synced_at              timestamptz not null,
    primary key (tenant, purpose, valid_from),
    constraint underwriting_policy_limits_validity check (valid_until is null or valid_until > valid_from)
);

create table agent_policy.sync_log (
    tenant         text        not null default 'default',
    id             bigint      not null generated always as identity,
    source         text        not null,
    source_version text,
    rows_read      integer     not null,
    rows_loaded    integer     not null,
    rows_removed   integer     not null,
    refused        jsonb       not null default '[]',
    lag_ms         bigint,
    cleaned        integer     not null default 0,
    at             timestamptz not null,
    primary key (tenant, id)
);

-- turn 0: the row first read in the run (pinned); else the row that this turn reads (next_turn).
create table agent_ops.agent_policy_uses (
    tenant      text        not null default 'default',
    run_id      uuid        not null,
    purpose     text        not null check (length(purpose) <= 253),
    turn        integer     not null default 0,
    policy_name text        not null,
    version     integer     not null,
    source      text        not null,
    row         jsonb       not null,
    cleaned     integer     not null default 0,
    created_at  timestamptz not null default now(),
    primary key (tenant, run_id, purpose, turn),
    foreign key (tenant, run_id) references agent_ops.agent_runs on delete cascade
);

-- ---------------------------------------------------------------- tokens, stored hashed

create table casework_auth.tokens (
    tenant     text        not null default 'default',
    token_hash text        not null unique,
    principal  text        not null check (principal <> '' and length(principal) <= 320),
    roles      text[]      not null check (roles <@ array['viewer', 'reviewer', 'operator', 'admin']),
    created_at timestamptz not null default now(),
    revoked_at timestamptz,
    primary key (tenant, token_hash)
);
