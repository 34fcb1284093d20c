"""The owner changes policy in mid-run: the open run keeps the version it read first, a later run sees the new one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from casework.drills.ground import Ground
from casework.drills.promises import Report
from casework.drills.tally import figures

NAME = "policy-change"
TITLE = "Policy is changed in mid-run"
SECONDS = 15.0
"""Within so many seconds a later run must have evaluated the new version; the case itself is part of that time."""


async def play(ground: Ground, report: Report) -> None:
    """Change the policy between two turns of a run, then start another run."""
    rehearsal = ground.rehearsal
    assert rehearsal.policy is not None and rehearsal.changed_policy is not None, "played only where there are two"  # noqa: PT018  # one condition
    await ground.crew.staff(1)
    open_run = await ground.submit("drill-policy-open")
    first = await ground.api.until_review(open_run)
    try:
        await ground.load_policy(rehearsal.changed_policy)
        changed = time.monotonic()
        report.tell(f"The owner loaded {rehearsal.changed_policy.name} while the run was open.")
        later_run = await ground.submit("drill-policy-later")
        later = await ground.api.until_review(later_run)
        seen_after = time.monotonic() - changed
        await ground.api.decide(first["review"]["review_id"], rehearsal.more_info, rehearsal.look_again)
        second = await ground.api.until_review(open_run, turn=2)
    finally:
        await ground.load_policy(rehearsal.policy)
    report.counts.update(await figures(ground, open_run, later_run))
    _judge(report, _uses(ground, second), _uses(ground, later), seen_after)


def _judge(report: Report, kept: list[Any], later: list[Any], seen_after: float) -> None:
    versions = {"open_run": [use["version"] for use in kept], "later_run": [use["version"] for use in later]}
    report.counts.update(policy_versions=versions, seconds_until_seen=round(seen_after, 2), evaluations=len(kept))
    report.tell(f"Versions used: by the open run {versions['open_run']}, by the later run {versions['later_run']}.")
    report.promise("The open run evaluated again after the change", len(kept) == 2, f"{len(kept)} evaluations")
    report.promise("It kept the version it read first", len(set(versions["open_run"])) == 1, versions["open_run"])
    fresh = bool(later) and later[-1]["version"] != kept[0]["version"]
    report.promise("A later run used the new version", fresh, versions["later_run"])
    told = f"{kept[0]['recommendation']}, then {later[-1]['recommendation']}"
    differs = kept[0]["recommendation"] != later[-1]["recommendation"]
    report.promise("The new version recommends otherwise for the same case", differs, told)
    report.promise(f"That took under {SECONDS:g} seconds", seen_after < SECONDS, f"{seen_after:.1f} s")


def _uses(ground: Ground, run: Mapping[str, Any]) -> list[Any]:
    tool = ground.rehearsal.policy_tool
    return [step["result"] for step in run["steps"] if step["name"] == tool and step["state"] == "COMPLETED"]
