-- name: write
insert into agent_ops.agent_messages (
    tenant, message_id, run_id, path, position, agent, role, content, requests, call_id, tool, parts, cleaned, created_at)
values (
    %(tenant)s, %(message_id)s, %(run_id)s, %(path)s, %(position)s, %(agent)s, %(role)s, %(content)s, %(requests)s,
    %(call_id)s, %(tool)s, %(parts)s, %(cleaned)s, coalesce(%(at)s, clock_timestamp()))
on conflict do nothing

-- name: same
select position = %(position)s and run_id = %(run_id)s and path = %(path)s and agent = %(agent)s and role = %(role)s
       and content = %(content)s and requests = %(requests)s::jsonb and call_id is not distinct from %(call_id)s::text
       and tool is not distinct from %(tool)s::text and parts is not distinct from %(parts)s::jsonb
from agent_ops.agent_messages
where tenant = %(tenant)s and message_id = %(message_id)s

-- name: own
select true from agent_ops.agent_messages where tenant = %(tenant)s and message_id = %(message_id)s and role = %(role)s

-- name: first_hole
select min(expected)
from (
    select position, row_number() over (order by position) as expected
    from agent_ops.agent_messages
    where tenant = %(tenant)s and run_id = %(run_id)s and position <= %(up_to)s
    union all
    select null, 1 + count(*)
    from agent_ops.agent_messages
    where tenant = %(tenant)s and run_id = %(run_id)s and position <= %(up_to)s
) numbered
where expected <= %(up_to)s and position is distinct from expected

-- name: own_messages
select count(*) from agent_ops.agent_messages
where tenant = %(tenant)s and run_id = %(run_id)s and position <= %(up_to)s and agent = %(agent)s

-- name: transcript
select position, agent, role, content, requests, call_id, tool, parts
from agent_ops.agent_messages
where tenant = %(tenant)s and run_id = %(run_id)s and position <= %(up_to)s and agent = %(agent)s and role <> 'note'
order by position

-- name: tool_request
select requests -> %(index)s::integer
from agent_ops.agent_messages
where tenant = %(tenant)s and run_id = %(run_id)s and position = %(position)s and role = 'assistant'

-- name: page
select message_id, id, run_id, path, position, agent, role, content, requests, call_id, tool, parts, cleaned, created_at
from agent_ops.agent_messages
where tenant = %(tenant)s and run_id = %(run_id)s and position > %(after)s
order by position
limit %(limit)s
