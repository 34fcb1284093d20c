-- name: put
insert into process_ops.inbox_items (tenant, inbox, key, body, body_hash, received, cleaned)
values (%(tenant)s, %(inbox)s, %(key)s, %(body)s, %(body_hash)s, %(received)s, %(cleaned)s)
on conflict do nothing

-- name: get
select key, body, body_hash, received, state, tries, why from process_ops.inbox_items
where tenant = %(tenant)s and inbox = %(inbox)s and key = %(key)s

-- name: waiting
select key, body, body_hash, received, state, tries, why from process_ops.inbox_items
where tenant = %(tenant)s and inbox = %(inbox)s and state = 'waiting'
order by tries, received, key
limit %(most)s

-- name: told
update process_ops.inbox_items
set state = %(state)s, tries = tries + 1, why = %(why)s, told_at = %(at)s, cleaned = cleaned + %(cleaned)s
where tenant = %(tenant)s and inbox = %(inbox)s and key = %(key)s and state = 'waiting'
