"""Asking the servers how they do: each question bounded in time, each part on its own, so that one that is away hides
no other.

Runs that should move and do not are asked about at the engine, at most `ASKED` of them, because a step that waits for
the database has nobody to write that down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import httpx2
from temporalio.client import Client
from temporalio.service import RPCError

from casework.cli import status_lines as lines
from casework.cli.status_lines import Line, Stuck
from casework.durable import builds, contracts
from casework.durable.client import RunClient
from casework.durable.connection import connect
from casework.durable.engines import REMEDY, engine_of, foreign
from casework.durable.in_hand import InHand, Workers, in_hand, workers
from casework.durable.last_sweep import last_sweep
from casework.durable.workflows.operations import activity_id
from casework.errors import CaseworkError
from casework.settings import Settings
from casework.store import engines, health, waits
from casework.store.database import Database
from casework.store.engines import EngineRow
from casework.values import loads

CONNECT_S = 4.0
"""Longest wait for a server to take a connection."""
STATEMENT_S = 5.0
QUIET = timedelta(seconds=5)
"""A run whose row has been still for this long is asked about."""
QUEUED = timedelta(seconds=5)
"""As long as a step may lie in the queue before it is told."""
ASKED = 50
"""Most runs that the engine is asked about."""
AT_ONCE = 8
WINDOW = timedelta(days=1)
"""How far back steps that failed for good are counted."""


@dataclass
class _Rows:
    """What the database says; nothing where it is away."""

    lines: list[Line] = field(default_factory=list)
    work: list[Line] = field(default_factory=list)
    quiet: list[str] | None = None
    """Ids of runs that should move and do not; None where the database cannot say."""
    engine: EngineRow | None = None
    """The engine that the database's runs are in."""
    claimed: dict[str, dict[str, datetime]] = field(default_factory=dict)
    """By run, when its steps in flight last wrote their row, by activity id."""


async def look(settings: Settings, api_url: str | None) -> list[Line]:
    """Every part, in the order in which they need each other."""
    now = datetime.now(UTC)
    rows, api = await asyncio.gather(_database(settings, now), _api(api_url))
    engine = await _engine(settings, rows, now)
    return [*rows.lines, *engine[:1], api, *engine[1:], *rows.work]


async def _database(settings: Settings, now: datetime) -> _Rows:
    found = _Rows()
    try:
        dsn = settings.database.runtime_dsn()
        async with await Database.open(
            dsn, max_size=1, name="casework-status", wait_s=CONNECT_S, statement_timeout_s=STATEMENT_S
        ) as db:
            await _rows(db, found, now)
    except CaseworkError as error:
        if not found.lines:
            found.lines.append(lines.away("database", str(error)))
        else:
            found.work.append(lines.away("runs", str(error)))
    return found


async def _rows(db: Database, found: _Rows, now: datetime) -> None:
    async with db.transaction() as conn:
        condition = await health.condition(conn)
        found.lines.append(lines.database(db.where, condition))
    if not condition.missing_migrations:
        async with db.transaction() as conn:
            found.engine = await engines.kept(conn)
    async with db.transaction() as conn:
        work = await health.work(conn, now - WINDOW)
        held = await health.held(conn, lines.NAMED)
        waiting = await waits.total(conn)
        quiet = await health.quiet(conn, now - QUIET, ASKED)
        claimed = await health.claimed(conn, [run.run_id for run in quiet])
    found.work = [
        lines.runs(work),
        lines.reviews(work),
        lines.waits(waiting),
        lines.retries(work),
        lines.failures(work),
        lines.ended(work),
        lines.incidents(held, work.incidents),
    ]
    found.quiet = [str(run.run_id) for run in quiet]
    for step in claimed:
        found.claimed.setdefault(str(step.run_id), {})[activity_id(step.path)] = step.updated_at


async def _api(url: str | None) -> Line:
    if url is None:
        return Line("api", lines.LOOK, "No address is known here.", "Set CASEWORK_API_URL to have it asked.")
    address = f"{url.rstrip('/')}/readyz"
    try:
        async with httpx2.AsyncClient(timeout=CONNECT_S + STATEMENT_S, trust_env=False) as client:
            answer = await client.get(address)
    except httpx2.ReadTimeout:
        text = f"{url} takes the question and gives no answer."
        return Line("api", lines.BROKEN, text, "Look at database and Temporal first: it may wait for them.")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        return Line("api", lines.BROKEN, f"{url} does not answer ({reason}).", "casework api")
    if answer.is_success:
        return Line("api", lines.FINE, f"{url} is ready.")
    return Line("api", lines.BROKEN, f"{url} is not ready: {_detail(answer)}", "Mend what it names.")


def _detail(answer: httpx2.Response) -> str:
    try:
        return str(loads(answer.content)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"it answered {answer.status_code}."


async def _engine(settings: Settings, rows: _Rows, now: datetime) -> list[Line]:
    queue = settings.temporal.task_queue
    try:
        client = await connect(settings, timeout_s=CONNECT_S)
        await RunClient(client, queue).check()
        here = await engine_of(client)
    except CaseworkError as error:
        return [lines.away("temporal", str(error))]
    who = await workers(client, queue)
    stuck = await _stuck(client, rows, who, now)
    where = f"{client.service_client.config.target_host}, namespace {client.namespace}"
    return [
        lines.temporal(where, foreign(rows.engine, here) if rows.engine else None, REMEDY),
        lines.workers(queue, who, now),
        *await _builds(client, queue),
        await _sweep(client, queue, now),
        *stuck,
    ]


async def _builds(client: Client, queue: str) -> list[Line]:
    """A line where workers have builds; else there is nothing to tell."""
    try:
        async with asyncio.timeout(CONNECT_S):
            found = await builds.look(client, queue)
    except (CaseworkError, TimeoutError):
        return []
    return [lines.builds(found)] if found.used else []


async def _sweep(client: Client, queue: str, now: datetime) -> Line:
    try:
        return lines.sweep(await last_sweep(client, queue), now)
    except (CaseworkError, TimeoutError) as error:
        return lines.away("sweep", str(error) or "Temporal does not tell of it in time.")


async def _stuck(client: Client, rows: _Rows, who: Workers | None, now: datetime) -> list[Line]:
    """Runs that wait for the database, and runs that wait for a worker."""
    asked = await _open_runs(client) if rows.quiet is None else rows.quiet
    faulty, waiting = [], []
    for run_id, found in await _all_in_hand(client, asked):
        since = found.queued_since()
        if faults := found.waiting_for_store(rows.claimed.get(run_id, {})):
            faulty.append(Stuck(run_id, faults[0].step, faults[0].reason, faults[0].at))
        elif since is not None and now - since > QUEUED:
            waiting.append(Stuck(run_id, "", "", since))
    return [lines.faults(faulty, len(asked)), lines.queued(waiting, served=bool(who and who.alive(now)))]


async def _open_runs(client: Client) -> list[str]:
    """Some of the runs that are open in the engine, where the database cannot tell which are quiet."""
    query = f"{contracts.OF_RUNS} AND ExecutionStatus = 'Running'"
    try:
        return [found.id async for found in client.list_workflows(query, limit=ASKED, page_size=ASKED)]
    except RPCError:
        return []


async def _all_in_hand(client: Client, run_ids: Sequence[str]) -> list[tuple[str, InHand]]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(run_id: str) -> InHand | None:
        async with gate:
            return await in_hand(client, run_id)

    answers = await asyncio.gather(*(ask(run_id) for run_id in run_ids))
    return [(run_id, found) for run_id, found in zip(run_ids, answers, strict=True) if found is not None]
