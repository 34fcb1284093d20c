"""WAIT nodes of durable runs: time, signals, whichever comes first; a wait is seen as one, and is cancelled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from temporalio.worker import Worker

from casework.app import App
from casework.durable.contracts import CancelRequest, Signal
from casework.durable.worker import make_worker
from casework.store import runs
from tests.integration.durable.conftest import TENANT, House, eventually

HEAD = "apiVersion: casework.dev/v1alpha1\nkind: AiWorkflow\nmetadata: {name: waiting}\n"


def waiting(folder: Path, *nodes: str) -> App:
    """An App with one workflow `waiting`, its nodes (in flow style, without their ids) one after the other."""
    made = [f"    - {{id: n{at}, outputKey: v{at}, {text}}}" for at, text in enumerate(nodes)]
    ways = [f"    - {{from: n{at}, to: n{at + 1}}}" for at in range(len(nodes) - 1)]
    edges = ["  edges:", *ways] if ways else []
    file = folder / "waiting.yaml"
    file.write_text(HEAD + "\n".join(["spec:", "  initialNode: n0", "  nodes:", *made, *edges]) + "\n")
    return App(manifests=[file])


async def values(house: House, run_id: UUID) -> dict[str, Any]:
    """The outputs of a run."""
    async with house.db.transaction() as conn:
        return {row.key: row.value for row in await runs.context(conn, TENANT, run_id)}


async def told(house: House, run_id: UUID, kind: str) -> list[tuple[str, Any]]:
    """Path and data of the events of a kind."""
    return [(each.path, each.data) for each in await house.events(run_id) if each.kind.partition(":")[0] == kind]


async def send(house: House, run_id: UUID, name: str, payload: Any = None, signal_id: str = "s1") -> None:
    await house.runs.signal(str(run_id), Signal(name, signal_id, "rita", payload))


async def waits(house: House, run_id: UUID, path: str) -> None:
    """Return when the run is seen to wait at `path`."""

    async def look() -> bool:
        return path in [at for at, _ in await told(house, run_id, "agent.wait_started")]

    await eventually(look, f"{run_id} waits at {path}")


async def test_time_signal_and_whichever_is_first(house: House, tmp_path: Path) -> None:
    """AW-4. Only time: null. Only a signal: its payload. Both: whether time was up, and the payload."""
    app = waiting(
        tmp_path,
        "type: WAIT, duration: 0.2",
        "type: WAIT, signal: go",
        "type: WAIT, signal: go, duration: PT1H",
        "type: WAIT, signal: never, duration: PT0.1S",
    )
    async with house.with_app(app) as busy:
        run_id = await busy.start({}, "waiting")
        await waits(busy, run_id, "n1.1")
        await send(busy, run_id, "go", {"sum": 12}, "a")
        await waits(busy, run_id, "n2.1")
        await send(busy, run_id, "go", {"sum": 12}, "a")
        await send(busy, run_id, "go", [1, None], "b")
        await busy.reaches(run_id, "COMPLETED", deadline_s=30)
        assert await values(busy, run_id) == {
            "v0": None,
            "v1": {"sum": 12},
            "v2": {"timedOut": False, "payload": [1, None]},
            "v3": {"timedOut": True, "payload": None},
        }
        over = await told(busy, run_id, "agent.wait_over")
        assert [(path, data["timed_out"]) for path, data in over] == [
            ("n0.1", True), ("n1.1", False), ("n2.1", False), ("n3.1", True),
        ]  # fmt: skip


async def test_signals_before_the_node_are_kept_and_each_is_taken_once(house: House, tmp_path: Path) -> None:
    """AW-4. Two of one name, sent before anybody waits for them, are taken by two waits, in their order."""
    app = waiting(tmp_path, "type: WAIT, signal: first", "type: WAIT, signal: go", "type: WAIT, signal: go")
    async with house.with_app(app) as busy:
        run_id = await busy.start({}, "waiting")
        await waits(busy, run_id, "n0.1")
        await send(busy, run_id, "go", 1, "one")
        await send(busy, run_id, "go", 1, "one")
        await send(busy, run_id, "go", 2, "two")
        await send(busy, run_id, "first", None, "three")
        await busy.reaches(run_id, "COMPLETED", deadline_s=30)
        assert await values(busy, run_id) == {"v0": None, "v1": 1, "v2": 2}


async def test_a_wait_outlives_its_worker(house: House, tmp_path: Path) -> None:
    """DA-1. No worker is held: time passes and signals are kept while none is there, and the run goes on."""
    app = waiting(tmp_path, "type: WAIT, duration: 1", "type: WAIT, signal: go")
    async with house.with_app(app) as busy:
        run_id = await busy.start({}, "waiting")
        await waits(busy, run_id, "n0.1")
    await send(busy, run_id, "go", "kept")
    async with busy.worker():
        await busy.reaches(run_id, "COMPLETED", deadline_s=30)
        assert await values(busy, run_id) == {"v0": None, "v1": "kept"}


async def test_waits_go_on_when_the_run_is_dropped_from_memory(house: House, tmp_path: Path) -> None:
    """DA-1. A worker that keeps no run in memory reads each history again, and comes to the same end."""
    app = waiting(tmp_path, "type: WAIT, signal: a", "type: WAIT, duration: 0.1", "type: WAIT, signal: b")
    async with house.with_app(app) as other:
        run_id = await other.start({}, "waiting")
        await waits(other, run_id, "n0.1")
    async with forgetful(other):
        await send(other, run_id, "b", 2, "x")
        await send(other, run_id, "a", 1, "y")
        await other.reaches(run_id, "COMPLETED", deadline_s=30)
    assert await values(other, run_id) == {"v0": 1, "v1": None, "v2": 2}


def forgetful(house: House) -> Worker:
    """A worker without a cache."""
    settings = house.settings

    return make_worker(house.client, house.services(), replace(settings, worker=replace(settings.worker, cache_size=0)))


async def test_a_wait_is_cancelled_with_its_run(house: House, tmp_path: Path) -> None:
    """DA-9. Nobody has to wait for the end of a wait."""
    async with house.with_app(waiting(tmp_path, "type: WAIT, duration: PT240H")) as busy:
        run_id = await busy.start({}, "waiting")
        await waits(busy, run_id, "n0.1")
        await busy.runs.cancel(str(run_id), CancelRequest("rita", "enough"))
        row = await busy.reaches(run_id, "CANCELLED")
        assert row.failure == "cancelled by rita: enough"
