"""Workers are killed, by SIGKILL, at every point between the claim of a step and the report of its result."""

from __future__ import annotations

import asyncio
import importlib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from casework.durable.activities.faults import FOLDER, Fault, FaultFolder
from casework.durable.trays import tray_id
from casework.settings import DatabaseSettings, Secret
from tests.integration.durable.conftest import House
from tests.integration.durable.processes.trays import yard
from tests.integration.durable.worker_processes import worker_process

APP = "tests.integration.durable.processes.killed_tray_app:app"


@pytest.mark.timeout(240)
async def test_each_transaction_passes_each_task_exactly_once(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BP-9, BP-10, DA-27. Six workers are killed: each Transaction is in the database once for each transactional task.

    The plain task has one key for each Transaction, whatever the attempt, and its result counts once.
    """
    monkeypatch.setenv("CASEWORK_TEST_FOLDER", str(tmp_path))
    killed = importlib.import_module("tests.integration.durable.processes.killed_tray_app")
    faults = FaultFolder(tmp_path / "drill")
    faults.prepare()
    points = [("first", "sent"), ("first", "acted"), ("first", "committed")]
    points += [("send", "claimed"), ("send", "acted"), ("send", "committed")]
    async with yard(house, killed.app, works=False) as here:
        await here.rows("create table effects (uuid uuid, task text)")
        await here.rows("grant all on effects to casework_runtime")
        uuids = [await here.add() for _ in range(4)]
        start = await here.claimed()
        run = tray_id(start.claim_id)
        faults.plan([Fault(f"{task}-{point}", point, f"{task}.1/*", run) for task, point in points])  # type: ignore[arg-type]  # each is a Point
        handle = await here.start(start)
        settings = replace(here.house.settings, database=DatabaseSettings(url=Secret(house.dsn)))
        ended = asyncio.create_task(handle.result())
        while not ended.done():
            folder = tmp_path / f"worker{len(faults.marks())}"
            folder.mkdir(exist_ok=True)
            with worker_process(settings, APP, folder, **{FOLDER: str(faults.folder)}) as process:
                died = asyncio.create_task(asyncio.to_thread(process.wait))
                await asyncio.wait({died, ended}, return_when=asyncio.FIRST_COMPLETED)
                process.kill()
                await died
        assert (await ended).left == 0
        assert [mark.id for mark in faults.marks()] == [f"{task}-{point}" for task, point in points]
        assert await here.statuses(uuids) == ["PROCESSING_COMPLETED"] * 4
        effects = await here.rows("select uuid, task from effects order by 2, 1")
        assert effects == [(uuid, task) for task in ("first.1", "last.1") for uuid in sorted(uuids)]
        for uuid in uuids:
            assert (await here.get(uuid)).data == {"first.1": 1, "send.1": 1, "last.1": 1}
        keys, calls = defaultdict(set), [line.split() for line in killed.CALLS.read_text().splitlines()]
        for task, uuid, key, _ in calls:
            keys[task, uuid].add(key)
        assert {len(each) for each in keys.values()} == {1}
        assert any(task == "send.1" and attempt != "1" for task, _, _, attempt in calls)
