"""A run: one Temporal workflow that walks one graph.

It moves like this. The pure graph engine says what is due; a Job of the task tree does it; its outcome goes back into
the engine; until the engine says that the graph has ended. The tree's listener and the visits write to the journal,
whose entries travel with the next activity. However the run ends (by the graph, an error, a person), the last thing it
does is to write its end into its row.
"""

from __future__ import annotations

import asyncio
import contextlib

from temporalio import workflow
from temporalio.exceptions import ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from casework.durable import contracts
    from casework.durable.contracts import CancelRequest, Decision, DecisionReply, RunEnd, RunStart
    from casework.durable.workflows.failures import StepFailedError, VisitFailedError, root_failure
    from casework.durable.workflows.visits import CaseFile, Due, visit_for
    from casework.graph import commands, engine
    from casework.graph.state import EngineState
    from casework.tasktree import Commander, submit


def is_unwinding() -> bool:
    """Whether the engine only drops this run from memory (cache eviction); the SDK has no public word for it."""
    return bool(getattr(asyncio.get_running_loop(), "_deleting", False))


@workflow.defn(name=contracts.RUN_WORKFLOW)
class CaseRun:
    """One durable execution of a Workflow; the Temporal workflow id is the run_id."""

    @workflow.init
    def __init__(self, start: RunStart) -> None:
        self._file = CaseFile(start)
        self._cancel: CancelRequest | None = None
        self._main: asyncio.Task[None] | None = None

    @workflow.run
    async def run(self, start: RunStart) -> RunEnd:
        """Walk the graph to its end."""
        try:
            end = await self._walk(start)
        except asyncio.CancelledError:
            if is_unwinding():
                raise
            return await self._cancelled()
        except Exception as error:  # noqa: BLE001  # an unknown error ends the run FAILED, never an endless retry
            if is_cancelled_exception(error):
                return await self._cancelled()
            end = RunEnd("FAILED", failure=root_failure(error))
        return await self._finish(end)

    async def _walk(self, start: RunStart) -> RunEnd:
        self._main = asyncio.current_task()
        if self._cancel is not None:
            raise asyncio.CancelledError
        file, spec = self._file, self._file.spec
        file.journal.event("", "agent.run_started", {"workflow": file.bundle.name, "version": start.workflow_version})
        state, command = engine.start(spec, dict(start.input), turn_limit=start.turn_limit)
        tree = Commander(
            listener=file.journal.on_stage, is_unwinding=is_unwinding, engine_errors=(asyncio.CancelledError,)
        )
        async with tree:
            while not isinstance(command, (commands.Complete, commands.Fail)):
                outcome = await self._visit(state, command)
                state, command = engine.advance(spec, state, outcome)
                if isinstance(outcome, commands.Decided) and not isinstance(
                    command, (commands.Complete, commands.Fail)
                ):
                    await file.operations.flush()  # a decision is a row before anything acts on it
        self._main = None
        if isinstance(command, commands.Fail):
            return RunEnd("FAILED", failure=command.reason)
        return RunEnd("COMPLETED", outcome=command.outcome)

    async def _visit(self, state: EngineState, command: Due) -> commands.Outcome:
        file = self._file
        file.journal.enter(command.node, state.turn, state.loop_count)
        if not isinstance(command, commands.AwaitDecision):
            file.journal.run("RUNNING")
        try:
            outcome: commands.Outcome = await submit(visit_for(file, state, command))
        except VisitFailedError as error:
            return commands.NodeFailed(str(error))
        return outcome

    async def _finish(self, end: RunEnd) -> RunEnd:
        """Write the end, answer whoever still asks, and let the engine show the same end."""
        self._file.inbox.close()
        end = await self._write_end(end)
        if end.status == "FAILED":
            raise ApplicationError(end.failure or "failed", type="RunFailedError", non_retryable=True)
        return end

    async def _write_end(self, end: RunEnd) -> RunEnd:
        """An end that cannot be written, because an entry before it is refused, is FAILED and is written alone.

        Should even that be refused, the run ends in the engine, and the sweep finds its row.
        """
        file = self._file
        file.journal.end(end)
        try:
            await file.operations.flush()
            await workflow.wait_condition(workflow.all_handlers_finished)
            await file.operations.flush()
        except StepFailedError as error:
            dropped = file.journal.outbox.drop()
            end = RunEnd("FAILED", failure=f"{error.reason} ({dropped} entries could not be written)")
            file.journal.end(end)
            with contextlib.suppress(StepFailedError):
                await file.operations.flush()
        return end

    async def _cancelled(self) -> RunEnd:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        who = self._cancel or CancelRequest("the engine's own interface", workflow.cancellation_reason() or "")
        self._file.journal.event("", "agent.run_cancel_requested", {"by": who.by, "reason": who.reason})
        end = await self._finish(RunEnd("CANCELLED", failure=f"cancelled by {who.by}: {who.reason}".rstrip(": ")))
        if self._cancel is None:
            raise asyncio.CancelledError  # asked for by the engine's own interface, which then shows it as cancelled
        return end

    @workflow.signal(name=contracts.DECIDE_SIGNAL)
    def decide(self, decision: Decision) -> None:
        """A person's answer, sent and forgotten."""
        self._file.inbox.receive(decision)

    @workflow.update(name=contracts.DECIDE_UPDATE)
    async def decide_and_confirm(self, decision: Decision) -> DecisionReply:
        """A person's answer; returns when it is judged and its row is written."""
        reply, outbox = self._file.inbox.receive(decision), self._file.journal.outbox
        written = outbox.last
        await workflow.wait_condition(lambda: outbox.confirmed >= written)
        return reply

    @workflow.signal(name=contracts.CANCEL_SIGNAL)
    def cancel(self, request: CancelRequest) -> None:
        """Stop the run; the first request counts."""
        if self._cancel is None:
            self._cancel = request
            if self._main is not None:
                self._main.cancel()

    @workflow.query(name=contracts.STATE_QUERY)
    def state(self) -> str:
        """The run's status as the workflow sees it."""
        return self._file.journal.status
