-- name: ensure
insert into process_ops.monitor (tenant, monitor_id, creation_time) values (%(tenant)s, %(monitor_id)s, %(at)s)
on conflict do nothing

-- name: get
select uuid, monitor_id, creation_time, completed_loops, last_polling_time, stopped
from process_ops.monitor where tenant = %(tenant)s and monitor_id = %(monitor_id)s

-- name: stopped
select stopped <> 0 from process_ops.monitor where tenant = %(tenant)s and monitor_id = %(monitor_id)s

-- name: set_stopped
update process_ops.monitor set stopped = %(stopped)s where tenant = %(tenant)s and monitor_id = %(monitor_id)s

-- name: configuration
select polling_interval, sleep_time, max_loops, max_running_time
from process_ops.monitor_configuration where tenant = %(tenant)s and monitor_class = %(monitor_class)s

-- name: configure
insert into process_ops.monitor_configuration as c (
    tenant, monitor_class, polling_interval, sleep_time, max_loops, max_running_time)
values (%(tenant)s, %(monitor_class)s, %(polling_interval)s, %(sleep_time)s, %(max_loops)s, %(max_running_time)s)
on conflict (tenant, monitor_class) do update set
    polling_interval = case when 'polling_interval' = any(%(given)s) then excluded.polling_interval else c.polling_interval end,
    sleep_time = case when 'sleep_time' = any(%(given)s) then excluded.sleep_time else c.sleep_time end,
    max_loops = case when 'max_loops' = any(%(given)s) then excluded.max_loops else c.max_loops end,
    max_running_time = case when 'max_running_time' = any(%(given)s) then excluded.max_running_time else c.max_running_time end

-- name: told
with monitor as (
    insert into process_ops.monitor as m (tenant, monitor_id, creation_time, completed_loops, last_polling_time)
    values (%(tenant)s, %(monitor_id)s, %(at)s, %(loops)s, %(last_poll)s)
    on conflict (tenant, monitor_id) do update
        set completed_loops = excluded.completed_loops,
            last_polling_time = coalesce(excluded.last_polling_time, m.last_polling_time)
    returning uuid
)
insert into process_ops.monitor_rounds (
    tenant, monitor_uuid, monitor_class, life, round, polled, claimed, trays, taken_in, repeated, bad, failure,
    loop_record, stopped, cleaned, at)
select %(tenant)s, m.uuid, %(monitor_class)s, %(life)s, %(round)s, %(polled)s, %(claimed)s, %(trays)s, %(taken_in)s,
       %(repeated)s, %(bad)s, %(failure)s, %(loop_record)s, %(stopped)s, %(cleaned)s, %(at)s
from monitor m
on conflict do nothing

-- name: rounds
select r.monitor_class, r.life, r.round, r.polled, r.at, r.claimed, r.trays, r.taken_in, r.repeated, r.bad, r.failure,
       r.loop_record, r.stopped
from process_ops.monitor_rounds r
join process_ops.monitor m on m.tenant = r.tenant and m.uuid = r.monitor_uuid
where m.tenant = %(tenant)s and m.monitor_id = %(monitor_id)s
order by r.at desc, r.round desc
limit %(most)s

-- name: records
select transaction_uuid, claim_id, _sys_repeat as sys_repeat, at from process_ops.monitor_records
where tenant = %(tenant)s and monitor_id = %(monitor_id)s
order by at desc, _sys_repeat
limit %(most)s
