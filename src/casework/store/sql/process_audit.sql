-- Checks of the books of business processes. Each gives what is at fault, with what was found, and in `total` how many of
-- these there are, of which `most` are told. The erasure role may have taken any Transaction that has ended, with its rows
-- but not its claims: that a row is gone is no fault where it can have gone so.

-- name: snapshot
set transaction isolation level repeatable read, read only

-- name: counted
select count(*) as transactions,
       count(*) filter (where end_time is null) as open,
       count(*) filter (where claim_id is not null) as in_trays,
       count(*) filter (where status = 'COMPLETED') as completed,
       count(*) filter (where status in ('HAS_ERROR', 'ERROR_IN_PROGRESS')) as failed,
       (select count(*) from process_ops.transaction_steps s where s.tenant = %(tenant)s) as steps
from process_ops.transactions where tenant = %(tenant)s

-- ---------------------------------------------------------------- statuses and their log

-- name: log_ends_otherwise
select t.uuid as id, format('it is %%s and its last stage is %%s', t.status, coalesce(s.after, 'absent')) as found,
       count(*) over () as total
from process_ops.transactions t
left join (
    select distinct on (transaction_uuid) transaction_uuid, after from process_ops.transaction_stages
    where tenant = %(tenant)s order by transaction_uuid, id desc
) s on s.transaction_uuid = t.uuid
where t.tenant = %(tenant)s and s.after is distinct from t.status
order by t.uuid limit %(most)s

-- name: log_has_a_gap
select transaction_uuid as id,
       format('from %%s to %%s, behind %%s', coalesce(before, 'nothing'), after, coalesce(previous, 'nothing')) as found,
       count(*) over () as total
from (
    select transaction_uuid, id, before, after, lag(after) over (partition by transaction_uuid order by id) as previous
    from process_ops.transaction_stages where tenant = %(tenant)s
) s
where before is distinct from previous or before = after
order by transaction_uuid, s.id limit %(most)s

-- name: log_goes_on_behind_its_end
select transaction_uuid as id, format('from %%s to %%s by %%s', before, after, made_by) as found,
       count(*) over () as total
from process_ops.transaction_stages
where tenant = %(tenant)s and before in ('COMPLETED', 'ABORTED')
order by transaction_uuid, transaction_stages.id limit %(most)s

-- name: end_time_missing
select uuid as id, format('it is %%s', status) as found, count(*) over () as total
from process_ops.transactions
where tenant = %(tenant)s and status in ('COMPLETED', 'ABORTED') and end_time is null
order by uuid limit %(most)s

-- A project's own terminal statuses are known by the end time that goes with them.
-- name: ended_in_a_tray
select uuid as id, format('it is %%s and bears claim %%s', status, claim_id) as found, count(*) over () as total
from process_ops.transactions
where tenant = %(tenant)s and end_time is not null and claim_id is not null
order by uuid limit %(most)s

-- name: natural_key_twice
select (array_agg(uuid order by id))[2] as id, format('%%s times %%s', count(*), natural_key) as found,
       count(*) over () as total
from process_ops.transactions
where tenant = %(tenant)s and natural_key is not null
group by natural_key having count(*) > 1
order by 1 limit %(most)s

-- ---------------------------------------------------------------- analytics

-- name: analytics_missing
select t.uuid as id, 'it is COMPLETED and has no row' as found, count(*) over () as total
from process_ops.transactions t
where t.tenant = %(tenant)s and t.status = 'COMPLETED' and not exists (
    select from process_ops.transaction_analytics a where a.tenant = %(tenant)s and a.transaction_uuid = t.uuid)
order by t.uuid limit %(most)s

-- name: analytics_of_another_status
select a.transaction_uuid as id, format('it is %%s', coalesce(t.status, 'absent')) as found, count(*) over () as total
from process_ops.transaction_analytics a
left join process_ops.transactions t on t.tenant = %(tenant)s and t.uuid = a.transaction_uuid
where a.tenant = %(tenant)s and t.status is distinct from 'COMPLETED'
order by a.transaction_uuid limit %(most)s

