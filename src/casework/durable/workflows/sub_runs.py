"""SUBWORKFLOW: a run of its own below this one, from its row to its end.

Its id follows from this run's and the path, so a second attempt finds the first. Cancelling this run cancels it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
)

from casework import ids
from casework.durable import contracts, policies
from casework.durable.contracts import RunEnd, RunStart, SubRun, SubRunReply
from casework.durable.workflows.casefile import CaseFile, Visit
from casework.durable.workflows.child_ends import end_of, refuse_when_ending
from casework.durable.workflows.failures import VisitFailedError
from casework.durable.workflows.tree_room import Room
from casework.graph import commands, fanning
from casework.graph.manifests import Vertex
from casework.tasktree import current_node
from casework.values import content_hash, dumps


class SubRunVisit(Visit):
    """SUBWORKFLOW as a node."""

    async def visit(self) -> commands.Outcome:
        """How the sub-run ended."""
        node = self.node
        outcome = await sub_run(self.file, node, self.command, self.file.sent(node, self.place.context))
        value = fanning.value_of(node, outcome)
        self.file.journal.output(current_node().path, node.output_key or node.id, self.command.visit, value)
        return outcome


async def sub_run(
    file: CaseFile, vertex: Vertex, command: commands.RunSubworkflow, seen: Mapping[str, Any]
) -> commands.Ended:
    """Run the workflow or free tree to its end, in the running node.

    Raises:
        VisitFailedError: it did not end COMPLETED, or could not be started.
    """
    path, name, journal = current_node().path, command.workflow, file.journal
    run_id = str(ids.sub_run_id(UUID(file.start.run_id), path))
    journal.event(path, "agent.sub_run_started", {"run_id": run_id, "workflow": name})
    start = await _made_ready(file, vertex, name, run_id, seen)
    end = await _ended(file, start, name)
    journal.event(path, "agent.sub_run_ended", {"run_id": run_id, "status": end.status})
    if end.status != "COMPLETED":
        raise VisitFailedError(f"the run of {name} ended {end.status}: {end.failure}")
    return commands.Ended(end.outcome, end.output)


async def _made_ready(file: CaseFile, vertex: Vertex, name: str, run_id: str, seen: Mapping[str, Any]) -> RunStart:
    """Its row is written, and this is what it is started with."""
    parent, path = file.start, current_node().path
    room: Room = file.room
    async with room.for_call(len(dumps(seen))):
        reply = await file.operations.execute(
            contracts.OPEN_SUB_RUN,
            path,
            name,
            policies.STORE,
            SubRunReply,
            lambda entries: SubRun(
                owner=file.operations.owner,
                path=path,
                workflow=file.bundle.name,
                workflow_version=parent.workflow_version,
                name=name,
                run_id=run_id,
                user=parent.user,
                actor=parent.actor,
                turn_limit=parent.turn_limit,
                model=parent.model,
                arguments=vertex.arguments or {},
                context=seen,
                outbox=entries,
            ),
        )
    if reply.error is not None:
        raise VisitFailedError(reply.error)
    return replace(
        parent,
        run_id=run_id,
        input=reply.input,
        bundle=file.bundle.sub_bundle(name),
        workflow_version=reply.version,
        request_hash=content_hash(reply.input),
        carried=None,
        fork=None,
        parent_run_id=parent.run_id,
        parent_path=path,
    )


async def _ended(file: CaseFile, start: RunStart, name: str) -> RunEnd:
    """Its end, by itself, by an error, or by a person who stopped it."""
    seconds, outbox = contracts.task_seconds(start.bundle), file.journal.outbox
    try:
        running = await workflow.start_child_workflow(
            contracts.workflow_type(start.bundle),
            start,
            id=start.run_id,
            result_type=RunEnd,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            cancellation_type=workflow.ChildWorkflowCancellationType.TRY_CANCEL,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
            task_timeout=None if seconds is None else timedelta(seconds=seconds),
            static_summary=f"{name} for {start.user}"[:200],
        )
        if len(outbox) and not outbox.travelling:
            await file.operations.flush()
        end: RunEnd = await running
    except WorkflowAlreadyStartedError as error:
        raise VisitFailedError(f"the run of {name} ({start.run_id}) was started by somebody else") from error
    except ChildWorkflowError as error:
        return end_of(error)
    refuse_when_ending()
    return end
