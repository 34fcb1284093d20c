"""A run of a graph: one Temporal workflow that walks it.

It moves like this. The pure graph engine says what is due; a Job of the task tree does it; its outcome goes back into
the engine; until the engine says that the graph has ended. The tree's listener and the visits write to the journal,
whose entries travel with the next activity. How the run ends, and what it can be told, is the shell's.
"""

from __future__ import annotations

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from casework.durable import contracts
    from casework.durable.contracts import RunEnd, RunStart
    from casework.durable.workflows.failures import VisitFailedError
    from casework.durable.workflows.shell import RunShell, is_unwinding
    from casework.durable.workflows.visits import CaseFile, Due, visit_for
    from casework.graph import commands, engine
    from casework.graph.state import EngineState
    from casework.tasktree import Commander, submit


@workflow.defn(name=contracts.RUN_WORKFLOW)
class CaseRun(RunShell):
    """One durable execution of a Workflow; the Temporal workflow id is the run_id."""

    _file: CaseFile

    @workflow.init
    def __init__(self, start: RunStart) -> None:
        super().__init__(CaseFile(start))

    @workflow.run
    async def run(self, start: RunStart) -> RunEnd:
        """Walk the graph to its end, then write the end."""
        return await self.through(start)

    async def work(self, start: RunStart) -> RunEnd:
        """Walk the graph."""
        file, spec = self._file, self._file.spec
        file.journal.event("", "agent.run_started", {"workflow": file.bundle.name, "version": start.workflow_version})
        state, command = engine.start(spec, dict(start.input), turn_limit=start.turn_limit)
        tree = Commander(
            listener=file.journal.on_stage, is_unwinding=is_unwinding, engine_errors=(asyncio.CancelledError,)
        )
        async with tree:
            while not isinstance(command, (commands.Complete, commands.Fail)):
                if self._cancel is not None:
                    raise asyncio.CancelledError
                outcome = await self._visit(state, command)
                state, command = engine.advance(spec, state, outcome)
                file.inbox.accepted = None
                if isinstance(outcome, commands.Decided) and not isinstance(
                    command, (commands.Complete, commands.Fail)
                ):
                    await file.operations.flush()  # a decision is a row before anything acts on it
        if isinstance(command, commands.Fail):
            return RunEnd("FAILED", failure=_at(command))
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


def _at(command: commands.Fail) -> str:
    """The reason of a failure with its node, where the reason does not name it."""
    named = command.node is None or command.reason.startswith(command.node) or repr(command.node) in command.reason
    return command.reason if named else f"{command.node}: {command.reason}"
