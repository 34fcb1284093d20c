-- name: create
insert into casework_auth.tokens (tenant, token_hash, principal, roles)
values (%(tenant)s, %(hash)s, %(principal)s, %(roles)s)

-- name: find
select principal, tenant, roles from casework_auth.tokens
where token_hash = %(hash)s and revoked_at is null

-- name: list
select left(token_hash, %(length)s) as token_id, tenant, principal, roles, created_at, revoked_at
from casework_auth.tokens
where tenant = %(tenant)s
order by created_at desc, token_hash

-- name: revoke
update casework_auth.tokens set revoked_at = now()
where tenant = %(tenant)s and starts_with(token_hash, %(token_id)s) and revoked_at is null
