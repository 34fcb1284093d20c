"""Segments, seen from the run: which chains of quick nodes go into one activity, and what of it the run takes over.

It moves like this. Where a chain begins, one activity goes through it with a copy of the graph engine and writes all
that a reader is told. The run then gives the same outcomes to its own engine, visit by visit, through the same tree,
and notes what has been told as if it had told it. What the segment stopped before, the run does alone.
"""

from __future__ import annotations

from functools import cached_property

from casework.durable import contracts, policies
from casework.durable.segment_contracts import Passed, Segment, SegmentReply
from casework.durable.workflows.casefile import CONTEXT_BYTES, CaseFile, Due, Tried, Visit
from casework.durable.workflows.failures import StepFailedError
from casework.errors import FatalError
from casework.graph import commands, segments, tracing
from casework.graph.state import EngineState
from casework.tasktree import current_node
from casework.values import dumps

MOST_VISITS = 400
"""Of one segment. The engine's part of an activity's cost is then next to nothing, and what the run goes through at one
time, some 60 ms of processor time, is far from what an activation may take."""
MOST_BYTES = 256 * 1024
"""Of outcomes, as JSON, after which a segment begins no further tool; the last one may be as large again."""
MOST_MS = 5_000
"""Milliseconds after which a segment begins no further tool: so long the run itself does not hear of it."""


class Segments:
    """The segments of one part of a run."""

    def __init__(self, file: CaseFile) -> None:
        self._file = file
        self.alone = False
        """Whether the node that is due is visited alone, whatever it is: a segment has just stopped before it."""
        self.sent = False
        """Whether the last call of `passed` had an activity."""
        self._begun = ""

    @cached_property
    def _chained(self) -> frozenset[str]:
        bundle = self._file.bundle
        return segments.chained(bundle.workflow.spec, bundle.quick) if bundle.quick else frozenset()

    async def passed(self, state: EngineState, command: Due) -> tuple[Passed, ...]:
        """Go through the chain that begins at the node that is due; none where it is to be visited alone, now."""
        alone, self.alone, self.sent, self._begun = self.alone, False, False, ""
        if alone or command.node not in self._chained or len(dumps(state.context)) > CONTEXT_BYTES // 2:
            return ()
        journal, self.sent = self._file.journal, True
        before = journal.reserve(MOST_VISITS + 1)  # one is begun behind the last
        try:
            reply = await self._answer(state, command, before)
        except StepFailedError:
            return ()  # alone the node shows what is the matter, or that nothing is
        if not reply.cut:
            journal.give_back(before)
        self.alone, self._begun = bool(reply.visits) and not reply.full, reply.begun
        self._file.tried = Tried(reply.begun, reply.fault) if reply.tried else None
        return reply.passed()

    def tell_terminated(self, state: EngineState, command: commands.Command) -> None:
        """The run stops in the visit that is due, whose start a segment has told, in the run's row too."""
        if self._begun and isinstance(command, commands.RunTool):
            journal = self._file.journal
            journal.enter(command.node, state.turn, state.loop_count)
            journal.passed(self._begun)
            journal.event(self._begun, "agent.node_terminated", {"node": command.node})

    async def _answer(self, state: EngineState, command: Due, version: int) -> SegmentReply:
        file, path = self._file, tracing.path_of(command)
        return await file.operations.execute(
            contracts.RUN_SEGMENT,
            path,
            policies.SEGMENT.operation,
            policies.SEGMENT,
            SegmentReply,
            lambda entries: Segment(
                owner=file.operations.owner,
                path=path,
                workflow=file.bundle.name,
                workflow_version=file.start.workflow_version,
                state=state.to_plain(),
                version=version,
                quick=file.bundle.quick,
                most_visits=MOST_VISITS,
                most_bytes=MOST_BYTES,
                most_ms=MOST_MS,
                recommendation=file.journal.recommendation,
                outbox=entries,
            ),
        )


class PassedVisit(Visit, inline=True):
    """A visit that a segment has behind it: a Job whose outcome is there already, and told. It waits for nothing."""

    def __init__(self, file: CaseFile, state: EngineState, command: Due, passed: Passed) -> None:
        super().__init__(file, state, command)
        self._passed = passed
        if passed.path != tracing.path_of(command):
            raise FatalError(f"a segment came to {passed.path}, and the run is at {tracing.path_of(command)}")
        file.journal.enter(command.node, state.turn, state.loop_count)
        file.journal.passed(passed.path)

    def task(self) -> commands.Outcome:  # type: ignore[override]  # inline, as its base is not
        """What it came back with."""
        value, node = self._passed.value, self.node
        if isinstance(self.command, commands.Evaluate):
            return commands.Evaluated(value)
        self.file.journal.told_output(current_node().path, node.output_key or node.id, self.command.visit, value)
        return commands.Returned(value)
