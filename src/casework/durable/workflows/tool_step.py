"""A tool as a step of a graph: of a TOOL node, or of a branch that is one. The agents' tools are in `exchange`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casework.durable import contracts, policies
from casework.durable.contracts import ToolCall, ToolReply
from casework.durable.workflows.casefile import CaseFile
from casework.durable.workflows.exchange import Caller
from casework.durable.workflows.failures import VisitFailedError
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
    policy = policies.TRIED_TOOL if path == file.tried else policies.TOOL
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
