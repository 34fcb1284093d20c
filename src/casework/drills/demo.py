"""The story of `casework demo`: one case from submission to decision, with a worker killed on the way.

It talks through a `Listener`: what happened, what was promised, and the question to a person where there is one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from casework.drills.client import PATIENCE_S, Client
from casework.drills.ground import Ground
from casework.drills.promises import BrokenOffError, Report
from casework.drills.tally import accepted, tally

NAME = "demo"
SLOW_S = 2.0
"""How long the destination takes until the worker is killed, so that a call is surely in flight."""
QUICK_S = 0.2
LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Answer:
    """A person's decision."""

    command: str
    reason: str


class Listener(Protocol):
    """Who watches the demo, and perhaps decides."""

    def heading(self, text: str) -> None:
        """What comes now."""
        ...

    def step(self, label: str, step: Mapping[str, Any]) -> None:
        """A row of the ledger has changed."""
        ...

    def case(self, run: Mapping[str, Any]) -> None:
        """The case as a reviewer sees it."""
        ...

    async def ask(self, run: Mapping[str, Any]) -> Answer | None:
        """What the person decides; None where there is none and the scripted reviewer decides."""
        ...


async def play(ground: Ground, report: Report, listener: Listener) -> str:
    """Play the story; the id of the run that it is about.

    Raises:
        BrokenOffError: something that it waited for did not come.
    """
    listener.heading("Cases are submitted")
    runs = await _submit(ground, report)
    label, first = next(iter(runs.items()))
    listener.heading(f"Evidence arrives for the {label} case; its worker is killed in mid-run")
    watching = _Rows(ground.api, first, label, listener)
    done = await _kill(ground, report, watching)
    await ground.crew.staff(1)
    report.tell(f"Worker {ground.crew.pids[0]} was started. It goes on from the last completed step.")
    waiting = await watching.until_review()
    await _others(ground, report, runs)
    await _recovered(ground, report, first, done)
    listener.heading("A person decides")
    await _decide(ground, report, listener, waiting)
    return first


async def _submit(ground: Ground, report: Report) -> dict[str, str]:
    rehearsal = ground.rehearsal
    await ground.destination.slow_down(SLOW_S)
    await ground.crew.staff(1)
    runs = {}
    for label, case in rehearsal.inputs:
        runs[label] = await ground.api.submit(rehearsal.workflow, case, f"demo-{label}")
        report.tell(f"{label}: run {runs[label]}")
    return runs


class _Rows:
    """The rows of one run as they come, each told once for each state and attempt."""

    def __init__(self, api: Client, run_id: str, label: str, listener: Listener) -> None:
        self._api = api
        self._run_id = run_id
        self._label = label
        self._listener = listener
        self._told: set[tuple[str, str, int]] = set()

    async def look(self) -> dict[str, Any]:
        """The run now; new rows are told."""
        run = await self._api.run(self._run_id)
        for step in run["steps"]:
            key = (step["path"], step["state"], step["attempt"])
            if step["kind"] != "decision" and key not in self._told:
                self._told.add(key)
                self._listener.step(self._label, step)
        return run

    async def until_review(self, turn: int = 1) -> dict[str, Any]:
        """The run when it awaits the review of a turn."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            run = await self.look()
            if run["status"] == "AWAITING_REVIEW" and run["review"]["turn"] == turn:
                return run
            await asyncio.sleep(LOOK_EVERY_S)
        raise BrokenOffError(f"Run {self._run_id} did not await the review of turn {turn} in time.")


async def _kill(ground: Ground, report: Report, rows: _Rows) -> list[str]:
    """Kill the worker when a tool of the run has completed and another call is in flight; what had completed."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        run = await rows.look()
        tools = [step for step in run["steps"] if step["kind"] == "tool"]
        done = [step["name"] for step in tools if step["state"] == "COMPLETED"]
        flying = (await ground.destination.counts()).in_flight
        cut = [step["name"] for step in tools if step["state"] == "STARTED" and ground.call_name(run, step) in flying]
        if done and cut:
            pid = ground.crew.kill_one()
            report.tell(f"Worker {pid} was killed (SIGKILL): {cut_off(done, cut, len(flying))}.")
            await ground.destination.slow_down(QUICK_S)
            return done
        await asyncio.sleep(LOOK_EVERY_S)
    raise BrokenOffError("No moment came at which a tool had completed and another call was in flight.")


def cut_off(done: Sequence[str], cut: Sequence[str], in_flight: int) -> str:
    """What a kill cut off, in words: of the case that is told about, and how much of the others, which share it."""
    own = f"{', '.join(done)} completed, {', '.join(cut)} in flight"
    others = in_flight - len(cut)
    if others <= 0:
        return own
    return f"{own}; so {'is 1 call' if others == 1 else f'are {others} calls'} of the other cases"


