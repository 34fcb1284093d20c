"""A worker dies after tools have completed; another goes on, and the completed tools are not called again."""

from __future__ import annotations

from casework.drills.ground import Ground
from casework.drills.promises import Report
from casework.drills.tally import figures, promise_calls, tally
from casework.drills.waiting import until_killed
from casework.durable.activities.faults import Fault

NAME = "crash"
TITLE = "A worker is killed after completed tools"


async def play(ground: Ground, report: Report) -> None:
    """Kill at the claim of the second stage; what the first stage did must not be done again."""
    rehearsal, tag = ground.rehearsal, "drill-crash"
    done, next_tool = rehearsal.stages[0], rehearsal.stages[1][0]
    ground.faults.plan([Fault("crash", "claimed", f"*/{next_tool}.1", ground.run_id(tag))])
    await ground.crew.staff(1)
    run_id = await ground.submit(tag)
    mark = await until_killed(ground, "crash")
    report.tell(f"Worker {mark.pid} was killed (SIGKILL) at {mark.path}; {', '.join(done)} had completed.")
    await ground.crew.staff(1)
    report.tell(f"Worker {ground.crew.pids[0]} was started.")
    waiting = await ground.api.until_review(run_id)
    await ground.api.decide(waiting["review"]["review_id"], rehearsal.approve, "The drill approves.")
    ended = await ground.api.until_end(run_id)
    count = await tally(ground, run_id)
    firsts = [count.of(tool) for tool in done]
    report.counts.update(await figures(ground, run_id))
    report.counts["calls_at_destination"] = {step.tool: step.calls for step in count.steps if step.calls is not None}
    acts = {step.tool: step.acts for step in firsts}
    report.promise("Completed tools were not called again", all(step.acts == 1 for step in firsts), acts)
    seen = {step.tool: step.calls for step in firsts if step.calls is not None}
    report.promise("The destination saw each of their calls once", all(calls == 1 for calls in seen.values()), seen)
    report.promise("No effect happened twice", count.duplicates == 0, f"{count.duplicates} duplicates")
    report.promise("Every evidence row is there", not count.missing, f"missing: {', '.join(count.missing) or 'none'}")
    promise_calls(report, [count])
    found = f"{ended['status']}, {ended['outcome']}"
    report.promise("The run completed as decided", ended["outcome"] == rehearsal.outcome, found)