-- name: analytics_say_otherwise
select t.uuid as id,
       concat_ws(', ',
           case when a.root_uuid <> t.root_uuid then format('root %%s for %%s', a.root_uuid, t.root_uuid) end,
           case when a.start_time <> t.start_time then format('start %%s for %%s', a.start_time, t.start_time) end,
           case when a.end_time <> t.end_time then format('end %%s for %%s', a.end_time, t.end_time) end,
           case when a.straight_through <> t.straight_through
                then format('straight through %%s for %%s', a.straight_through, t.straight_through) end,
           case when a.by_hand <> t.by_hand then format('by hand %%s for %%s', a.by_hand, t.by_hand) end,
           case when a.errors <> coalesce(e.errors, 0) then format('%%s errors for %%s', a.errors, coalesce(e.errors, 0)) end
       ) as found,
       count(*) over () as total
from process_ops.transaction_analytics a
join process_ops.transactions t on t.tenant = %(tenant)s and t.uuid = a.transaction_uuid and t.status = 'COMPLETED'
left join (
    select transaction_uuid, count(*) as errors from process_ops.transaction_errors
    where tenant = %(tenant)s group by transaction_uuid
) e on e.transaction_uuid = t.uuid
where a.tenant = %(tenant)s
  and (a.root_uuid, a.start_time, a.end_time, a.straight_through, a.by_hand, a.errors)
      is distinct from (t.root_uuid, t.start_time, t.end_time, t.straight_through, t.by_hand, coalesce(e.errors, 0))
order by t.uuid limit %(most)s

-- ---------------------------------------------------------------- claims and trays

-- name: claim_unknown
select e.claim_id as id, format('%%s Transactions bear it or did, and no Monitor made it', count(*)) as found,
       count(*) over () as total
from (
    select claim_id, uuid from process_ops.transactions where tenant = %(tenant)s and claim_id is not null
    union
    select claim_id, transaction_uuid from process_ops.transaction_steps where tenant = %(tenant)s
    union
    select claim_id, transaction_uuid from process_ops.transaction_stages
    where tenant = %(tenant)s and claim_id is not null
) e
where not exists (
    select from process_ops.transaction_claims c where c.tenant = %(tenant)s and c.claim_id = e.claim_id)
group by e.claim_id
order by e.claim_id limit %(most)s

-- Children of a split are born in a tray and were not taken.
-- name: claim_took_more
select c.claim_id as id, format('%%s Transactions instead of %%s', count(*), c.taken) as found, count(*) over () as total
from (
    select claim_id, uuid from process_ops.transactions where tenant = %(tenant)s and claim_id is not null
    union
    select claim_id, transaction_uuid from process_ops.transaction_steps where tenant = %(tenant)s
    union
    select claim_id, transaction_uuid from process_ops.transaction_stages
    where tenant = %(tenant)s and claim_id is not null
    except
    select claim_id, transaction_uuid from process_ops.transaction_stages
    where tenant = %(tenant)s and claim_id is not null and before is null
) e
join process_ops.transaction_claims c on c.tenant = %(tenant)s and c.claim_id = e.claim_id
group by c.claim_id, c.taken having count(*) > c.taken
order by c.claim_id limit %(most)s

-- The claims that a Transaction bore, one after the other: none comes again behind another.
-- name: trays_overlap
select uuid as id, format('claim %%s holds it again behind another', claim_id) as found, count(*) over () as total
from (
    select uuid, claim_id, lag(claim_id) over (partition by uuid order by place) as previous
    from (
        select transaction_uuid as uuid, claim_id, id as place from process_ops.transaction_stages
        where tenant = %(tenant)s and claim_id is not null
        union all
        select uuid, claim_id, 9223372036854775807 from process_ops.transactions
        where tenant = %(tenant)s and claim_id is not null
    ) h
) s
where claim_id is distinct from previous
group by uuid, claim_id having count(*) > 1
order by uuid, claim_id limit %(most)s

