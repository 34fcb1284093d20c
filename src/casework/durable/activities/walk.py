"""Where a segment stands: the graph engine goes from node to node here just as in the run, and what a reader is to be
told of each visit is kept until the next write takes it along.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from casework.agents.tools import Tool
from casework.durable.contracts import ToolCall
from casework.durable.segment_contracts import Passed, Segment, SegmentReply, StepFault
from casework.errors import ExpressionError
from casework.graph import commands, engine, templates, tracing
from casework.graph.manifests import AiWorkflowSpec
from casework.graph.state import EngineState
from casework.projection import ContextEntry, EventEntry, RunEntry
from casework.values import Plain, instant


@dataclass(frozen=True)
class DueCall:
    """The tool that is due, with its arguments as it gets them."""

    call: ToolCall
    tool: Tool
    arguments: Plain


class Walk:
    """One segment. `tool_of` gives the tool of a name where it may be called in a segment.

    What is `untold` is handed out once, and is then as good as written: a write that fails ends the segment.
    """

    def __init__(self, spec: AiWorkflowSpec, segment: Segment, tool_of: Callable[[str], Tool | None]) -> None:
        self._spec = spec
        self._segment = segment
        self._tool_of = tool_of
        self._state = EngineState.from_plain(segment.state)
        self._command = engine.pending(spec, self._state)
        self._version = segment.version
        self._until = time.monotonic() + segment.most_ms / 1000
        self._bytes = 0
        self._began = ""
        self._full = False
        self._events: list[EventEntry] = []
        self._output: ContextEntry | None = None
        self._run: RunEntry | None = None
        self._visits: list[Passed] = []
        self._begun = ""

    @property
    def passed(self) -> int:
        """How many visits it has behind it."""
        return len(self._visits)

    def due(self) -> DueCall | None:
        """The next tool, its visit begun, after the CONDITIONs on the way; None where the segment ends.

        It ends before a node that is not quick, and before one that fails: a CONDITION without an answer, arguments
        that cannot be rendered. The run itself then sees why.
        """
        while not self._is_full():
            command = self._command
            if isinstance(command, commands.Evaluate):
                outcome = engine.evaluate(command, self._state)
                if not isinstance(outcome, commands.Evaluated) or not isinstance(outcome.value, bool):
                    return None
                self._enter(command)
                self._leave(outcome, outcome.value, _now())
            elif isinstance(command, commands.RunTool):
                return self._tool(command)
            else:
                return None
        return None

    def _is_full(self) -> bool:
        segment = self._segment
        self._full = self._full or self.passed >= segment.most_visits or self._bytes >= segment.most_bytes
        return self._full

    def _tool(self, command: commands.RunTool) -> DueCall | None:
        node = self._spec.node(command.node)
        tool = None if node is None or node.tool is None else self._tool_of(node.tool)
        if node is None or tool is None:
            return None
        if time.monotonic() > self._until:
            self._full = True
            return None
        try:
            arguments = templates.render_all(node.arguments or {}, self._state.context)
        except ExpressionError:
            return None
        self._enter(command)
        return DueCall(self._call(tracing.path_of(command), node.id, tool.name), tool, arguments)

    def _call(self, path: str, node: str, name: str) -> ToolCall:
        segment = self._segment
        return ToolCall(
            owner=segment.owner,
            path=path,
            workflow=segment.workflow,
            workflow_version=segment.workflow_version,
            node=node,
            agent="",
            turn=self._state.turn,
            name=name,
        )

    def returned(self, result: Plain, size: int) -> None:
        """The tool that was due has given this, so many bytes of JSON."""
        command, state = self._command, self._state
        node = self._spec.node(command.node) if isinstance(command, commands.RunTool) else None
        assert node is not None
        path, at = tracing.path_of(command), _now()  # type: ignore[arg-type]  # it is due, as the line above says
        self._events.append(EventEntry(path, "agent.tool_completed", at, {"name": node.tool, "error": None}))
        self._output = ContextEntry(path, node.output_key or node.id, state.visits[node.id], result, at)
        self._bytes += size
        self._leave(commands.Returned(result), result, at)

    def _enter(self, command: commands.Due) -> None:
        """As the run tells of a visit that begins."""
        self._began, self._begun = _now(), tracing.path_of(command)
        self._events.append(EventEntry(self._begun, "agent.node_started", self._began, {"node": command.node}))
        self._version += 1
        self._run = RunEntry(
            version=self._version,
            status="RUNNING",
            turn=self._state.turn,
            current_node=command.node,
            loop_count=self._state.loop_count,
            at=self._began,
            recommendation=self._segment.recommendation,
        )

    def _leave(self, outcome: commands.Outcome, value: Any, at: str) -> None:
        """As it tells of one that ends, and on to what is due then."""
        path, node = self._begun, self._state.current_node
        self._events.append(EventEntry(path, "agent.node_completed", at, {"node": node}))
        self._visits.append(Passed(path, value, self._began, at))
        self._begun = ""
        self._state, self._command = engine.advance(self._spec, self._state, outcome)

    def forget(self) -> None:
        """What would be told is written already."""
        self.untold()

    def untold(self) -> tuple[list[EventEntry], ContextEntry | None, RunEntry | None]:
        """What is to be told, and is not held any longer."""
        made = self._events, self._output, self._run
        self._events, self._output, self._run = [], None, None
        return made

    def reply(self, visits: int | None = None, *, tried: bool = False, fault: StepFault | None = None) -> SegmentReply:
        """How the segment ended: with its first `visits` visits, or all of them."""
        if visits is None or visits >= self.passed:
            since = self._began if self._begun else ""
            return SegmentReply(tuple(self._visits), self._full, self._begun, tried, fault, since=since)
        due = self._visits[visits]  # a tool's: each is told to begin before it acts
        return SegmentReply(
            tuple(self._visits[:visits]), begun=due.path, tried=tried, fault=fault, cut=True, since=due.began
        )


def _now() -> str:
    return instant(datetime.now(UTC))
