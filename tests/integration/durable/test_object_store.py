"""Runs whose large values lie in an object store; and processes that cannot use theirs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest

from casework.api import build
from casework.app import App
from casework.durable.blob_sweep import remove_gone
from casework.durable.connection import connect
from casework.durable.object_blobs import ObjectBlobs
from casework.durable.schedules import ensure_sweep
from casework.durable.worker import run_worker
from casework.errors import SettingsError
from casework.settings import DatabaseSettings, HistorySettings, Secret, Settings
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.object_store import KEY, SECRET, S3Server, s3_server
from tests.integration.durable.parts import parts_of, replay_all
from tests.integration.durable.test_sealed_runs import WORD, app_in


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with s3_server(tmp_path) as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        yield server


async def over(house: House, url: str) -> House:
    """The same house whose processes keep large values there."""
    histories = HistorySettings(roll_over_events=40, blobs=url, offload_bytes=2048)
    database = DatabaseSettings(url=Secret(house.dsn))
    settings = replace(house.settings, histories=histories, database=database)
    return replace(house, settings=settings, client=await connect(settings))


async def test_a_run_over_an_object_store(house: House, tmp_path: Path, s3: S3Server) -> None:
    """DA-22, DA-20. A worker that never saw the run goes on with it, its histories replay, and when the engine has
    deleted them its blobs go, and no others."""
    url = s3.make_bucket("ours")
    house, blobs = await over(house, url), ObjectBlobs(url, marked_s=0)
    await ensure_sweep(house.client, house.settings.temporal.task_queue)
    async with house.with_app(app_in(tmp_path)) as busy:
        run_id = await busy.start({"note": f"{WORD} " * 2000}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
    async with house.with_app(app_in(tmp_path)) as busy:
        await busy.decide(run_id, "approve")
        row = await busy.reaches(run_id, "COMPLETED")
    histories = await parts_of(house.client, run_id)
    assert row.recommendation == (f"{WORD} " * 1000)
    assert len(histories) > 1
    await replay_all(house.client, histories)
    for history in histories:
        assert sum(event.ByteSize() for event in history.events) < 60_000

    async def old() -> bool:
        return {str(run_id), "casework-canary"} <= set(await blobs.owners(0))

    await eventually(old, "the run has put nothing for a moment")
    assert await remove_gone(house.client, blobs, margin_s=0) == 0
    for history in histories:
        await delete(house, str(run_id), history.events[0].workflow_execution_started_event_attributes)
    assert await remove_gone(house.client, blobs, margin_s=3600) == 0

    async def gone() -> bool:
        return await remove_gone(house.client, blobs, margin_s=0) == 1

    await eventually(gone, "its blobs are removed")
    assert await blobs.owners(0) == ["casework-canary"]


async def delete(house: House, workflow_id: str, started: object) -> None:
    engine_id = getattr(started, "original_execution_run_id", "")
    await house.client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(
            namespace=house.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=engine_id),
        )
    )


async def worker(settings: Settings) -> None:
    await run_worker(App(), settings)


async def api(settings: Settings) -> None:
    made = build(settings, App())
    async with made.router.lifespan_context(made):
        pytest.fail("the API has started")


@pytest.mark.parametrize("start", [worker, api], ids=lambda each: each.__name__)
async def test_a_wrong_bucket_is_found_at_the_start(
    house: House, s3: S3Server, start: Callable[[Settings], Awaitable[None]]
) -> None:
    """DA-22. Before anything is written that could not be kept."""
    lost = await over(house, "s3://nobodys-bucket/prefix")
    with pytest.raises(SettingsError, match=r"no such bucket \(NoSuchBucket\).* CASEWORK_BLOBS"):
        await start(lost.settings)


@pytest.mark.parametrize("start", [worker, api], ids=lambda each: each.__name__)
async def test_refused_credentials_are_found_at_the_start(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[[Settings], Awaitable[None]]
) -> None:
    """DA-22. The error has neither key nor secret."""
    with s3_server(tmp_path, strict_after=1) as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        lost = await over(house, server.make_bucket("ours"))
        with pytest.raises(SettingsError, match="it refuses this process") as caught:
            await start(lost.settings)
    assert KEY not in str(caught.value)
    assert SECRET not in str(caught.value)
