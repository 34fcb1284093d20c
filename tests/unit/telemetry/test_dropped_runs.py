"""A run that the engine drops from memory ends nothing, however it is dropped."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any
from uuid import UUID

import pytest
from temporalio.worker import ExecuteWorkflowInput, WorkflowInboundInterceptor

from casework.durable.contracts import RunStart
from casework.durable.tracing.headers import place_in, with_place
from casework.durable.tracing.workflows import TracedWorkflow
from casework.durable.workflows.run import CaseRun
from casework.telemetry.identity import Place

RUN = UUID("6f2d2f0e-5b0c-4d39-9f0a-0c5f4b7f3a11")


class _Forever:
    def __await__(self) -> Generator[None, None, None]:
        yield


class _Waiting(WorkflowInboundInterceptor):
    def __init__(self) -> None:
        """The last of the chain."""

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002  # the SDK's name
        await _Forever()


def test_a_run_collected_as_garbage_ends_without_a_span_and_without_an_error() -> None:
    """The coroutine is closed where no event loop runs: nothing but the closing goes through."""
    start = RunStart(str(RUN), "default", "ann", {}, {}, 1)
    given = ExecuteWorkflowInput(CaseRun, CaseRun.run, [start], with_place({}, Place(RUN.int, 1)))
    running = TracedWorkflow(_Waiting()).execute_workflow(given)
    running.send(None)
    running.close()


@pytest.mark.parametrize("carrier", [{}, {"traceparent": 7}, {"traceparent": "nonsense"}])
def test_headers_that_carry_no_place_are_none(carrier: Any) -> None:
    from temporalio.converter import PayloadConverter

    payload = PayloadConverter.default.to_payloads([carrier])[0]
    assert place_in({"_tracer-data": payload}) is None
    payload.data = b"\xff not json"
    assert place_in({"_tracer-data": payload}) is None
