-- What no writer may do, whoever it is: the runtime's own code, a script, a person with a console.

-- A run: terminal states never change, the version only grows, a status moves only with a higher version, and an
-- outcome needs an accepted decision that gives it.
create function agent_ops.guard_run() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    if tg_op = 'UPDATE' then
        if old.status in ('COMPLETED', 'FAILED', 'CANCELLED')
           and (new.tenant, new.run_id, new.status, new.version, new.outcome, new.failure)
               is distinct from (old.tenant, old.run_id, old.status, old.version, old.outcome, old.failure) then
            raise exception 'Run % is % and stays so; start another run.', old.run_id, old.status
                using errcode = 'check_violation', constraint = 'agent_runs_terminal_stays';
        end if;
        if new.version < old.version then
            raise exception 'Run % is at version %; version % is older and is not written.',
                old.run_id, old.version, new.version
                using errcode = 'check_violation', constraint = 'agent_runs_version_grows';
        end if;
        if new.status <> old.status and new.version <= old.version then
            raise exception 'Run % moves from % to % only with a version above %.',
                old.run_id, old.status, new.status, old.version
                using errcode = 'check_violation', constraint = 'agent_runs_version_grows';
        end if;
    end if;
    if new.outcome is not null
       and (tg_op = 'INSERT' or new.outcome is distinct from old.outcome)
       and not exists (
            select from agent_ops.agent_review_decisions d
            where d.tenant = new.tenant and d.run_id = new.run_id and d.accepted and d.outcome = new.outcome) then
        raise exception 'Run % cannot end as %: no person''s accepted decision gives that outcome.',
            new.run_id, new.outcome
            using errcode = 'check_violation', constraint = 'agent_runs_outcome_needs_decision';
    end if;
    return new;
end $$;
create trigger agent_runs_guard before insert or update on agent_ops.agent_runs
    for each row execute function agent_ops.guard_run();

-- A run goes as a whole, and only when it has ended: until then the engine still writes to it.
create function agent_ops.guard_run_delete() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    if old.status not in ('COMPLETED', 'FAILED', 'CANCELLED') then
        raise exception 'Run % is % and is not deleted before it has ended; cancel it first.', old.run_id, old.status
            using errcode = 'check_violation', constraint = 'agent_runs_deleted_when_ended';
    end if;
    return old;
end $$;
create trigger agent_runs_guard_delete before delete on agent_ops.agent_runs
    for each row execute function agent_ops.guard_run_delete();

-- A ledger row: a committed result is never rewritten, and the fence only grows.
create function agent_ops.guard_step() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    if old.state <> 'STARTED' then
        raise exception 'Step % is % and stays so.', old.path, old.state
            using errcode = 'check_violation', constraint = 'agent_steps_terminal_stays';
    end if;
    if new.attempt < old.attempt then
        raise exception 'Step % is at attempt %; attempt % is older.', old.path, old.attempt, new.attempt
            using errcode = 'check_violation', constraint = 'agent_steps_attempt_grows';
    end if;
    return new;
end $$;
create trigger agent_steps_guard before update on agent_ops.agent_steps
    for each row execute function agent_ops.guard_step();

-- A review is answered or closed once.
create function agent_ops.guard_review() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    if old.status <> 'pending' then
        raise exception 'Review % is % and stays so.', old.review_id, old.status
            using errcode = 'check_violation', constraint = 'agent_reviews_terminal_stays';
    end if;
    return new;
end $$;
create trigger agent_reviews_guard before update on agent_ops.agent_reviews
    for each row execute function agent_ops.guard_review();

-- A decision is evidence: it is written once, for a review of its own run, and goes only with its run.
create function agent_ops.guard_decision() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    if tg_op = 'INSERT' then
        if new.accepted and not exists (
                select from agent_ops.agent_reviews r
                where r.tenant = new.tenant and r.review_id = new.review_id and r.run_id = new.run_id) then
            raise exception 'Run % has no review % to decide.', new.run_id, new.review_id
                using errcode = 'check_violation', constraint = 'agent_review_decisions_accepted_has_review';
        end if;
        return new;
    end if;
    if tg_op = 'DELETE' and not exists (
            select from agent_ops.agent_runs r where r.tenant = old.tenant and r.run_id = old.run_id) then
        return old;
    end if;
    raise exception 'Decision % is kept as it was given.', old.decision_id
        using errcode = 'check_violation', constraint = 'agent_review_decisions_kept';
end $$;
create trigger agent_review_decisions_guard before insert or update or delete on agent_ops.agent_review_decisions
    for each row execute function agent_ops.guard_decision();

-- An applied workflow never changes; another version is another row.
create function agent_ops.guard_workflow_version() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    raise exception 'Version % of workflow % was applied and does not change; apply a new one.', old.version, old.name
        using errcode = 'check_violation', constraint = 'workflow_versions_immutable';
end $$;
create trigger workflow_versions_guard before update on agent_ops.workflow_versions
    for each row execute function agent_ops.guard_workflow_version();
