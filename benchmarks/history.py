"""How the history of an agent's run grows, beside pydantic-ai's own durable agent on the same Temporal server.

One agent reads record after record, five kilobytes each, one in each exchange. Ours is an AGENT node of a durable run.
The peer is an `Agent` with pydantic-ai's capability for Temporal, in a workflow as its documentation makes one. The
scripted model, the records, the server and its limits are the same.

- *history of an exchange* is all that Temporal keeps of a run up to there, in bytes or events, by the number of
  exchanges. Here the transcript lies in PostgreSQL, and the history has what decides the way on; there each model call
  is given the whole transcript through the history, and so is each tool call its result.
- *growth* is bytes of an exchange at the last mark over those at the first: 1 is a straight line. Above 1.2 of ours the
  benchmark fails.
- *exchanges until it is stopped* is how far a run of 500 comes under the server's own limits (50 MB of history, 2 MB
  for one value). The peer is measured twice: in one history, and with its `continue_as_new` handler, which takes the
  transcript along into a new history when Temporal advises one. Ours rolls over by itself, and runs all 500, or the
  benchmark fails. `--quick` leaves this out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from temporalio.client import Client
from temporalio.worker import Worker

from benchmarks.harness import Report, Samples, Scale, main
from benchmarks.support import peer_errand
from benchmarks.support.errand import WORKFLOW, app
from benchmarks.support.ground import Servers, Side, servers, working
from benchmarks.support.weights import Weight, walked, weights
from casework.durable.client import RunClient
from casework.durable.starting import start_of
from casework.durable.worker import make_worker
from casework.examples.loan_underwriting.application import POLICY

PEER = "pydantic-ai"
ROLLING = "pydantic-ai, continuing as new"
QUEUE = "peer"
MARKS, QUICK_MARKS = (10, 50, 100), (5, 20)
FAR = 500
MOST_GROWTH = 1.2


@dataclass(frozen=True)
class Growth:
    """What one run weighed after so many exchanges."""

    at: dict[int, Weight]


@dataclass(frozen=True)
class Reach:
    """How many of the exchanges asked for were walked."""

    ours: int
    plain: int
    rolling: int


@dataclass(frozen=True)
class Found:
    """A figure for each round, ours and the peer's; and how far each comes, if that was asked for."""

    ours: Sequence[Growth]
    peer: Sequence[Growth]
    reach: Reach | None = None


@dataclass(frozen=True)
class Both:
    """Both sides on one server, with workers at work."""

    ours: Side
    peer: Client

    async def begin(self, records: int) -> str:
        """Start ours as the API does; the workflow's id."""
        row, bundle = await self.ours.accept(WORKFLOW, {"records": records})
        await RunClient(self.ours.client, self.ours.settings.temporal.task_queue).start(start_of(row, bundle))
        return str(row.run_id)

    async def begin_plain(self, records: int) -> str:
        """Start the peer in one history; the workflow's id."""
        return await peer_errand.start(self.peer, QUEUE, records, rolling=False)

    async def begin_rolling(self, records: int) -> str:
        """Start the peer with its handler for a new history; the workflow's id."""
        return await peer_errand.start(self.peer, QUEUE, records, rolling=True)


async def compare(marks: Sequence[int], rounds: int, far: int | None = None) -> Found:
    """Both sides in turn; a run of `far` exchanges at the end, if given."""
    async with AsyncExitStack() as stack:
        both = await _both(stack, await stack.enter_async_context(servers()))
        found: tuple[list[Growth], list[Growth]] = ([], [])
        for _ in range(rounds):
            found[0].append(await _grown(both.ours.client, both.begin, marks))
            found[1].append(await _grown(both.peer, both.begin_plain, marks))
        return Found(*found, None if far is None else await _reach(both, far))


async def _both(stack: AsyncExitStack, made: Servers) -> Both:
    ours = await stack.enter_async_context(made.side("ours", app, POLICY.read_text()))
    peer = await peer_errand.connect(made.temporal.address)
    theirs = Worker(peer, task_queue=QUEUE, workflows=peer_errand.WORKFLOWS)
    await stack.enter_async_context(working([make_worker(ours.client, ours.services, ours.settings), theirs]))
    return Both(ours, peer)


async def _grown(client: Client, begin: Callable[[int], Awaitable[str]], marks: Sequence[int]) -> Growth:
    found = await weights(client, await begin(marks[-1]))
    return Growth({mark: found[mark] for mark in marks})


async def _reach(both: Both, far: int) -> Reach:
    """Each in turn, as far as it comes."""
    client, peer = both.ours.client, both.peer
    ours = await walked(client, await both.begin(far))
    plain = await walked(peer, await both.begin_plain(far))
    return Reach(ours, plain, await walked(peer, await both.begin_rolling(far)))


def report(found: Found, far: int = FAR) -> Report:
    """The figures, and whether ours grows in a straight line and comes to the end."""
    marks = list(found.ours[0].at)
    samples = [
        sample
        for mark in marks
        for sample in (
            _samples(found, f"history of an exchange, of {mark}", "bytes", lambda each: each.bytes_each, mark),
            _samples(found, f"history of an exchange, of {mark}", "events", lambda each: each.events_each, mark),
        )
    ]
    growth = [[_growth(each, marks) for each in side] for side in (found.ours, found.peer)]
    samples.append(Samples(f"growth from {marks[0]} to {marks[-1]} exchanges", "times", growth[0], growth[1], PEER))
    broken = [f"bytes of an exchange grow {each:.2f} times" for each in growth[0] if each > MOST_GROWTH]
    if found.reach is not None:
        what = f"exchanges until it is stopped, of {far}"
        for name, theirs in ((PEER, found.reach.plain), (ROLLING, found.reach.rolling)):
            samples.append(Samples(what, "", [found.reach.ours], [theirs], name, more_is_better=True))
        if found.reach.ours < far:
            broken.append(f"ours was stopped after {found.reach.ours} of {far} exchanges")
    return Report(samples, broken)


def _samples(found: Found, what: str, unit: str, of: Callable[[Weight], float], mark: int) -> Samples:
    ours, peer = ([of(each.at[mark]) for each in side] for side in (found.ours, found.peer))
    return Samples(what, unit, ours, peer, PEER)


def _growth(made: Growth, marks: Sequence[int]) -> float:
    return made.at[marks[-1]].bytes_each / made.at[marks[0]].bytes_each


def measure(scale: Scale) -> Report:
    """All of it."""
    if scale.quick:
        return report(asyncio.run(compare(QUICK_MARKS, scale.rounds)))
    return report(asyncio.run(compare(MARKS, scale.rounds, FAR)))


if __name__ == "__main__":
    main("history", measure)
