"""The client's side: the place of the request that is being answered goes along with what it sends to a run."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from temporalio.client import (
    Interceptor,
    OutboundInterceptor,
    SignalWorkflowInput,
    StartWorkflowInput,
    StartWorkflowUpdateInput,
    WorkflowHandle,
    WorkflowUpdateHandle,
)

from casework.durable.contracts import RUN_TYPES
from casework.durable.tracing.headers import with_place
from casework.telemetry.requests import REQUEST


class RequestInterceptor(Interceptor):
    """Does nothing where no request is traced."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002  # the SDK's name
        """Watch over what is sent to runs."""
        return _Outbound(next)


class _Outbound(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:  # noqa: A002  # the SDK's name
        request = REQUEST.get()
        if request is not None and input.workflow in RUN_TYPES:
            input.headers = with_place(input.headers, request.starts(UUID(input.id)))
        return await super().start_workflow(input)

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:  # noqa: A002  # the SDK's name
        request = REQUEST.get()
        if request is not None:
            input.headers = with_place(input.headers, request.concerns(UUID(input.id)))
        await super().signal_workflow(input)

    async def start_workflow_update(self, input: StartWorkflowUpdateInput) -> WorkflowUpdateHandle[Any]:  # noqa: A002  # the SDK's name
        request = REQUEST.get()
        if request is not None:
            input.headers = with_place(input.headers, request.concerns(UUID(input.id)))
        return await super().start_workflow_update(input)