-- What failed, what the sweep found and what a person answered for went out of its tray, whatever was under way: it has a
-- stage that tells of it, made neither by the claim itself, nor by the Finalizer, nor by a task of the tray.
-- name: step_left_started
select s.transaction_uuid as id, format('step %%s of claim %%s', s.path, s.claim_id) as found, count(*) over () as total
from process_ops.transaction_steps s
join process_ops.transactions t on t.tenant = %(tenant)s and t.uuid = s.transaction_uuid
where s.tenant = %(tenant)s and s.state = 'STARTED' and t.claim_id is distinct from s.claim_id and not exists (
    select from process_ops.transaction_stages g
    where g.tenant = %(tenant)s and g.transaction_uuid = s.transaction_uuid and g.claim_id = s.claim_id
      and g.before is not null and g.made_by <> 'finalizer'
      and not exists (select from process_ops.transaction_claims c
                      where c.tenant = %(tenant)s and c.claim_id = g.claim_id and c.made_by = g.made_by)
      and not exists (select from process_ops.transaction_steps d
                      where d.tenant = %(tenant)s and d.transaction_uuid = s.transaction_uuid
                        and d.claim_id = s.claim_id and d.task = g.made_by and d.state = 'COMPLETED'))
order by s.transaction_uuid, s.path limit %(most)s

-- ---------------------------------------------------------------- the ledger

-- name: visit_completed_twice
select transaction_uuid as id, format('%%s times %%s of claim %%s', count(*), path, claim_id) as found,
       count(*) over () as total
from process_ops.transaction_steps where tenant = %(tenant)s and state = 'COMPLETED'
group by transaction_uuid, claim_id, path having count(*) > 1
order by transaction_uuid, path limit %(most)s

-- A status that a task set in its tray, a child that it split off, an arrival at it. A person answers only for what has an
-- error, so what is done to that can be a person's.
-- name: work_without_step
select w.uuid as id, w.found, count(*) over () as total
from (
    select g.transaction_uuid as uuid, format('%%s set %%s', g.made_by, g.after) as found
    from process_ops.transaction_stages g
    join process_ops.transaction_claims c
        on c.tenant = %(tenant)s and c.claim_id = g.claim_id and c.made_by <> g.made_by
    left join process_ops.transaction_steps s
        on s.tenant = %(tenant)s and s.transaction_uuid = g.transaction_uuid and s.claim_id = g.claim_id
           and s.task = g.made_by and s.state = 'COMPLETED'
    where g.tenant = %(tenant)s and g.made_by not in ('finalizer', 'error')
      and g.before not in ('HAS_ERROR', 'ERROR_IN_PROGRESS') and s.step_id is null
    union all
    select g.transaction_uuid, format('%%s split it off %%s', g.made_by, p.uuid)
    from process_ops.transaction_stages g
    join process_ops.transactions k on k.tenant = %(tenant)s and k.uuid = g.transaction_uuid
    join process_ops.transactions p on p.tenant = %(tenant)s and p.uuid = k.parent_uuid
    left join process_ops.transaction_steps s
        on s.tenant = %(tenant)s and s.transaction_uuid = p.uuid and s.claim_id = g.claim_id
           and s.task = g.made_by and s.state = 'COMPLETED'
    where g.tenant = %(tenant)s and g.before is null and g.claim_id is not null and s.step_id is null
    union all
    select a.transaction_uuid, format('it has come to %%s', a.task)
    from process_ops.transaction_arrivals a
    left join process_ops.transaction_steps s
        on s.tenant = %(tenant)s and s.transaction_uuid = a.transaction_uuid and s.task = a.task
           and s.state = 'COMPLETED'
    where a.tenant = %(tenant)s and s.step_id is null
) w
order by w.uuid, w.found limit %(most)s

-- name: run_without_step
select r.transaction_uuid as id, format('run %%s of step %%s', r.run_id, r.step_id) as found, count(*) over () as total
from process_ops.transaction_runs r
left join process_ops.transaction_steps s
    on s.tenant = %(tenant)s and s.step_id = r.step_id and s.transaction_uuid = r.transaction_uuid and s.task = r.task
