"""Talking to runs: start, decide, cancel. The API's side of the engine.

A message to a run is durable once the engine has taken it, with or without a worker. The connection is made when it
is first needed, so that the API starts, and says what is missing, while the engine is down.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import QueryRejectCondition, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from casework.durable import canary, contracts
from casework.durable.connection import connect
from casework.durable.contracts import CancelRequest, Decision, DecisionReply, RunEnd, RunStart, Signal, Standing
from casework.durable.in_hand import PATIENCE, InHand, Workers, in_hand, workers
from casework.durable.schedules import sweep_id
from casework.errors import FatalError, PayloadUnreadableError, SettingsError, StateError, UnreachableError
from casework.settings import HistorySettings, Settings
from casework.values import content_hash

Made = TypeVar("Made")
CALL_TIMEOUT = timedelta(seconds=10)
"""Longest wait for one answer of the engine, with the time that a first call takes to connect."""
ASK_AGAIN_S = 30.0
"""After so long a client asks again whether it can read what workers write, where the engine has not said."""

_HINT = "Start it with `casework dev`, or set TEMPORAL_ADDRESS."
_GONE = {RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION}


class RunClient:
    """Runs of one task queue, through one connection."""

    @classmethod
    async def open(cls, settings: Settings) -> RunClient:
        """A client that connects at its first call."""
        return cls(await connect(settings, lazy=True), settings.temporal.task_queue, settings.histories)

    def __init__(self, client: Client, task_queue: str, histories: HistorySettings | None = None) -> None:
        self._client = client
        self.task_queue = task_queue
        self._histories = histories or HistorySettings()
        self._agrees_until = 0.0

    @property
    def engine(self) -> Client:
        """The connection itself."""
        return self._client

    async def try_store(self) -> None:
        """Whether large values can be kept and read, where this process is to keep them apart.

        Raises:
            SettingsError: they cannot.
        """
        await canary.try_store(self._client)

    async def start(self, start: RunStart, task_queue: str | None = None) -> bool:
        """Start the run's Temporal workflow; one that is there already is left as it is. False where it has ended.

        `task_queue` is the one of the run's row; None: this client's own.

        Raises:
            UnreachableError: the engine cannot be reached; the PENDING row is there for the sweep.
            FatalError: the engine refuses it for good, for its size for example.
        """
        await self.agree()
        bounds = self._histories
        start = replace(
            start,
            roll_over_events=bounds.roll_over_events,
            roll_over_bytes=bounds.roll_over_bytes,
            sends_mentioned=True,
        )
        seconds = contracts.task_seconds(start.bundle)
        try:
            await reached(
                self._client.start_workflow(
                    contracts.workflow_type(start.bundle),
                    start,
                    id=start.run_id,
                    task_queue=task_queue or self.task_queue,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                    task_timeout=None if seconds is None else timedelta(seconds=seconds),
                    rpc_timeout=CALL_TIMEOUT,
                    static_summary=f"{contracts.name_of(start.bundle)} for {start.user}"[:200],
                )
            )
        except WorkflowAlreadyStartedError:
            return False
        return True

    async def decide(self, run_id: str, decision: Decision) -> None:
        """Send a decision; it is kept for the run even while no worker is up.

        Raises:
            StateError: the run has ended.
            UnreachableError: the engine cannot be reached; nothing was sent.
        """
        await self.agree()
        await reached(self._handle(run_id).signal(contracts.DECIDE_SIGNAL, decision, rpc_timeout=CALL_TIMEOUT))

    async def decide_and_confirm(self, run_id: str, decision: Decision, timeout_s: float) -> DecisionReply | None:
        """Send a decision and wait until the run has judged it; None when the time is over, and then it is sent.

        Raises:
            StateError: the run has ended.
            UnreachableError: the engine cannot be reached; nothing was sent.
        """
        await self.agree()
        update = self._handle(run_id).execute_update(
            contracts.DECIDE_UPDATE, decision, id=content_hash(decision), result_type=DecisionReply
        )
        try:
            return await asyncio.wait_for(_in_our_words(update), timeout_s)
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
            # An update that no worker has taken is not kept; a signal is. The run knows them by the same id.
            await self.decide(run_id, decision)
            return None

    async def signal(self, run_id: str, signal: Signal) -> None:
        """Send a signal for a WAIT node; it is kept for the run even while no worker is up.

        Raises:
            StateError: the run has ended.
            UnreachableError: the engine cannot be reached; nothing was sent.
        """
        await self.agree()
        await reached(self._handle(run_id).signal(contracts.NAMED_SIGNAL, signal, rpc_timeout=CALL_TIMEOUT))

    async def cancel(self, run_id: str, request: CancelRequest) -> None:
        """Ask the run to stop.

        Raises:
            StateError: the run has ended.
            UnreachableError: the engine cannot be reached; nothing was sent.
        """
        await self.agree()
        await reached(self._handle(run_id).signal(contracts.CANCEL_SIGNAL, request, rpc_timeout=CALL_TIMEOUT))

    async def tell_again(self, run_id: str) -> None:
        """Ask the run to write its rows again as it stands.

        Raises:
            StateError: the run has ended.
            UnreachableError: the engine cannot be reached; nothing was sent.
        """
        await reached(self._handle(run_id).signal(contracts.TELL_AGAIN_SIGNAL, rpc_timeout=CALL_TIMEOUT))

    async def standing(self, run_id: str) -> Standing | None:
        """Where the run stands by its own account; None where no worker can say.

        Raises:
            StateError: the engine does not know the run.
            UnreachableError: the engine cannot be reached.
        """
        query = self._handle(run_id).query(
            contracts.STANDING_QUERY,
            result_type=Standing,
            reject_condition=QueryRejectCondition.NOT_OPEN,
            rpc_timeout=CALL_TIMEOUT,
        )
        try:
            return await reached(query)
        except (WorkflowQueryFailedError, WorkflowQueryRejectedError):
            return None

    async def check(self) -> None:
        """Ask the engine whether it serves this namespace.

        Raises:
            UnreachableError: it cannot be reached, or does not serve.
        """
        described = self._client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=self._client.namespace), timeout=CALL_TIMEOUT
        )
        try:
            await reached(described)
        except StateError:
            raise UnreachableError(
                f"Temporal has no namespace {self._client.namespace!r}. Create it, or set TEMPORAL_NAMESPACE."
            ) from None

    async def in_hand(self, run_id: str) -> InHand | None:
        """What the engine has in hand for an open run; None where it does not say within two seconds."""
        return await in_hand(self._client, run_id)

    async def workers(self) -> Workers | None:
        """Who works on this task queue; None where the engine does not say within two seconds."""
        return await workers(self._client, self.task_queue)

    async def agree(self) -> None:
        """Before the first value is sent: that this process has the keys and blobs of the workers. What it sends would
        otherwise stand in clear in histories where all else is encrypted. Where the engine does not say, the call
        tells, and it is asked again after a while.

        Raises:
            PayloadUnreadableError: it has not.
        """
        if time.monotonic() < self._agrees_until:
            return
        try:
            async with asyncio.timeout(min(PATIENCE, CALL_TIMEOUT).total_seconds()):
                await canary.require(self._client, sweep_id(self.task_queue))
        except SettingsError as error:
            raise PayloadUnreadableError(str(error)) from error
        except (RPCError, RuntimeError, TimeoutError):
            self._agrees_until = time.monotonic() + ASK_AGAIN_S
        else:
            self._agrees_until = math.inf

    def _handle(self, run_id: str) -> WorkflowHandle[object, RunEnd]:
        return self._client.get_workflow_handle(run_id, result_type=RunEnd)


async def reached(call: Awaitable[Made]) -> Made:
    """What the engine answers in time.

    Raises:
        StateError: there is no such open workflow, or no such thing.
        FatalError: it refuses the request for good.
        UnreachableError: it cannot be reached.
    """
    within_s = CALL_TIMEOUT.total_seconds()
    try:
        async with asyncio.timeout(within_s):
            return await _in_our_words(call)
    except TimeoutError as error:
        told = f"Temporal cannot be reached (no answer within {within_s:g} s). Is it running? {_HINT}"
        raise UnreachableError(told) from error


async def _in_our_words(call: Awaitable[Made]) -> Made:
    try:
        return await call
    except RPCError as error:
        if error.status in _GONE:
            raise StateError("The run is not open in the engine: it has ended, or it is not started yet.") from error
        if error.status is RPCStatusCode.INVALID_ARGUMENT or "larger than max" in error.message:
            raise FatalError(f"Temporal refuses the request for good: {error.message:.300}") from error
        raise UnreachableError(f"Temporal cannot be reached ({error.status.name}). Is it running? {_HINT}") from error
    except RuntimeError as error:  # what a first connection that fails raises
        raise UnreachableError(f"Temporal cannot be reached. Is it running? {_HINT}") from error
