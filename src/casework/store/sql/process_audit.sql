-- name: faults
with transactions as materialized (
    select uuid, parent_uuid, root_uuid, cloned_from, status, claim_id, natural_key, end_time
    from process_ops.transactions where tenant = %(tenant)s
), stages as materialized (
    select transaction_uuid, before, after, claim_id, process, made_by,
           lag(after) over log as previous, lead(id) over log is null as last, at, id
    from process_ops.transaction_stages where tenant = %(tenant)s
    window log as (partition by transaction_uuid order by id)
), steps as materialized (
    select step_id, transaction_uuid, claim_id, task, path, state, started_at, updated_at
    from process_ops.transaction_steps where tenant = %(tenant)s
)
select 'stage log ends otherwise' as fault, t.uuid as id,
       format('it is %%s and its last stage is %%s', t.status, coalesce(s.after, 'absent')) as found
from transactions t left join stages s on s.transaction_uuid = t.uuid and s.last
where s.after is distinct from t.status
union all
select 'stage log has a gap', transaction_uuid,
       format('from %%s to %%s, behind %%s', coalesce(before, 'nothing'), after, coalesce(previous, 'nothing'))
from stages where before is distinct from previous
union all
select 'end time is missing', uuid, format('it is %%s', status)
from transactions where status in ('COMPLETED', 'ABORTED') and end_time is null
union all
select 'ended in a tray', uuid, format('it is %%s and bears claim %%s', status, claim_id)
from transactions where end_time is not null and claim_id is not null
union all
select 'analytics are missing', t.uuid, 'it is COMPLETED and has no row'
from transactions t
where t.status = 'COMPLETED' and not exists (
    select from process_ops.transaction_analytics a where a.tenant = %(tenant)s and a.transaction_uuid = t.uuid)
union all
select 'analytics of what is not COMPLETED', a.transaction_uuid, format('it is %%s', coalesce(t.status, 'absent'))
from process_ops.transaction_analytics a left join transactions t on t.uuid = a.transaction_uuid
where a.tenant = %(tenant)s and t.status is distinct from 'COMPLETED'
union all
select 'claim is unknown', t.claim_id, format('%%s Transactions bear it, and no Monitor made it', count(*))
from transactions t
where t.claim_id is not null and not exists (
    select from process_ops.transaction_claims c where c.tenant = %(tenant)s and c.claim_id = t.claim_id)
group by t.claim_id
union all
select 'claim took more than it says', c.claim_id, format('%%s Transactions instead of %%s', count(*), c.taken)
from process_ops.transaction_claims c
join stages s on s.claim_id = c.claim_id and s.process = c.process and s.made_by = c.made_by and s.before is not null
where c.tenant = %(tenant)s
group by c.claim_id, c.taken having count(*) > c.taken
union all
select 'step is STARTED and its tray is over', s.transaction_uuid, format('step %%s of claim %%s', s.path, s.claim_id)
from steps s join transactions t on t.uuid = s.transaction_uuid
-- What another hand took out of its tray meanwhile, or the sweep, has an error that tells of it.
where s.state = 'STARTED' and t.claim_id is distinct from s.claim_id and not exists (
    select from process_ops.transaction_errors e
    where e.tenant = %(tenant)s and e.transaction_uuid = s.transaction_uuid and e.failed_at >= s.started_at)
union all
select 'visit is COMPLETED more than once', transaction_uuid, format('%%s times %%s of claim %%s', count(*), path, claim_id)
from steps where state = 'COMPLETED' group by transaction_uuid, claim_id, path having count(*) > 1
union all
select 'error is missing', t.uuid, format('it is %%s and has none', t.status)
from transactions t
where t.status in ('HAS_ERROR', 'ERROR_IN_PROGRESS') and not exists (
    select from process_ops.transaction_errors e where e.tenant = %(tenant)s and e.transaction_uuid = t.uuid)
union all
select 'family is incomplete', t.uuid,
       case when p.uuid is null then format('its parent %%s is absent', t.parent_uuid)
            else format('its root is %%s and that of its parent %%s', t.root_uuid, p.root_uuid) end
from transactions t left join transactions p on p.uuid = t.parent_uuid
where t.parent_uuid is not null and (p.uuid is null or p.root_uuid <> t.root_uuid)
union all
select 'arrival of another family', a.transaction_uuid, format('at %%s of parent %%s', a.task, a.parent_uuid)
from process_ops.transaction_arrivals a left join transactions t on t.uuid = a.transaction_uuid
where a.tenant = %(tenant)s and t.parent_uuid is distinct from a.parent_uuid
union all
select 'natural key is there more than once', (array_agg(uuid order by uuid))[2], natural_key
from transactions where natural_key is not null group by natural_key having count(*) > 1
order by fault, id
limit %(most)s

-- name: counted
select count(*) as transactions,
       count(*) filter (where end_time is null) as open,
       count(*) filter (where claim_id is not null) as in_trays,
       count(*) filter (where status = 'COMPLETED') as completed,
       count(*) filter (where status in ('HAS_ERROR', 'ERROR_IN_PROGRESS')) as failed,
       (select count(*) from process_ops.transaction_steps s where s.tenant = %(tenant)s) as steps
from process_ops.transactions where tenant = %(tenant)s
