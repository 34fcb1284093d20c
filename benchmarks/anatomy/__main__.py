"""Play a few runs one after the other, and print what the median one spends on what."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import uuid4

import psycopg

from benchmarks.actions import begin_ours
from benchmarks.anatomy.history import Read, read
from benchmarks.anatomy.round_trips import Asked, round_trips
from benchmarks.harness import machine
from benchmarks.support.ground import Side, servers, working
from benchmarks.support.processes import cpu_seconds
from casework.durable.client import RunClient
from casework.durable.contracts import Decision
from casework.durable.worker import make_worker
from casework.examples.loan_underwriting import app
from casework.examples.loan_underwriting.application import POLICY

WARM_UP = 3
ROUNDS = 9
_WRITTEN: LiteralString = """
    select relname, n_tup_ins, n_tup_upd from pg_stat_user_tables
    where schemaname = 'agent_ops' and n_tup_ins + n_tup_upd > 0 and relname <> 'workflow_versions'
    order by relname"""
_LOGGED: LiteralString = "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


@dataclass
class Spent:
    """By one run. Milliseconds; `cpu` are those of the worker with this program, and of Temporal."""

    wall: float
    cpu: tuple[float, float]
    logged: int
    history: Read
    asked: dict[str, Asked]


async def play(side: Side, temporal_pid: int, watcher: psycopg.AsyncConnection[Any]) -> Spent:
    """One run, from its start to its approval."""
    logged, temporal = await _number(watcher), cpu_seconds(temporal_pid)
    with round_trips() as asked:
        began, worker = time.perf_counter(), time.process_time()
        run_id = await begin_ours(side)
        await side.reaches(run_id, "AWAITING_REVIEW")
        decision = Decision(await side.review(run_id), str(uuid4()), "approve", "within limits", "rita")
        await RunClient(side.client, side.settings.temporal.task_queue).decide(str(run_id), decision)
        handle = side.client.get_workflow_handle(str(run_id))
        await handle.result()
        wall, cpu = time.perf_counter() - began, time.process_time() - worker
    spent = (cpu * 1000, (cpu_seconds(temporal_pid) - temporal) * 1000)
    history = read((await handle.fetch_history()).events)
    return Spent(wall * 1000, spent, await _number(watcher) - logged, history, dict(asked))


async def _number(watcher: psycopg.AsyncConnection[Any]) -> int:
    found = await (await watcher.execute(_LOGGED)).fetchone()
    assert found is not None
    return int(found[0])


async def _main() -> None:
    limits = POLICY.read_text()
    async with servers() as made, made.side("anatomy", app, limits) as side:
        watcher = await psycopg.AsyncConnection.connect(side.dsn, autocommit=True)
        async with watcher, working([make_worker(side.client, side.services, side.settings)]):
            runs = [await play(side, made.temporal_pid, watcher) for _ in range(WARM_UP + ROUNDS)]
            before = runs[WARM_UP:]
        await side.db.close()
        written = await _rows(side.dsn)
    _tell(before, {table: (ins / len(runs), upd / len(runs)) for table, ins, upd in written})


async def _rows(dsn: str) -> list[Any]:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        return await (await conn.execute(_WRITTEN)).fetchall()


def _tell(runs: list[Spent], rows: dict[str, tuple[float, float]]) -> None:
    worker, temporal = (_mid(run.cpu[place] for run in runs) for place in (0, 1))
    say(f"{machine()}, medians of {len(runs)} runs, one at a time\n")
    say(f"wall {_mid(run.wall for run in runs):.0f} ms; CPU of worker {worker:.0f} ms, of Temporal {temporal:.0f} ms;")
    say(f"write-ahead log {_mid(run.logged for run in runs):,.0f} bytes\n")
    _tell_steps(runs)
    _tell_bytes(runs)
    say("| table | inserted | updated |\n| --- | --- | --- |")
    for table, (inserted, updated) in rows.items():
        say(f"| {table} | {inserted:.1f} | {updated:.1f} |")


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def _tell_steps(runs: list[Spent]) -> None:
    told = [run.history for run in runs]
    waiting, working_ms = _mid(each.tasks_waiting_ms for each in told), _mid(each.tasks_working_ms for each in told)
    say(f"{told[0].tasks} workflow tasks: {waiting:.0f} ms until a worker has them, {working_ms:.0f} ms in it\n")
    say("| step | ms | database ms | round trips |\n| --- | --- | --- | --- |")
    for path in told[-1].activities:
        each = [(run.history.activities[path], run.asked[path]) for run in runs]
        ms, asked = _mid(one[0] for one in each), _mid(one[1].ms for one in each)
        say(f"| {path} | {ms:.0f} | {asked:.0f} | {_mid(one[1].round_trips for one in each):.0f} |")
    say("")


def _tell_bytes(runs: list[Spent]) -> None:
    say(f"history {_mid(run.history.size for run in runs):,.0f} bytes\n")
    say("| event | count | bytes | of it inputs and results |\n| --- | --- | --- | --- |")
    found: dict[str, list[Any]] = defaultdict(list)
    for run in runs:
        for name, kind in run.history.kinds.items():
            found[name].append(kind)
    for name, kinds in found.items():
        sizes = _mid(kind.size for kind in kinds), _mid(kind.payload for kind in kinds)
        say(f"| {name} | {_mid(kind.count for kind in kinds):.0f} | {sizes[0]:,.0f} | {sizes[1]:,.0f} |")
    say("")


def _mid(figures: Iterable[float]) -> float:
    return statistics.median(figures)


if __name__ == "__main__":
    asyncio.run(_main())
