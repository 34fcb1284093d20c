"""A worker process is killed in the middle of a tool: its trace goes on in the next one."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from casework.durable.worker import make_worker, watchers
from casework.settings import DatabaseSettings, Secret, Settings, TelemetrySettings
from casework.telemetry.start import start_tracing
from tests.integration.durable.collector import collecting
from tests.integration.durable.conftest import House, eventually

APP = "tests.integration.durable.hanging_app"
ROOT = Path(__file__).parents[3]


@contextmanager
def worker_process(settings: Settings, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`casework worker` of the hanging application; what it says is in `folder`."""
    env = {**os.environ, **settings.as_environ(), "CASEWORK_TEST_FOLDER": str(folder), "OTEL_BSP_SCHEDULE_DELAY": "100"}
    with (folder / "worker.log").open("wb") as log:
        words = [sys.executable, "-m", "casework", "worker", "--app", f"{APP}:app"]
        made = subprocess.Popen(words, env=env, cwd=ROOT, stdout=log, stderr=log)
        try:
            yield made
        finally:
            made.kill()
            made.wait()


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
        with worker_process(settings, tmp_path) as process:

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
