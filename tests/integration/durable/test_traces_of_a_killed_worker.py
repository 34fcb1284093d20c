"""A worker process is killed in the middle of a tool: its trace goes on in the next one."""

from __future__ import annotations

import importlib
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from casework.durable.worker import make_worker, watchers
from casework.settings import DatabaseSettings, Secret, TelemetrySettings
from casework.telemetry.start import start_tracing
from tests.integration.durable.collector import collecting
from tests.integration.durable.conftest import House, eventually
from tests.integration.durable.worker_processes import worker_process

APP = "tests.integration.durable.hanging_app"


async def test_another_attempt_joins_the_trace_of_a_killed_worker(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-1. Spans of both workers are one tree, each once; the attempt that died left none, the next is number 2."""
    monkeypatch.setenv("CASEWORK_TEST_FOLDER", str(tmp_path))
    hanging = importlib.import_module(APP)
    other = replace(house, app=hanging.app)
    await other.open()
    run_id = await other.start({}, "errand")
    with collecting() as collector:
        telemetry = TelemetrySettings(endpoint=collector.url)
        settings = replace(house.settings, database=DatabaseSettings(url=Secret(house.dsn)), telemetry=telemetry)
        here = {"CASEWORK_TEST_FOLDER": str(tmp_path), "OTEL_BSP_SCHEDULE_DELAY": "100"}
        with worker_process(settings, f"{APP}:app", tmp_path, **here) as process:

            async def hangs() -> bool:
                assert process.poll() is None, (tmp_path / "worker.log").read_text()
                return (tmp_path / "began").exists() and bool(collector.named("model"))

            await eventually(hangs, "the tool is at work, and the model's span has arrived", 90)
            process.send_signal(signal.SIGKILL)
        tracer = start_tracing(telemetry, "second")
        assert tracer is not None
        async with make_worker(other.client, other.services(), house.settings, watching=watchers(tracer, None)):
            await other.reaches(run_id, "AWAITING_REVIEW", deadline_s=60)
            await other.decide(run_id, "approve")
            await other.reaches(run_id, "COMPLETED")
            await other.client.get_workflow_handle(str(run_id)).result()
        tracer.close(10)
    spans = collector.spans
    known = {span.id for span in spans}
    assert {span.trace for span in spans} == {run_id.hex}
    assert len(known) == len(spans), collector.drawn()
    assert [span.name for span in spans if span.parent not in known] == ["run"], collector.drawn()
    assert {span.service for span in spans} == {"casework-worker", "second"}
    attempt = collector.one("tool look")
    assert (attempt.attributes["casework.attempt"], attempt.failed) == (2, False)
