"""A run of a graph: one Temporal workflow that walks it.

It moves like this. The pure graph engine says what is due; a Job of the task tree does it; its outcome goes back into
the engine; until the engine says that the graph has ended. The tree's listener and the visits write to the journal,
whose entries travel with the next activity. How the run ends, and what it can be told, is the shell's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from casework.durable import contracts
    from casework.durable.contracts import RunEnd, RunStart, Signal
    from casework.durable.segment_contracts import Passed
    from casework.durable.workflows.casefile import CaseFile, Due
    from casework.durable.workflows.failures import VisitFailedError
    from casework.durable.workflows.rolling import asked_to_end, uncancel
    from casework.durable.workflows.segments import PassedVisit, Segments
    from casework.durable.workflows.shell import RunShell, is_unwinding
    from casework.durable.workflows.visits import visit_for
    from casework.errors import FatalError
    from casework.graph import commands, engine, tracing
    from casework.graph.state import EngineState
    from casework.graph.tracing import TraceStep
    from casework.tasktree import Commander, submit


_ENDS = (commands.Complete, commands.Fail)


@workflow.defn(name=contracts.RUN_WORKFLOW)
class CaseRun(RunShell):
    """One durable execution of a Workflow; the Temporal workflow id is the run_id."""

    _file: CaseFile

    @workflow.init
    def __init__(self, start: RunStart) -> None:
        super().__init__(CaseFile(start))
        self._trace: list[TraceStep] = []
        self._segments = Segments(self._file)

    @workflow.run
    async def run(self, start: RunStart) -> RunEnd:
        """Walk the graph to its end, then write the end."""
        main = asyncio.current_task()
        assert main is not None
        self._file.rolling.wake = main.cancel
        return await self.through(start)

    async def work(self, start: RunStart) -> RunEnd:
        """Walk the graph."""
        file, chains = self._file, self._segments
        state, command = self._begin(start)
        async with self._tree(start) as tree:
            while not isinstance(command, _ENDS):
                if self._cancel is not None and file.inbox.accepted is None:
                    raise asyncio.CancelledError
                if passed := await chains.passed(state, command):
                    state, command = await self._take_over(state, command, passed)
                self._stop_if_asked(state, command)
                if not passed and not isinstance(command, _ENDS):
                    state, command = await self._visited(tree, state, command)
                if not isinstance(command, _ENDS) and not chains.alone and file.rolling.due():
                    await self._roll_over(tree, state)
        if isinstance(command, commands.Fail):
            return RunEnd("FAILED", failure=command.told)
        assert isinstance(command, commands.Complete)
        output = command.output if start.started_by else None
        return RunEnd("COMPLETED", outcome=command.outcome, output=output)

    def _stop_if_asked(self, state: EngineState, command: commands.Command) -> None:
        """A segment that was told to end came to its end; what it did counts, and the run stops behind it."""
        file, chains = self._file, self._segments
        if chains.sent and asked_to_end(self._cancel, file.inbox):
            chains.tell_terminated(state, command)
            raise asyncio.CancelledError

    async def _take_over(self, state: EngineState, command: Due, passed: Sequence[Passed]) -> engine.Step:
        """The visits that a segment has behind it, one after the other."""
        following: commands.Command = command
        for each in passed:
            if isinstance(following, _ENDS):
                raise FatalError(f"a segment came to {each.path}, and the run has ended")
            outcome = await submit(PassedVisit(self._file, state, following, each))
            state, following = self._advanced(state, following, outcome)
        return state, following

    async def _visited(self, tree: Commander, state: EngineState, command: Due) -> engine.Step:
        """The node that is due, visited alone."""
        file = self._file
        outcome = await self._visit(tree, state, command)
        state, following = self._advanced(state, command, outcome)
        file.inbox.accepted = None
        if isinstance(outcome, commands.Decided) and not isinstance(following, _ENDS):
            await file.operations.flush()  # a decision is a row before anything acts on it
        return state, following

    def _advanced(self, state: EngineState, command: Due, outcome: commands.Outcome) -> engine.Step:
        self._trace += tracing.steps(command, outcome)
        return engine.advance(self._file.spec, state, outcome)

    def _begin(self, start: RunStart) -> engine.Step:
        """Where the run starts, or goes on."""
        file, told = self._file, {"workflow": self._file.bundle.name, "version": start.workflow_version}
        if start.carried is not None:
            if start.fork is not None and start.carried.part == 1:
                file.journal.event("", "agent.run_started", told)
                file.journal.event("", "agent.run_forked", asdict(start.fork))
            state = EngineState.from_plain(start.carried.state)
            return state, engine.pending(file.spec, state)
        file.journal.event("", "agent.run_started", told)
        return engine.start(file.spec, dict(start.input), turn_limit=start.turn_limit)

    def _tree(self, start: RunStart) -> Commander:
        rolling = self._file.rolling
        return Commander(
            listener=self._file.journal.on_stage,
            is_unwinding=lambda: rolling.leaving or is_unwinding(),
            engine_errors=(asyncio.CancelledError,),
            counters=None if start.carried is None else start.carried.counters,
        )

    async def _visit(self, tree: Commander, state: EngineState, command: Due) -> commands.Outcome:
        file = self._file
        visit = visit_for(file, state, command)
        if not visit.resumed:
            file.journal.enter(command.node, state.turn, state.loop_count)
            if not isinstance(command, commands.AwaitDecision):
                file.journal.run("RUNNING")
        node = submit(visit)
        try:
            return await self._outcome_of(node, tree, state)
        except VisitFailedError as error:
            outcome: commands.Outcome = error.outcome or commands.NodeFailed(str(error))
            return outcome

    async def _outcome_of(self, node: Any, tree: Commander, state: EngineState) -> commands.Outcome:
        """The outcome of a visit. One that comes to rest on its way goes on in the next part of the run."""
        rolling = self._file.rolling
        while True:
            try:
                outcome: commands.Outcome = await node
            except asyncio.CancelledError:
                if is_unwinding() or not rolling.resting or asked_to_end(self._cancel, self._file.inbox):
                    raise
                uncancel()
                await self._roll_over(tree, state)
            else:
                return outcome

    async def _roll_over(self, tree: Commander, state: EngineState) -> None:
        await self._file.rolling.over(state, tree, lambda: self._cancel)

    @workflow.signal(name=contracts.NAMED_SIGNAL)
    def signalled(self, signal: Signal) -> None:
        """A signal that a WAIT node waits for, or will wait for."""
        self._file.inbox.signals.receive(signal)

    @workflow.query(name=contracts.TRACE_QUERY)
    def trace(self) -> list[list[str]]:
        """The visits and branches that have ended in this part of the run: path, command, outcome."""
        return [list(step) for step in self._trace]
