"""A result is committed and the worker dies before it can say so: one row, the same content, no second call."""

from __future__ import annotations

from casework.drills.ground import Ground
from casework.drills.promises import Report
from casework.drills.tally import figures, promise_calls, tally
from casework.drills.waiting import until_killed
from casework.durable.activities.faults import Fault

NAME = "lost-acknowledgement"
TITLE = "A commit whose acknowledgement is lost"


async def play(ground: Ground, report: Report) -> None:
    """Kill between the commit and the report of the tool with an effect outside."""
    rehearsal, tag, tool = ground.rehearsal, "drill-lost-ack", ground.rehearsal.destination.keyed[0]
    ground.faults.plan([Fault("lost-ack", "committed", f"*/{tool}.1", ground.run_id(tag))])
    await ground.crew.staff(2)
    run_id = await ground.submit(tag)
    mark = await until_killed(ground, "lost-ack")
    before = (await ground.api.run(run_id))["evidence"].get(tool)
    report.tell(f"Worker {mark.pid} was killed (SIGKILL) when {tool} was committed and not reported.")
    waiting = await ground.api.until_review(run_id)
    await ground.api.decide(waiting["review"]["review_id"], rehearsal.approve, "The drill approves.")
    ended = await ground.api.until_end(run_id)
    count = await tally(ground, run_id)
    step, rows = count.of(tool), [each for each in count.steps if each.tool == tool]
    report.counts.update(await figures(ground, run_id))
    report.counts.update(calls_at_destination=step.calls, effects_at_destination=step.effects, rows=len(rows))
    seen = f"{step.calls} calls, {step.effects} effects"
    report.promise("The committed result was not asked for again", step.calls == 1 and step.acts == 1, seen)
    report.promise("There is one row with one completed attempt", len(rows) == 1 and count.single, f"{len(rows)} rows")
    same = before is not None and ended["evidence"].get(tool) == before
    report.promise("Its content is the same as at the kill", same, "same" if same else "it differs")
    promise_calls(report, [count])
    found = f"{ended['status']}, {ended['outcome']}"
    report.promise("The run completed as decided", ended["outcome"] == rehearsal.outcome, found)
