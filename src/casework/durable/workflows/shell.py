"""What every run has around its work: how it ends, whatever happens, and what it can be told and asked meanwhile.

It moves like this. The work is done by a subclass, a graph's or a tree's, and gives the run's end, or raises. However
it ends (by itself, an error, a person), the last thing that the run does is to write its end into its row. A subclass
has its own `run` and `__init__`, since the SDK wants to see both in the very class.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from dataclasses import fields, is_dataclass

from temporalio import workflow
from temporalio.exceptions import ApplicationError, is_cancelled_exception

from casework.durable import contracts
from casework.durable.contracts import CancelRequest, Decision, DecisionReply, RunEnd, RunStart, Standing
from casework.durable.workflows.failures import only_cancelled, root_failure
from casework.durable.workflows.inbox import Inbox
from casework.durable.workflows.journal import Journal
from casework.durable.workflows.operations import Operations
from casework.durable.workflows.rolling import Rolling, uncancel


def is_unwinding() -> bool:
    """Whether the engine only drops this run from memory (cache eviction); the SDK has no public word for it."""
    if not workflow.in_workflow():  # code of a dropped run that is thrown away where no loop runs, or another
        return True
    return bool(getattr(asyncio.get_running_loop(), "_deleting", False))


class RunFile:
    """What the parts of one run share. Making it cannot fail: a bundle that does not hold fails the run, by name."""

    def __init__(self, start: RunStart) -> None:
        self.start = start
        self.journal = Journal()
        self.operations = Operations(contracts.Owner(start.tenant, start.run_id), self.journal)
        self.inbox = Inbox(self.journal)
        self.rolling = Rolling(start, self.journal, self.inbox, self.operations)


PASSING = (GeneratorExit, workflow.ContinueAsNewError, workflow.NondeterminismError)
"""Errors that are the engine's: they end no run."""


class RunShell:
    """A run's Temporal workflow, but for its work."""

    def __init__(self, file: RunFile) -> None:
        self._file = file
        self._cancel: CancelRequest | None = None if file.start.carried is None else file.start.carried.cancel
        self._main: asyncio.Task[None] | None = None

    async def through(self, start: RunStart) -> RunEnd:
        """Do the work, then write the end."""
        end = await self._outcome(start)
        if self._cancel is not None and end.status != "CANCELLED":
            self._file.journal.event("", "agent.run_cancel_ignored", {"by": self._cancel.by, "why": f"it {end.status}"})
        return await self._finish(end)

    @abstractmethod
    async def work(self, start: RunStart) -> RunEnd:
        """What the run is for, and how it ends."""

    async def _outcome(self, start: RunStart) -> RunEnd:
        """How the run ends: by its work, by a person, by an error. Nothing but the engine's unwinding gets past it."""
        self._main = asyncio.current_task()
        try:
            return await self.work(start)
        except asyncio.CancelledError:
            if is_unwinding():
                raise
            return self._cancelled()
        except BaseException as error:  # an unknown error ends the run FAILED, never an endless retry
            if isinstance(error, PASSING) or is_unwinding():
                raise
            return self._cancelled() if only_cancelled(error) else RunEnd("FAILED", failure=root_failure(error))
        finally:
            self._main = None

    async def _finish(self, end: RunEnd) -> RunEnd:
        """Write the end, answer whoever still asks, and let the engine show the same end.

        An end that cannot be written, because an entry before it is refused, is FAILED and is written alone. Should
        even that be refused, the run ends in the engine, and the sweep finds its row.
        """
        self._file.inbox.close()
        self._file.journal.end(end)
        error = await self._written()
        if error is not None:
            dropped = self._file.journal.outbox.drop()
            end = RunEnd("FAILED", failure=f"{error} ({dropped} entries could not be written)")
            self._file.journal.end(end)
            await self._written()
        if end.status == "FAILED":
            raise ApplicationError(end.failure or "failed", type="RunFailedError", non_retryable=True)
        if end.status == "CANCELLED" and self._cancel is None:
            raise asyncio.CancelledError  # asked for by the engine's own interface, which then shows it as cancelled
        return end

    async def _written(self) -> str | None:
        """Send what is left, open updates included; why it cannot be, or None. A cancellation does not stop it."""
        operations = self._file.operations
        while True:
            try:
                await operations.flush()
                await workflow.wait_condition(workflow.all_handlers_finished)
                if not len(self._file.journal.outbox):
                    return None
            except asyncio.CancelledError:
                if is_unwinding():
                    raise
                uncancel()
            except Exception as error:  # noqa: BLE001  # whatever it is, the run must end
                if not is_cancelled_exception(error):
                    return root_failure(error)
                uncancel()

    def _cancelled(self) -> RunEnd:
        uncancel()
        who = self._cancel or _by_the_engine(self._file.start)
        self._file.journal.event("", "agent.run_cancel_requested", {"by": who.by, "reason": who.reason})
        return RunEnd("CANCELLED", failure=f"cancelled by {who.by}: {who.reason}".rstrip(": "))

    @workflow.signal(name=contracts.DECIDE_SIGNAL)
    def decide(self, decision: Decision) -> None:
        """A person's answer, sent and forgotten. What is no decision is told in the log of the run."""
        if _well_formed(decision):
            self._file.inbox.receive(decision)
        else:
            self._file.journal.log("", "WARNING", f"a signal was no decision and is ignored: {decision!r:.200}")

    @workflow.update(name=contracts.DECIDE_UPDATE)
    async def decide_and_confirm(self, decision: Decision) -> DecisionReply:
        """A person's answer; returns when it is judged and its row is written."""
        reply, outbox = self._file.inbox.receive(decision), self._file.journal.outbox
        written = outbox.last
        await workflow.wait_condition(lambda: outbox.confirmed >= written or outbox.dropped >= written)
        return reply if outbox.confirmed >= written else DecisionReply(False, "it could not be written; the run failed")

    @decide_and_confirm.validator
    def _check_decision(self, decision: Decision) -> None:
        if not _well_formed(decision):
            raise ApplicationError("this is no decision", type="InputError", non_retryable=True)

    @workflow.signal(name=contracts.CANCEL_SIGNAL)
    def cancel(self, request: CancelRequest) -> None:
        """Stop the run; the first request counts. Nothing is decided from now on; what was decided is acted on."""
        if self._cancel is not None or not _well_formed(request):
            return
        self._cancel = request
        self._file.inbox.close()
        if self._main is not None and self._file.inbox.accepted is None:
            self._main.cancel()

    @workflow.signal(name=contracts.TELL_AGAIN_SIGNAL)
    def tell_again(self) -> None:
        """The rows are older than the run: write them again as it stands."""
        self._file.journal.tell_again()

    @workflow.query(name=contracts.STANDING_QUERY)
    def standing(self) -> Standing:
        """Where the run stands, to compare its row with."""
        journal = self._file.journal
        return Standing(journal.version, journal.status, len(journal.outbox))

    @workflow.query(name=contracts.STATE_QUERY)
    def state(self) -> str:
        """The run's status as the workflow sees it."""
        return self._file.journal.status


def _by_the_engine(start: RunStart) -> CancelRequest:
    """Who cancels through the engine: what started this run there, or somebody with the engine's own tools."""
    if start.started_by:
        return CancelRequest(start.started_by, "")
    return CancelRequest("the engine's own interface", workflow.cancellation_reason() or "")


def _well_formed(message: Decision | CancelRequest) -> bool:
    """Whether a message from outside has the shape it says: the engine hands on whatever was sent."""
    return is_dataclass(message) and all(isinstance(getattr(message, part.name), str) for part in fields(message))
