"""Runs whose values are encrypted and, where large, kept as blobs; and workers that lack what the others have."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.worker import Worker

from casework.agents import ModelAnswer, ModelRequest, Request, tool
from casework.app import App
from casework.durable.activations import patient_worker
from casework.durable.activities.engine_side import EngineSide
from casework.durable.activities.model import ModelActivity
from casework.durable.activities.project import ProjectActivity
from casework.durable.activities.tool import ToolActivity
from casework.durable.blob_sweep import remove_gone
from casework.durable.blobs import FolderBlobs
from casework.durable.connection import connect
from casework.durable.contracts import CancelRequest
from casework.durable.keys import KeyFile
from casework.durable.schedules import ensure_sweep
from casework.durable.worker import WORKFLOWS, workflow_runner
from casework.errors import SettingsError, UnreachableError
from casework.settings import HistorySettings
from tests.integration.durable.apps import errand
from tests.integration.durable.conftest import APPLICATION, House, eventually
from tests.integration.durable.parts import parts_of, replay_all

WORD = "BLACKBERRY"
"""What no history may show."""


@tool(effects=False)
def look(number: int) -> str:
    """Look."""
    return f"{WORD} {number}"


def script(request: ModelRequest) -> ModelAnswer:
    read = sum(message.role == "tool" for message in request.messages)
    if read < 8:
        return ModelAnswer(requests=(Request(f"c{read}", "look", {"number": read}),))
    return ModelAnswer(text=f"{WORD} " * 1000)


def app_in(folder: Path) -> App:
    return errand(folder, [look], script)


async def sealed(house: House, folder: Path, *, keys: bool = True, blobs: bool = True, early: int = 40) -> House:
    """The same house whose processes have these settings."""
    path = folder / "keys.json"
    if keys and not path.exists():
        KeyFile().with_new("k1").written_by("k1").save(path)
    histories = HistorySettings(
        roll_over_events=early,
        blobs=str(folder / "blobs") if blobs else None,
        offload_bytes=2048,
        keys=path if keys else None,
    )
    settings = replace(house.settings, histories=histories)
    return replace(house, settings=settings, client=await connect(settings))


@pytest.mark.parametrize("keys", [True, False])
async def test_a_run_with_large_and_encrypted_values(house: House, tmp_path: Path, keys: bool) -> None:
    """DA-22, DA-20. Start, steps, roll-over, decision and replay work as ever; no history shows what is in a value."""
    house = await sealed(house, tmp_path, keys=keys)
    async with house.with_app(app_in(tmp_path)) as busy:
        run_id = await busy.start({"note": WORD}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        standing = await busy.runs.standing(str(run_id))
        assert standing is not None
        await busy.decide(run_id, "approve", f"says {WORD}")
        row = await busy.reaches(run_id, "COMPLETED")
        histories = await parts_of(busy.client, run_id)
    assert row.recommendation == (f"{WORD} " * 1000)
    assert len(histories) > 1
    await replay_all(house.client, histories)
    for history in histories:
        raw = b"".join(event.SerializeToString() for event in history.events)
        assert len(raw) < 60_000
        assert not keys or WORD.encode() not in raw
    kept = [path for path in (tmp_path / "blobs" / str(run_id)).iterdir() if path.is_file()]
    assert kept
    assert not keys or not any(WORD.encode() in path.read_bytes() for path in kept)


async def test_words_of_failures_are_encrypted_and_read(house: House, tmp_path: Path) -> None:
    """DA-22. An error can quote a value: its words are encrypted, and told to those who have the key."""

    @tool(effects=False)
    def breaks() -> str:
        """Break."""
        raise ConnectionError(f"no line to {WORD}")

    def asks(request: ModelRequest) -> ModelAnswer:
        told = [message.content for message in request.messages if message.role == "tool"]
        return ModelAnswer(text=told[0]) if told else ModelAnswer(requests=(Request("c", "breaks", {}),))

    house = await sealed(house, tmp_path)
    async with house.with_app(errand(tmp_path, [breaks], asks)) as busy:
        run_id = await busy.start({}, "errand")

        async def told() -> bool:
            found = await busy.runs.in_hand(str(run_id))
            return found is not None and any(WORD in (each.failure or "") for each in found.pending)

        await eventually(told, "the failure of the attempt is readable")
        row = await busy.reaches(run_id, "AWAITING_REVIEW")
        [history] = await parts_of(busy.client, run_id)
    assert WORD in str(row.recommendation)
    assert WORD.encode() not in b"".join(event.SerializeToString() for event in history.events)
    await busy.client.get_workflow_handle(str(run_id)).terminate(reason="the test is over")
    assert "the test is over" in str(await EngineSide(busy.client).ending(str(run_id)))


@pytest.mark.parametrize("lacks", ["keys", "blobs", "the folder"])
async def test_a_worker_that_lacks_what_others_have_does_not_start(house: House, tmp_path: Path, lacks: str) -> None:
    """DA-22. It says at its start what it cannot read, and what to set."""
    whole, queue = await sealed(house, tmp_path), house.settings.temporal.task_queue
    await ensure_sweep(whole.client, queue)
    await ensure_sweep(whole.client, queue)
    poor = await sealed(house, tmp_path, keys=lacks != "keys", blobs=lacks != "blobs")
    if lacks == "the folder":
        other = replace(whole.settings.histories, blobs=str(tmp_path / "elsewhere"))
        poor = replace(whole, client=await connect(replace(whole.settings, histories=other)))
    with pytest.raises(SettingsError, match=r"cannot read what the workers of its task queue write.*CASEWORK_"):
        await ensure_sweep(poor.client, queue)


async def test_an_api_that_lacks_the_keys_sends_nothing(house: House, tmp_path: Path) -> None:
    """DA-22. What it sends would stand in clear beside what is encrypted: it is refused before it is sent."""
    whole, queue = await sealed(house, tmp_path), house.settings.temporal.task_queue
    await whole.open()
    await ensure_sweep(whole.client, queue)
    run_id = await whole.start(APPLICATION)
    poor = await sealed(house, tmp_path, keys=False, blobs=False)
    with pytest.raises(UnreachableError, match=r"cannot read what the workers of its task queue write.*CASEWORK_"):
        await poor.runs.cancel(str(run_id), CancelRequest("olga", WORD))
    with pytest.raises(UnreachableError, match="cannot read"):
        await poor.start(APPLICATION)
    await whole.client.get_workflow_handle(str(run_id)).terminate(reason="the test is over")


async def test_keys_may_come_while_workers_without_a_writing_one_work(house: House, tmp_path: Path) -> None:
    """DA-22. All get the key, then it writes: no worker is refused on the way."""
    queue, path = house.settings.temporal.task_queue, tmp_path / "keys.json"
    await ensure_sweep(house.client, queue)
    KeyFile().with_new("k1").save(path)
    reading = await sealed(house, tmp_path)
    await ensure_sweep(reading.client, queue)
    KeyFile.load(path).written_by(None).save(path)
    await ensure_sweep((await sealed(house, tmp_path)).client, queue)
    await ensure_sweep(reading.client, queue)


async def test_a_worker_without_keys_ends_no_run(house: House, tmp_path: Path) -> None:
    """DA-22, DA-19. One that was let in all the same cannot advance the run, which goes on when a fitting one is."""
    house = await sealed(house, tmp_path)
    poor = replace(await sealed(house, tmp_path, keys=False, blobs=False), app=app_in(tmp_path))
    whole = replace(house, app=app_in(tmp_path))
    await whole.open()
    run_id = await whole.start({"note": WORD}, "errand")
    failed = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    async with poor.worker():

        async def refused() -> bool:
            [history] = await parts_of(house.client, run_id)
            return any(event.event_type == failed for event in history.events)

        await eventually(refused, "the workflow task has failed")
        with pytest.raises(UnreachableError, match=r"CASEWORK_"):
            await poor.client.data_converter.decode(
                (await parts_of(house.client, run_id))[0]
                .events[0]
                .workflow_execution_started_event_attributes.input.payloads
            )
    async with whole.worker():
        await whole.reaches(run_id, "AWAITING_REVIEW")
        with pytest.raises(UnreachableError, match="this process has no keys"):
            await poor.runs.standing(str(run_id))
        await whole.decide(run_id, "approve")
        await whole.reaches(run_id, "COMPLETED")


async def test_a_step_on_a_worker_without_keys_uses_no_attempt(house: House, tmp_path: Path) -> None:
    """DA-22, DA-18. A step that its worker cannot read is tried again until one can; the run tells that it waited."""
    house = replace(await sealed(house, tmp_path, early=4000), app=app_in(tmp_path))
    poor = replace(await sealed(house, tmp_path, keys=False, blobs=False), app=app_in(tmp_path))
    await house.open()
    queue = house.settings.temporal.task_queue
    advancing = patient_worker(
        4, client=house.client, task_queue=queue, workflows=WORKFLOWS, workflow_runner=workflow_runner()
    )
    services = poor.services()
    steps = (ModelActivity(services).call_model, ToolActivity(services).call_tool, ProjectActivity(services).project)
    async with advancing:
        run_id = await house.start({"note": WORD}, "errand")
        async with Worker(poor.client, task_queue=queue, activities=steps):

            async def given_back() -> bool:
                [history] = await parts_of(house.client, run_id)
                kinds = [event.event_type for event in history.events]
                return kinds.count(EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED) >= 2

            await eventually(given_back, "all attempts of a round have failed, twice")
        good = house.services()
        steps = (ModelActivity(good).call_model, ToolActivity(good).call_tool, ProjectActivity(good).project)
        async with Worker(house.client, task_queue=queue, activities=steps):
            await house.reaches(run_id, "AWAITING_REVIEW")
    waited = [event for event in await house.events(run_id) if event.kind == "agent.payload_unreadable"]
    assert len(waited) == 1
    assert "CASEWORK_" in waited[0].data["error"]
    assert {step.attempt for step in await house.steps(run_id)} == {1}
    await house.client.get_workflow_handle(str(run_id)).terminate(reason="the test is over")


async def test_a_blob_that_is_missing_holds_the_run_and_ends_nothing(house: House, tmp_path: Path) -> None:
    """DA-22. The run waits until a copy is brought back."""
    house = await sealed(house, tmp_path, keys=False, early=4000)
    async with house.with_app(app_in(tmp_path)) as busy:
        run_id = await busy.start({"note": "x"}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
    folder = tmp_path / "blobs" / str(run_id)
    shutil.move(folder, tmp_path / "away")
    await house.decide(run_id, "approve")
    async with house.with_app(app_in(tmp_path)) as busy:

        async def held() -> bool:
            [history] = await parts_of(house.client, run_id)
            kinds = [event.event_type for event in history.events]
            return EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED in kinds

        await eventually(held, "the workflow task has failed")
        assert (await busy.run(run_id)).status == "AWAITING_REVIEW"
        shutil.move(tmp_path / "away", folder)
        assert (await busy.reaches(run_id, "COMPLETED")).outcome == "approved"


async def test_blobs_go_with_their_history(house: House, tmp_path: Path) -> None:
    """DA-22. While the engine has the run, in whatever state, they stay; when it has deleted it they go."""
    house = await sealed(house, tmp_path, keys=False)
    blobs = FolderBlobs(tmp_path / "blobs")
    await ensure_sweep(house.client, house.settings.temporal.task_queue)
    async with house.with_app(app_in(tmp_path)) as busy:
        run_id = await busy.start({"note": "x"}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        assert await remove_gone(busy.client, blobs, margin_s=0) == 0
        await busy.decide(run_id, "approve")
        await busy.reaches(run_id, "COMPLETED")
        await busy.client.get_workflow_handle(str(run_id)).result()
        assert await remove_gone(busy.client, blobs, margin_s=0) == 0
        for history in await parts_of(busy.client, run_id):
            engine_id = history.events[0].workflow_execution_started_event_attributes.original_execution_run_id
            await busy.client.workflow_service.delete_workflow_execution(
                DeleteWorkflowExecutionRequest(
                    namespace=busy.client.namespace,
                    workflow_execution=WorkflowExecution(workflow_id=str(run_id), run_id=engine_id),
                )
            )

        async def gone() -> bool:
            return await remove_gone(busy.client, blobs, margin_s=0) == 1

        assert await remove_gone(busy.client, blobs, margin_s=3600) == 0
        await eventually(gone, "its blobs are removed")
    assert not (tmp_path / "blobs" / str(run_id)).exists()
    assert (tmp_path / "blobs" / "casework-canary").exists()
