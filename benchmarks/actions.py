"""What one underwriting run costs, beside the plain pattern: the borderline loan case, from its start to its approval.

The plain pattern is the same case written by hand, with an activity for every write: four for each tool call (start
write, call, result write, event), three for each model call (call, message write, metric), five for a review (pending
write, event, state write; decision write, state write). Tools, scripted model, tables and servers are the same.

- *engine actions* are what Temporal Cloud bills by its own definition: a workflow started, an activity started or
  retried, a timer, a signal, an update, a heartbeat that reaches the server. They are counted in the history, and must
  agree with the server's own counter, which adds the heartbeats. At most half of the plain pattern's, or the benchmark
  fails. Tools and model answer at once here; a step that lasts sends two heartbeats a second, each one action more.
- *history bytes* and *history events* are what Temporal keeps of a run. The plain pattern reads its transcript from the
  database too; were it passed along, as is common, its history would be larger.
- *rows written* are rows inserted, updated or deleted in PostgreSQL.
- *worker CPU*, *Temporal CPU* and *wall time* are those of one run at a time, from its start to its end, on an idle
  system: with the person deciding at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from uuid import UUID, uuid4

from temporalio.worker import Worker

from benchmarks.harness import Report, Samples, Scale, main, result
from benchmarks.plain import contracts
from benchmarks.plain.activities import LOAN, PlainActivities
from benchmarks.plain.workflow import PlainLoan
from benchmarks.support import billing
from benchmarks.support.ground import LOOK_EVERY_S, TENANT, Servers, Side, servers, working
from benchmarks.support.processes import cpu_seconds
from casework.durable.client import RunClient
from casework.durable.contracts import Decision
from casework.durable.starting import start_of
from casework.durable.worker import make_worker, workflow_runner
from casework.examples.loan_underwriting import app
from casework.examples.loan_underwriting.application import POLICY
from casework.examples.loan_underwriting.fixtures import BORDERLINE

CASE = {"applicant_id": BORDERLINE, "amount": 12000, "purpose": "debt_consolidation"}
PEER = "plain pattern"
SETTLE_S = 15.0
"""Until the server shows what it has counted, which it does about once a second."""


@dataclass(frozen=True)
class Cost:
    """Of one run."""

    actions: int
    history_bytes: int
    events: int
    wall_ms: float
    worker_ms: float
    temporal_ms: float


WHAT = {
    "actions": ("engine actions of a run", "actions"),
    "history_bytes": ("history of a run", "bytes"),
    "events": ("history of a run", "events"),
    "wall_ms": ("wall time of a run", "ms"),
    "worker_ms": ("worker CPU of a run", "ms"),
    "temporal_ms": ("Temporal CPU of a run", "ms"),
}
Begin = Callable[[Side], Awaitable[UUID]]


async def begin_ours(side: Side) -> UUID:
    """Start a run as the API does."""
    row, bundle = await side.accept(LOAN, CASE)
    await RunClient(side.client, side.settings.temporal.task_queue).start(start_of(row, bundle))
    return row.run_id


async def begin_plain(side: Side) -> UUID:
    """Start the hand-written workflow on a row of the same table."""
    row, _ = await side.accept(LOAN, CASE)
    start = contracts.Start(str(row.run_id), TENANT, row.user_id, CASE, row.workflow_version)
    queue = side.settings.temporal.task_queue
    await side.client.start_workflow(contracts.WORKFLOW, start, id=str(row.run_id), task_queue=queue)
    return row.run_id


async def one_run(servers: Servers, side: Side, begin: Begin) -> Cost:
    """From the start to the approval; what it cost."""
    before, temporal = billing.of_server(servers.metrics_url), cpu_seconds(servers.temporal_pid)
    wall, worker = time.monotonic(), time.process_time()
    run_id = await begin(side)
    await side.reaches(run_id, "AWAITING_REVIEW")
    decision = Decision(await side.review(run_id), str(uuid4()), "approve", "within limits", "rita")
    await RunClient(side.client, side.settings.temporal.task_queue).decide(str(run_id), decision)
    await side.client.get_workflow_handle(str(run_id)).result()
    spent = time.monotonic() - wall, time.process_time() - worker, cpu_seconds(servers.temporal_pid) - temporal
    row = await side.reaches(run_id, "COMPLETED")
    assert row.outcome == "approved"
    handle = side.client.get_workflow_handle(str(run_id))
    actions = billing.of_history((await handle.fetch_history()).events)
    heartbeats = await _heartbeats(servers.metrics_url, before, actions)
    told = (await handle.describe()).raw_description.workflow_execution_info
    kept = (actions.total() + heartbeats, told.history_size_bytes, told.history_length)
    return Cost(*kept, *(part * 1000 for part in spent))


async def _heartbeats(url: str, before: Counter[str], actions: Counter[str]) -> int:
    """Those that the server counted since `before`, as soon as it has counted all else that the history tells of.

    Raises:
        RuntimeError: history and server do not agree on the number of actions.
    """
    until = time.monotonic() + SETTLE_S
    while True:
        counted = billing.of_server(url) - before
        heartbeats = counted.pop(billing.HEARTBEAT, 0)
        if counted.total() == actions.total():
            return heartbeats
        if time.monotonic() > until:
            raise RuntimeError(f"the history tells of {dict(actions)}, the server of {dict(counted)}")
        await asyncio.sleep(LOOK_EVERY_S)


@dataclass(frozen=True)
class Costs:
    """All runs that count, and rows per run, of ours and of the peer."""

    ours: Sequence[Cost]
    peer: Sequence[Cost]
    rows: tuple[float, float]


async def compare(rounds: int, warm_up: int = 1) -> Costs:
    """Both sides in turn on the same servers, after `warm_up` runs of each that do not count."""
    limits = POLICY.read_text()
    async with servers() as made, made.side("ours", app, limits) as ours, made.side("plain", app, limits) as plain:
        found: tuple[list[Cost], list[Cost]] = ([], [])
        async with working([make_worker(ours.client, ours.services, ours.settings), plain_worker(plain)]):
            for _ in range(warm_up + rounds):
                found[0].append(await one_run(made, ours, begin_ours))
                found[1].append(await one_run(made, plain, begin_plain))
        runs = warm_up + rounds
        rows = await ours.rows() / runs, await plain.rows() / runs
    return Costs(found[0][warm_up:], found[1][warm_up:], rows)


def plain_worker(side: Side) -> Worker:
    """A worker for the plain pattern, with the sandbox and the limits of ours."""
    return Worker(
        side.client,
        task_queue=side.settings.temporal.task_queue,
        workflows=[PlainLoan],
        activities=PlainActivities(side.services).all(),
        workflow_runner=workflow_runner(),
    )


def report(found: Costs) -> Report:
    """The figures, and whether actions are at most half."""
    samples = [
        Samples(*WHAT[part.name], _of(found.ours, part.name), _of(found.peer, part.name), PEER) for part in fields(Cost)
    ]
    rows = Samples("rows written by a run", "rows", [found.rows[0]], [found.rows[1]], PEER)
    actions = result(samples[0])
    broken = f"{actions.ours} actions are more than half of {actions.peer}"
    return Report([*samples, rows], () if 2 * actions.ours <= actions.peer else (broken,))


def _of(costs: Sequence[Cost], name: str) -> list[float]:
    return [getattr(cost, name) for cost in costs]


def measure(scale: Scale) -> Report:
    """All of it."""
    return report(asyncio.run(compare(scale.rounds)))


if __name__ == "__main__":
    main("actions", measure)
