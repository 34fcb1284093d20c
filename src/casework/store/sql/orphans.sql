-- name: claimed_since
select tenant, claim_id, min(process) as process, count(*) as transactions, max(updated_at) as moved_at
from process_ops.transactions
where claim_id is not null and end_time is null and (tenant, claim_id) > (%(tenant)s, %(claim_id)s)
group by tenant, claim_id
having max(updated_at) < %(before)s
order by tenant, claim_id
limit %(most)s
