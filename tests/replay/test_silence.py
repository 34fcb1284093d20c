"""Tracing is silent on replay, and a traced run is no other run."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from temporalio.client import WorkflowHistory

from casework.durable.tracing.attempts import TracingInterceptor
from casework.durable.worker import make_worker
from casework.telemetry.tracer import Tracer
from tests.integration.durable.conftest import APPLICATION, House
from tests.replay.replaying import BLOBS, files, replayer


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter: InMemorySpanExporter) -> Tracer:
    return Tracer(SimpleSpanProcessor(exporter), Resource.create({}), ALWAYS_ON)


async def test_recorded_histories_replay_under_tracing_without_a_span(
    tracer: Tracer, exporter: InMemorySpanExporter
) -> None:
    """DA-17. Histories of untraced runs fit the traced worker, and nothing of the past is told again."""
    traced = replayer(BLOBS, TracingInterceptor(tracer))
    for path in files():
        await traced.replay_workflow(WorkflowHistory.from_json(path.stem, path.read_text()))
    assert not exporter.get_finished_spans()


async def test_a_traced_run_replays_without_tracing(
    house: House, tracer: Tracer, exporter: InMemorySpanExporter
) -> None:
    """A worker without traces takes over what one with traces began."""
    async with make_worker(house.client, house.services(), house.settings, watching=[TracingInterceptor(tracer)]):
        run_id = await house.start(APPLICATION)
        await house.reaches(run_id, "AWAITING_REVIEW")
        await house.decide(run_id, "approve")
        await house.client.get_workflow_handle(str(run_id)).result()
    assert {span.name for span in exporter.get_finished_spans()} >= {"run", "visit underwrite", "decision"}
    await replayer().replay_workflow(await house.client.get_workflow_handle(str(run_id)).fetch_history())
