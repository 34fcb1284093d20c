"""A review is left open, everything is stopped and started again; then it is approved."""

from __future__ import annotations

from casework.drills.ground import Ground
from casework.drills.promises import Report
from casework.drills.tally import figures, promise_calls, tally

NAME = "restart"
TITLE = "A review is left open while everything is stopped and started again"


async def play(ground: Ground, report: Report) -> None:
    """Stop API, workers, Temporal and PostgreSQL; the decision is sent before a worker is up again."""
    rehearsal, tag = ground.rehearsal, "drill-restart"
    await ground.crew.staff(1)
    run_id = await ground.submit(tag)
    waiting = await ground.api.until_review(run_id)
    pid = ground.crew.kill_one()
    report.tell(f"The run awaits its review. Worker {pid} was killed (SIGKILL).")
    await ground.stop_stack()
    report.tell("API, Temporal and PostgreSQL were stopped.")
    await ground.start_stack()
    report.tell("PostgreSQL, Temporal and the API were started again.")
    again = await ground.api.run(run_id)
    same = (again["status"], again["review"]["review_id"]) == ("AWAITING_REVIEW", waiting["review"]["review_id"])
    report.promise("The run still awaits the same review", same, again["status"])
    status, _ = await ground.api.decide(
        waiting["review"]["review_id"], rehearsal.approve, "The drill approves.", wait_s=None
    )
    report.promise("A decision is received while no worker is up", status == 202, f"HTTP {status}")
    await ground.crew.staff(1)
    report.tell(f"The review was approved, then worker {ground.crew.pids[0]} was started.")
    ended = await ground.api.until_end(run_id)
    count = await tally(ground, run_id)
    report.counts.update(await figures(ground, run_id))
    promise_calls(report, [count])
    found = f"{ended['status']}, {ended['outcome']}"
    report.promise("The run completed as decided", ended["outcome"] == rehearsal.outcome, found)
    report.promise("Nothing was called again", count.repeats == 0 and count.duplicates == 0, report.counts["calls"])
