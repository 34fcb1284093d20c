"""A browser that is behind, and two people at once: what counts is decided once, and everyone else is told."""

from __future__ import annotations

import asyncio

from casework.drills.ground import Ground
from casework.drills.promises import Report
from casework.drills.tally import figures

NAME = "stale-decision"
TITLE = "A stale decision, and two reviewers at once"


async def play(ground: Ground, report: Report) -> None:
    """Answer the first review again when the second is open; then two reviewers answer the second at one moment."""
    rehearsal, tag = ground.rehearsal, "drill-stale"
    await ground.crew.staff(1)
    run_id = await ground.submit(tag)
    first = (await ground.api.until_review(run_id))["review"]["review_id"]
    await ground.api.decide(first, rehearsal.more_info, rehearsal.question)
    second = (await ground.api.until_review(run_id, turn=2))["review"]["review_id"]
    report.tell(f"The first review was answered {rehearsal.more_info}; a second one is open.")
    await _stale(ground, report, run_id, first, second)
    await _race(ground, report, run_id, second)


async def _stale(ground: Ground, report: Report, run_id: str, first: str, second: str) -> None:
    status, told = await ground.api.decide(first, ground.rehearsal.approve, "From a page opened yesterday.")
    report.tell(f"An approval of the first review was answered with HTTP {status}: {told.get('detail', '')}")
    run = await ground.api.run(run_id)
    report.promise("The stale decision was refused with 409", status == 409, f"HTTP {status}")
    before = told.get("decision") or {}
    said = f"{before.get('command')} by {before.get('reviewer')}"
    report.promise("The refusal says who decided what", {"command", "reviewer", "at"} <= set(before), said)
    waits = run["status"] == "AWAITING_REVIEW" and run["review"]["review_id"] == second
    report.promise("The run still awaits the second review", waits, run["status"])


async def _race(ground: Ground, report: Report, run_id: str, review_id: str) -> None:
    rehearsal = ground.rehearsal
    async with await ground.reviewer("reviewer-a") as first, await ground.reviewer("reviewer-b") as second:
        answers = await asyncio.gather(
            first.decide(review_id, rehearsal.approve, "I approve."),
            second.decide(review_id, rehearsal.reject, "I reject."),
        )
    statuses = sorted(status for status, _ in answers)
    report.tell(f"Two reviewers answered the second review at one moment: HTTP {statuses[0]} and HTTP {statuses[1]}.")
    ended = await ground.api.until_end(run_id)
    given = ended["review"]["given"]
    won = [decision for decision in given if decision["accepted"]]
    told = [body.get("command") for status, body in answers if status == 200]
    report.counts.update(await figures(ground, run_id))
    report.counts.update(decisions_sent=4, decisions_refused=1 + sum(status == 409 for status in statuses))
    report.promise("Exactly one of the two was accepted", len(won) == 1 and statuses == [200, 409], statuses)
    right = len(won) == 1 and told == [won[0]["command"]] and ended["outcome"] == won[0]["outcome"]
    report.promise(
        "The run ended as the winner decided", right, f"{', '.join(map(str, told))}; outcome {ended['outcome']}"
    )
