"""A run of a free tree: one Temporal workflow for any function that a user has written on the task tree.

It moves like this. The worker says where the tree of the pinned name and version is; its module is loaded here, in the
sandbox, where a clock and chance are refused; it runs on a Commander, and what it asks and calls are activities with
ledger rows, as everywhere. It cannot roll over, since nobody can carry the state of free code: a run whose history is
about to be too long for the engine is stopped, and says so.
"""

from __future__ import annotations

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from casework.durable import contracts
    from casework.durable.contracts import RunEnd, RunStart
    from casework.durable.workflows import tree_faults
    from casework.durable.workflows.failures import only_cancelled, root_failure
    from casework.durable.workflows.rolling import uncancel
    from casework.durable.workflows.shell import PASSING, RunFile, RunShell, is_unwinding
    from casework.durable.workflows.tree_calls import DurableCalls
    from casework.durable.workflows.tree_code import load_tree
    from casework.durable.workflows.tree_events import TreeEvents
    from casework.durable.workflows.tree_room import Room
    from casework.tasktree import Commander, Job, NodeFailedError
    from casework.trees.bundle import PinnedTree
    from casework.values import bounded

RESULT = "result"
"""The key of what a tree returned, among the outputs of its run."""
OWN_CANCEL = "code of the tree raised CancelledError, which nobody had asked for"


@workflow.defn(name=contracts.TREE_WORKFLOW)
class TreeRun(RunShell):
    """One durable execution of a free tree; the Temporal workflow id is the run_id."""

    @workflow.init
    def __init__(self, start: RunStart) -> None:
        super().__init__(RunFile(start))
        self._fault: str | None = None
        self._over = False
        self._telling: asyncio.Task[None] | None = None

    @workflow.run
    async def run(self, start: RunStart) -> RunEnd:
        """Run the tree to its end, then write the end."""
        return await self.through(start)

    async def work(self, start: RunStart) -> RunEnd:
        """Run the tree. A fault that its code may not pass over ends it FAILED, whatever the code makes of it."""
        pinned, journal = PinnedTree.from_plain(start.bundle), self._file.journal
        about = {"workflow": pinned.name, "version": start.workflow_version, "tree_version": pinned.version}
        journal.event("", "agent.run_started", about)
        journal.enter(pinned.name, 1, 0)
        journal.run("RUNNING")
        try:
            return await self._grow(pinned)
        except asyncio.CancelledError:
            if is_unwinding() or self._asked_to_end():
                raise
            return RunEnd("FAILED", failure=self._fault or OWN_CANCEL)
        except Exception as error:  # as what its module raises when it is loaded
            if is_unwinding() or isinstance(error, PASSING) or only_cancelled(error):
                raise
            return self._failed(pinned, error)
        finally:
            if self._fault is not None and not is_unwinding():
                uncancel()

    async def _grow(self, pinned: PinnedTree) -> RunEnd:
        calls = DurableCalls(self._file, pinned, self._stop)
        job = load_tree(pinned.name, pinned.version).job(calls)
        events = TreeEvents(self._file.journal)
        tree = Commander(
            listener=events.on_stage,
            is_unwinding=is_unwinding,
            on_callback_error=events.on_callback_error,
            engine_errors=(asyncio.CancelledError,),
        )
        if self._cancel is not None:
            raise asyncio.CancelledError
        self._telling = asyncio.create_task(self._tell_at_rest(calls.room))
        try:
            result = await tree.run(job)
        except NodeFailedError as error:
            if self._fault is None and only_cancelled(error.__cause__ or error):
                raise asyncio.CancelledError from error
            return self._failed(pinned, error)
        finally:
            self._over = True
            events.close()
        return self._end(job, result)

    async def _tell_at_rest(self, room: Room) -> None:
        """Send what the tree has said while it waits for something else than a call, which would carry it."""
        outbox = self._file.journal.outbox
        while not self._over:
            await workflow.wait_condition(
                lambda: self._over or (len(outbox) > 0 and room.idle and not outbox.travelling)
            )
            try:
                if not self._over:
                    await self._file.operations.flush()
            except Exception as error:  # noqa: BLE001  # whatever it is, nobody would be told any more
                self._stop(root_failure(error))
                return

    def _end(self, job: Job, result: object) -> RunEnd:
        if self._fault is not None:
            return RunEnd("FAILED", failure=self._fault)
        made = bounded(result, f"the result of free tree {job.name!r}")
        self._file.journal.output(job.path, RESULT, 1, made)
        return RunEnd("COMPLETED", output=made if self._file.start.started_by else None)

    def _failed(self, pinned: PinnedTree, error: Exception) -> RunEnd:
        if self._fault is not None:
            return RunEnd("FAILED", failure=self._fault)
        tree_faults.log(pinned.name, error)
        return RunEnd("FAILED", failure=tree_faults.told(error))

    def _stop(self, fault: str) -> None:
        """End the run by `fault`; the first counts."""
        if self._fault is None and self._cancel is None:
            self._fault = fault
            if self._main is not None:
                self._main.cancel()

    def _asked_to_end(self) -> bool:
        """Whether a person, or the engine's own interface, has asked the run to end."""
        main = asyncio.current_task()
        return self._cancel is not None or (self._fault is None and main is not None and main.cancelling() > 0)