where r.tenant = %(tenant)s and s.step_id is null
order by r.transaction_uuid, r.run_id limit %(most)s

-- name: person_not_told
select t.uuid as id, format('a person answered at %%s', min(s.task)) as found, count(*) over () as total
from process_ops.transactions t
join process_ops.transaction_steps s
    on s.tenant = %(tenant)s and s.transaction_uuid = t.uuid and s.kind = 'manual' and s.state = 'COMPLETED'
where t.tenant = %(tenant)s and t.straight_through
group by t.uuid
order by t.uuid limit %(most)s

-- ---------------------------------------------------------------- errors and what becomes of them

-- name: error_missing
select g.transaction_uuid as id, format('%%s failed it at %%s', g.process, g.at) as found, count(*) over () as total
from process_ops.transaction_stages g
where g.tenant = %(tenant)s and g.after = 'HAS_ERROR' and not exists (
    select from process_ops.transaction_errors e
    where e.tenant = %(tenant)s and e.transaction_uuid = g.transaction_uuid and e.failed_at = g.at)
order by g.transaction_uuid, g.id limit %(most)s

-- name: error_of_another_root
select t.uuid as id, format('error %%s says %%s, its root is %%s', e.uuid, e.root_uuid, t.root_uuid) as found,
       count(*) over () as total
from process_ops.transaction_errors e
join process_ops.transactions t on t.tenant = %(tenant)s and t.uuid = e.transaction_uuid
where e.tenant = %(tenant)s and e.root_uuid <> t.root_uuid
order by t.uuid, e.uuid limit %(most)s

-- name: status_before_error
select t.uuid as id,
       format('it says %%s, and it failed in %%s', coalesce(t.status_before_error, 'nothing'), g.before) as found,
       count(*) over () as total
from process_ops.transactions t
join (
    select distinct on (transaction_uuid) transaction_uuid, before from process_ops.transaction_stages
    where tenant = %(tenant)s and after = 'HAS_ERROR' and before <> 'ERROR_IN_PROGRESS'
    order by transaction_uuid, id desc
) g on g.transaction_uuid = t.uuid
where t.tenant = %(tenant)s and t.status in ('HAS_ERROR', 'ERROR_IN_PROGRESS')
  and t.status_before_error is distinct from g.before
order by t.uuid limit %(most)s

-- name: hand_not_marked
select t.uuid as id,
       case when t.by_hand then 'it is marked, and nobody completed it by hand'
            else 'it has gone from its error to COMPLETED, and is not marked' end as found,
       count(*) over () as total
from process_ops.transactions t
left join (
    select distinct transaction_uuid from process_ops.transaction_stages
    where tenant = %(tenant)s and after = 'COMPLETED' and before in ('HAS_ERROR', 'ERROR_IN_PROGRESS')
) g on g.transaction_uuid = t.uuid
where t.tenant = %(tenant)s and t.by_hand is distinct from (g.transaction_uuid is not null)
order by t.uuid limit %(most)s

-- name: clone_of_open
select c.uuid as id,
       case when f.status <> 'ABORTED' then format('%%s, which it took the place of, is %%s', f.uuid, f.status)
            else format('%%s, which it took the place of, has another parent', f.uuid) end as found,
       count(*) over () as total
from process_ops.transactions c
join process_ops.transactions f on f.tenant = %(tenant)s and f.uuid = c.cloned_from
where c.tenant = %(tenant)s and (f.status <> 'ABORTED' or c.parent_uuid is distinct from f.parent_uuid)
order by c.uuid limit %(most)s

-- name: cloned_twice
select cloned_from as id, format('%%s clones: %%s', count(*), string_agg(uuid::text, ', ' order by id)) as found,
       count(*) over () as total
from process_ops.transactions
where tenant = %(tenant)s and cloned_from is not null
group by cloned_from having count(*) > 1
order by cloned_from limit %(most)s

