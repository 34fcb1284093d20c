-- What it does stands with the function (migration `computed_steps`).
-- name: link
select met, output_written, run_moved, claimed, run_status, flag
from agent_ops.write_link(%(tenant)s, %(run_id)s, %(link)s::jsonb, %(whole)s)
