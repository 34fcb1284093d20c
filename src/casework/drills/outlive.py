"""The first attempt is still alive when the second one starts: for each declaration, and in three ways.

Without heartbeats, as in a network that is cut, while its call is at the destination. Frozen (SIGSTOP) after its claim,
and let go on when the second attempt has committed. Frozen when it has acted and not committed; a transactional tool
then is in an open transaction and holds the row of its run, until the server ends the transaction.

Workers of this part take one activity at a time: a frozen worker that still asked for more would be given steps, which
would lose an attempt each, and steps have few.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from casework.drills.ground import Ground
from casework.drills.kill_plan import READS
from casework.drills.promises import Report
from casework.drills.stack import Crew
from casework.drills.tally import tally
from casework.drills.waiting import until_mark, until_over
from casework.durable.activities.faults import Fault, Point

WORKERS = 4
ONE_AT_A_TIME = {"CASEWORK_WORKER_MAX_ACTIVITIES": "1"}
HELD_S = 12.0
"""How long the destination holds a call, if it is not released before."""
PATIENCE_S = 180.0
LOOK_EVERY_S = 0.1

Way = Literal["mute", "claimed", "acted"]
WAYS: tuple[Way, ...] = ("mute", "claimed", "acted")
_TOLD: Mapping[Way, str] = {
    "mute": "without heartbeats",
    "claimed": "frozen when claimed",
    "acted": "frozen when acted",
}


@dataclass(frozen=True)
class Case:
    """One first attempt that outlives."""

    way: Way
    tool: str
    declaration: str

    @property
    def id(self) -> str:
        """The id of its fault."""
        return f"outlive-{self.tool}-{self.way}"

    @property
    def tag(self) -> str:
        """The tag of its run, which is shared by all cases of one way."""
        return f"drill-outlive-{self.way}"

    def fault(self, run_id: str) -> Fault:
        """What happens to the worker."""
        point: Point = "sent" if self.way == "mute" else self.way
        action: Literal["mute", "pause"] = "mute" if self.way == "mute" else "pause"
        return Fault(self.id, point, f"*/{self.tool}.1", run_id, action=action)


def cases(ground: Ground, declared: Mapping[str, str]) -> list[Case]:
    """For one tool of each declaration with effects, each way that it can go."""
    tools = {declaration: tool for tool, declaration in reversed(list(declared.items())) if declaration != READS}
    ordered = [(declared[tool], tool) for tool in declared if tool in tools.values()]
    acting = ground.rehearsal.destination.acting
    return [
        Case(way, tool, declaration) for way in WAYS for declaration, tool in ordered if way != "mute" or tool in acting
    ]


async def play(ground: Ground, report: Report, declared: Mapping[str, str]) -> list[str]:
    """Play every case and promise what must hold of each; the ids of the runs."""
    due = cases(ground, declared)
    ground.faults.plan([case.fault(ground.run_id(case.tag)) for case in due])
    crew = ground.hire(ONE_AT_A_TIME)
    try:
        await crew.staff(WORKERS)
        await _play(ground, report, [case for case in due if case.way == "mute"])
        await asyncio.gather(
            *(_play(ground, report, [case for case in due if case.way == way]) for way in WAYS if way != "mute")
        )
        runs = [ground.run_id(tag) for tag in dict.fromkeys(case.tag for case in due)]
        for run_id in runs:
            await ground.api.until_review(run_id, patience_s=PATIENCE_S)
        for case in due:
            await _judge(ground, report, case)
    finally:
        _let_go_on(ground, crew)
    report.counts["outlived"] = len(due)
    return runs


async def _play(ground: Ground, report: Report, due: Iterable[Case]) -> None:
    """One run with all cases of one way, one after the other as its tools come."""
    due = list(due)
    if not due:
        return
    muted = due[0].way == "mute"
    await ground.destination.slow_down(HELD_S if muted else 0)
    await ground.submit(due[0].tag)
    for case in due:
        await (_mute(ground, case) if muted else _pause(ground, case))
        report.tell(f"An attempt of {case.tool} ({case.declaration}), {_TOLD[case.way]}, outlived the next one.")
    await ground.destination.slow_down(0)


async def _mute(ground: Ground, case: Case) -> None:
    """The call is held at the destination until the second attempt has called too, or has found that it need not."""
    run_id = ground.run_id(case.tag)
    mark = await until_mark(ground, case.id)
    while not await _second_is_there(ground, run_id, case.tool):  # noqa: ASYNC110  # other processes do it
        await asyncio.sleep(LOOK_EVERY_S)
    await ground.destination.release()
    await until_over(ground, mark)


async def _second_is_there(ground: Ground, run_id: str, tool: str) -> bool:
    run = await ground.api.until(run_id, lambda run: bool(_attempts(run, tool)), f"call {tool}", PATIENCE_S)
    calls = (await ground.destination.counts()).calls.get(ground.call_name(run, _step(run, tool)) or "", 0)
    return calls > 1 or _step(run, tool)["state"] == "COMPLETED"


async def _pause(ground: Ground, case: Case) -> None:
    """The process is frozen until the second attempt has committed in another one."""
    run_id = ground.run_id(case.tag)
    mark = await until_mark(ground, case.id)
    await ground.api.until(
        run_id,
        lambda run: bool(_attempts(run, case.tool)) and _step(run, case.tool)["state"] == "COMPLETED",
        f"have {case.tool} from a second attempt while process {mark.pid} is frozen",
        PATIENCE_S,
        LOOK_EVERY_S,
    )
    os.kill(mark.pid, signal.SIGCONT)
    await until_over(ground, mark)


async def _judge(ground: Ground, report: Report, case: Case) -> None:
    run_id = ground.run_id(case.tag)
    run, count = await ground.api.run(run_id), (await tally(ground, run_id)).of(case.tool)
    ends = [attempt["outcome"] for attempt in _attempts(run, case.tool)]
    told = [f"attempt {number} {end}" for number, end in enumerate(ends, 1)] + [f"effects {count.effects}"]
    late = ends[0] in _ends(ground, case) and ends[1:].count("COMPLETED") == 1
    # One that was overtaken before it acted does not act any more.
    quiet = case.way != "claimed" or (count.calls or 0) < len(ends)
    found = ", ".join([*told, *([] if count.calls is None else [f"calls {count.calls}"])])
    report.promise(
        f"{case.declaration}, first attempt {_TOLD[case.way]}: it is not used, and there is one effect",
        late and quiet and count.effects == 1,
        f"{case.tool}: {found}",
    )


def _ends(ground: Ground, case: Case) -> frozenset[str]:
    """How a first attempt may end. With a result in its hands it is LATE; without one it may be silent as well."""
    has_result = case.way != "claimed" and case.tool in ground.rehearsal.destination.acting
    return frozenset({"LATE"} if has_result else {"LATE", "LOST"})


def _step(run: Mapping[str, Any], tool: str) -> Mapping[str, Any]:
    return next(step for step in run["steps"] if step["name"] == tool and step["kind"] == "tool")


def _attempts(run: Mapping[str, Any], tool: str) -> list[Mapping[str, Any]]:
    """The attempts of the tool's step, the first one first; none where it was not called yet."""
    steps = [step for step in run["steps"] if step["name"] == tool and step["kind"] == "tool"]
    return sorted(steps[0]["attempts"], key=lambda each: int(each["attempt"])) if steps else []


def _let_go_on(ground: Ground, crew: Crew) -> None:
    """A process that is still frozen, where something broke off, could not be asked to stop."""
    for mark in ground.faults.marks():
        if mark.pid in crew.pids:
            os.kill(mark.pid, signal.SIGCONT)