-- ---------------------------------------------------------------- families

-- Where the parent is gone, nobody can tell what its root was.
-- name: root_wrong
select t.uuid as id,
       case when t.parent_uuid is null then format('its root is %%s, and it has no parent', t.root_uuid)
            else format('its root is %%s and that of its parent %%s', t.root_uuid, p.root_uuid) end as found,
       count(*) over () as total
from process_ops.transactions t
left join process_ops.transactions p on p.tenant = %(tenant)s and p.uuid = t.parent_uuid
where t.tenant = %(tenant)s
  and t.root_uuid <> case when t.parent_uuid is null then t.uuid else coalesce(p.root_uuid, t.root_uuid) end
order by t.uuid limit %(most)s

-- A clone keeps the parent of what it takes the place of.
-- name: arrival_elsewhere
select a.transaction_uuid as id,
       format('at %%s of parent %%s, and its own is %%s', a.task, a.parent_uuid, coalesce(t.parent_uuid::text, 'none'))
           as found,
       count(*) over () as total
from process_ops.transaction_arrivals a
left join process_ops.transactions t on t.tenant = %(tenant)s and t.uuid = a.transaction_uuid
where a.tenant = %(tenant)s and t.parent_uuid is distinct from a.parent_uuid
order by a.transaction_uuid limit %(most)s

-- A join waits for all children of its parent. Where no split came behind it, each child was there: it has arrived, or was
-- aborted, and then a clone may have come in its place.
-- name: joined_without_child
select j.transaction_uuid as id, format('at %%s without %%s', j.path, c.uuid) as found, count(*) over () as total
from process_ops.transaction_steps j
join (
    select transaction_uuid, max(ended_at) as ended_at from process_ops.transaction_steps
    where tenant = %(tenant)s and kind = 'split' and state = 'COMPLETED' group by transaction_uuid
) s on s.transaction_uuid = j.transaction_uuid and s.ended_at <= j.started_at
join process_ops.transactions c
    on c.tenant = %(tenant)s and c.parent_uuid = j.transaction_uuid and c.cloned_from is null and c.status <> 'ABORTED'
left join process_ops.transaction_arrivals a on a.tenant = %(tenant)s and a.transaction_uuid = c.uuid
where j.tenant = %(tenant)s and j.kind = 'join' and j.state = 'COMPLETED' and a.transaction_uuid is null
order by j.transaction_uuid, c.uuid limit %(most)s

-- ---------------------------------------------------------------- Monitors

-- A Monitor that is stopped by its Rules has emitted the record that they did not take back.
-- name: loop_records
select r.monitor_uuid as id,
       format('round %%s of life %%s: %%s, %%s, %%s', r.round, r.life,
              case when r.polled then 'it polled' else 'no poll' end,
              case when r.loop_record then 'a loop record' else 'no loop record' end,
              coalesce('stopped: ' || r.stopped, 'it went on')) as found,
       count(*) over () as total
from process_ops.monitor_rounds r
where r.tenant = %(tenant)s
  and r.loop_record <> (r.polled and coalesce(r.stopped, 'by_rule') = 'by_rule')
order by r.monitor_uuid, r.life, r.round limit %(most)s

-- A poll that was repeated may have claimed what it tells nobody.
-- name: rounds_tell_more
select m.uuid as id, format('%%s: its rounds tell of %%s Transactions, its claims took %%s', m.monitor_id, r.claimed,
                            coalesce(c.taken, 0)) as found,
       count(*) over () as total
from process_ops.monitor m
join (
    select monitor_uuid, sum(claimed) as claimed from process_ops.monitor_rounds
    where tenant = %(tenant)s group by monitor_uuid
) r on r.monitor_uuid = m.uuid
left join (
    select process, sum(taken) as taken from process_ops.transaction_claims where tenant = %(tenant)s group by process
) c on c.process = m.monitor_id
where m.tenant = %(tenant)s and r.claimed > coalesce(c.taken, 0)
order by m.uuid limit %(most)s
