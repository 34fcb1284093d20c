"""The Temporal development server: open runs survive its death, and a second start is refused."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from casework.durable.connection import connect
from casework.durable.local import LocalTemporal
from casework.errors import LocalStackError
from casework.settings import Settings, TemporalSettings

from .conftest import gone, wait_until

Parent = Callable[[str, Path], tuple[subprocess.Popen[str], int]]


@workflow.defn
class Waits:
    """Waits for one signal, or a month."""

    def __init__(self) -> None:
        self._word = ""

    @workflow.run
    async def run(self) -> str:
        try:
            await workflow.wait_condition(lambda: self._word != "", timeout=timedelta(days=30))
        except TimeoutError:
            return "nobody came"
        return self._word

    @workflow.signal
    def say(self, word: str) -> None:
        self._word = word


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "Zoë's stack? 100%20 #1" / "temporal"


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[LocalTemporal]:
    async with LocalTemporal(folder) as running:
        yield running


async def client_of(server: LocalTemporal) -> Client:
    return await connect(Settings(temporal=TemporalSettings(address=server.address)))


async def test_killed_it_comes_back_with_open_workflows_at_the_same_port(
    server: LocalTemporal, folder: Path, tmp_path: Path
) -> None:
    client = await client_of(server)
    handle = await client.start_workflow(Waits.run, id="open", task_queue="waits")
    address, killed = server.address, server.pid
    assert killed
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: server.pid is None, "the killed server is noticed")
    assert await server.start() == address
    assert (folder / "temporal.db").stat().st_size > 0
    assert os.listdir(tmp_path) == [folder.parent.name]

    client = await client_of(server)
    handle = client.get_workflow_handle_for(Waits.run, "open")
    assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING
    await handle.signal(Waits.say, "still here")
    async with Worker(client, task_queue="waits", workflows=[Waits]):
        assert await handle.result() == "still here"


async def test_a_stop_and_a_start_keep_open_workflows(server: LocalTemporal) -> None:
    await (await client_of(server)).start_workflow(Waits.run, id="open", task_queue="waits")
    server.stop()
    await server.start()
    described = await (await client_of(server)).get_workflow_handle("open").describe()
    assert described.status == WorkflowExecutionStatus.RUNNING


async def test_a_second_start_on_the_folder_is_refused(server: LocalTemporal, folder: Path) -> None:
    with pytest.raises(LocalStackError, match="Another program runs temporal"):
        await LocalTemporal(folder).start()
    assert server.pid


async def test_a_kill_of_the_parent_is_healed_by_the_next_start(folder: Path, parent: Parent) -> None:
    program, pid = parent("temporal", folder)
    program.kill()
    program.wait()
    async with LocalTemporal(folder) as again:
        assert gone(pid)
        assert again.pid


async def test_the_servers_own_variables_do_not_lead_it_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.invalid:7233")
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", "/nonexistent/temporal.toml")
    async with LocalTemporal(folder) as server:
        assert server.pid


async def test_shared_fixture_gives_a_working_client(temporal_client: Client) -> None:
    queue = uuid4().hex
    async with Worker(temporal_client, task_queue=queue, workflows=[Waits]):
        handle = await temporal_client.start_workflow(Waits.run, id=queue, task_queue=queue)
        await handle.signal(Waits.say, "hello")
        assert await handle.result() == "hello"


async def test_time_can_be_skipped(time_skipping_env: WorkflowEnvironment) -> None:
    async with Worker(time_skipping_env.client, task_queue="waits", workflows=[Waits]):
        assert await time_skipping_env.client.execute_workflow(Waits.run, id="w", task_queue="waits") == "nobody came"