async def _others(ground: Ground, report: Report, runs: Mapping[str, str]) -> None:
    waiting = [await ground.api.until_review(run_id) for run_id in runs.values()]
    said = {label: run["recommendation"]["recommendation"] for label, run in zip(runs, waiting, strict=True)}
    report.tell("Recommendations: " + ", ".join(f"{label} {word}" for label, word in said.items()))
    missing = [tool for run in waiting for tool in ground.rehearsal.tools if tool not in run["evidence"]]
    report.promise(
        "Every case reached its reviewer with every evidence row", not missing, f"{len(waiting)} cases, "
        f"{len(waiting) * len(ground.rehearsal.tools) - len(missing)} rows",
    )  # fmt: skip


async def _recovered(ground: Ground, report: Report, run_id: str, done: list[str]) -> None:
    count, counts = await tally(ground, run_id), await ground.destination.counts()
    again = {tool: count.of(tool).acts for tool in done}
    report.promise(
        "What had completed before the kill was not called again",
        all(acts == 1 for acts in again.values()),
        ", ".join(f"{tool} called {acts} time" for tool, acts in again.items()),
    )
    calls, effects = (sum(counts.calls.get(name, 0) for name in counts.effects), sum(counts.effects.values()))
    report.counts.update(calls=calls, effects=effects, duplicates=counts.duplicates, in_flight_repeats=calls - effects)
    report.promise(
        "The destination saw no effect twice",
        counts.duplicates == 0 and effects == len(ground.rehearsal.inputs) * len(ground.rehearsal.destination.keyed),
        f"{effects} effects, {calls} calls: {calls - effects}, over all cases, were in flight at the kill and were "
        "sent again under the same key",
    )


async def _decide(ground: Ground, report: Report, listener: Listener, waiting: dict[str, Any]) -> None:
    listener.case(waiting)
    answer = await listener.ask(waiting)
    if answer is None:
        await _scripted(ground, report, listener, waiting)
    else:
        await _by_hand(ground, report, listener, waiting, answer)


async def _by_hand(
    ground: Ground, report: Report, listener: Listener, waiting: dict[str, Any], answer: Answer | None
) -> None:
    """What the person says, turn by turn, until the run has ended."""
    run_id, run = waiting["run_id"], waiting
    while answer is not None:
        status, told = await ground.api.decide(run["review"]["review_id"], answer.command, answer.reason)
        if status == 200:
            run = await _rest(ground.api, run_id, run["turn"])
            if run["status"] == "AWAITING_REVIEW":
                listener.case(run)
        else:
            report.tell(f"HTTP {status}: {told.get('detail')}")
        answer = await listener.ask(run) if run["status"] == "AWAITING_REVIEW" else None
    report.counts["decisions_accepted"] = await accepted(ground, run_id)
    found = f"{run['status']}, {run['outcome']}"
    last = [given for given in run["review"]["given"] if given["accepted"]]
    fits = len(last) == 1 and run["status"] == "COMPLETED" and run["outcome"] == last[0]["outcome"]
    report.promise("The run ended as you decided", fits, found)


async def _rest(api: Client, run_id: str, turn: int) -> dict[str, Any]:
    """The run when it has ended or a later turn awaits its review."""
    return await api.until(
        run_id,
        lambda run: run["status"] == "COMPLETED" or (run["status"] == "AWAITING_REVIEW" and run["turn"] > turn),
        "go on after the decision",
    )


async def _scripted(ground: Ground, report: Report, listener: Listener, waiting: dict[str, Any]) -> None:
    """Ask for more, wait for the second recommendation, answer the first review again, approve the second."""
    rehearsal, run_id, first = ground.rehearsal, waiting["run_id"], waiting["review"]["review_id"]
    status, _ = await ground.api.decide(first, rehearsal.more_info, rehearsal.question)
    report.tell(f"The scripted reviewer asks for more information: {rehearsal.question}")
    report.promise("The question was accepted", status == 200, f"HTTP {status}")
    again = await ground.api.until_review(run_id, turn=2)
    listener.case(again)
    second = again["review"]["review_id"]
    report.promise("The second recommendation has a review of its own", second != first, f"turn {again['turn']}")
    status, told = await ground.api.decide(first, rehearsal.approve, "From a page that is out of date.")
    report.tell(f"A stale approval of the first review: HTTP {status}. {told.get('detail', '')}")
    report.promise("The stale decision was refused", status == 409, f"HTTP {status}")
    status, _ = await ground.api.decide(second, rehearsal.approve, "The answer convinces me.")
    ended = await ground.api.until_end(run_id)
    report.counts["decisions_accepted"] = await accepted(ground, run_id)
    found = f"{ended['status']}, {ended['outcome']}"
    report.promise("The run ended as approved", status == 200 and ended["outcome"] == rehearsal.outcome, found)
