"""A tool as a step of a graph: of a TOOL node, or of a branch that is one. The agents' tools are in `exchange`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalio import workflow

from casework.durable import contracts, policies
from casework.durable.contracts import ToolCall, ToolReply
from casework.durable.policies import OperationPolicy
from casework.durable.segment_contracts import TOLD
from casework.durable.workflows.casefile import CaseFile, Tried
from casework.durable.workflows.exchange import Caller
from casework.durable.workflows.failures import VisitFailedError, told_failure
from casework.graph import commands
from casework.graph.manifests import Vertex
from casework.tasktree import current_node


async def tool_step(
    file: CaseFile, caller: Caller, vertex: Vertex, node: str, turn: int, context: Mapping[str, Any]
) -> commands.Returned:
    """The result of the tool of `vertex`, which is `node` or one of its branches, at the path of the running node.

    Raises:
        VisitFailedError: the tool told an error.
        StepFailedError: it was given up.
    """
    path, name = current_node().path, vertex.tool or ""
    tried = file.tried if file.tried is not None and file.tried.path == path else None
    policy = policies.TOOL if tried is None else await _left(file, tried, name)
    reply = await caller.execute(
        contracts.CALL_TOOL,
        path,
        name,
        policy,
        ToolReply,
        lambda entries: ToolCall(
            owner=file.operations.owner,
            path=path,
            workflow=file.bundle.name,
            workflow_version=file.start.workflow_version,
            node=node,
            agent="",
            turn=turn,
            name=name,
            arguments=vertex.arguments or {},
            context=context,
            outbox=entries,
        ),
    )
    if reply.state == "FAILED":
        raise VisitFailedError(reply.error or f"tool {name} failed")
    return commands.Returned(reply.result)


async def _left(file: CaseFile, tried: Tried, name: str) -> OperationPolicy:
    """What the attempt in a segment has left of the tool's policy, once the next one may begin.

    Raises:
        VisitFailedError: nothing; the tool told an error.
        StepFailedError: nothing; no further attempt would mend it.
    """
    fault = tried.fault
    if fault is not None and fault.kind == TOLD:
        raise VisitFailedError(fault.text or f"tool {name} failed")
    if fault is not None and fault.final:
        failure = told_failure(tried.path, fault)
        file.operations.give_up(tried.path, name, policies.TOOL, failure)
        raise failure
    if fault is not None:
        pause = policies.TOOL.first_delay if fault.pause_ms is None else fault.pause_ms / 1000
        await workflow.sleep(pause, summary="waits before the next attempt")
    return policies.TRIED_TOOL
