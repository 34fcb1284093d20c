"""Agent and manual tasks in a tray: a run below it, from its row to its end.

The run's id follows from step and attempt, so a second try at starting it finds the first. Cancelling the tray cancels
the run; a run that a person cancels, or that fails, fails the Transaction and not the tray. Children of a split wait
side by side.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ActivityError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)

from casework.durable import contracts
from casework.durable.contracts import RunEnd, RunStart
from casework.durable.process_contracts import Outcome
from casework.durable.task_run_contracts import BEGIN_TASK_RUN, END_TASK_RUN, EndTaskRun, TaskRunBegun
from casework.durable.workflows.child_ends import end_of, refuse_when_ending
from casework.durable.workflows.failures import reason_of
from casework.durable.workflows.tray_calls import TrayCalls
from casework.process.walk import GiveUp, Work


async def visit(calls: TrayCalls, work: Work) -> list[Outcome]:
    """The visit of an agent or manual task; the path of the running node is its own."""
    await calls.pause(work)
    made = await asyncio.gather(*(_one(calls, work, uuid) for uuid in work.transactions))
    outcomes = [each for each in made if isinstance(each, Outcome)]
    lost = {uuid: each for uuid, each in zip(work.transactions, made, strict=True) if isinstance(each, str)}
    return outcomes + (await calls.give_up(GiveUp(lost), work) if lost else [])


async def _one(calls: TrayCalls, work: Work, uuid: UUID) -> Outcome | str:
    """What came of the work on one Transaction; or why nobody can say."""
    asked, seconds = calls.asked(work, (uuid,)), calls.seconds(work.station, 1)
    try:
        begun = await calls.limited(BEGIN_TASK_RUN, asked, TaskRunBegun, seconds, f"begin/{uuid}")
        if begun.start is None:
            assert begun.outcome is not None
            return begun.outcome
        ended = EndTaskRun(asked, begun.start.run_id, await _ended(begun.start))
        return await calls.execute(END_TASK_RUN, ended, Outcome, seconds, f"end/{uuid}")
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        return reason_of(error)


async def _ended(start: RunStart) -> RunEnd:
    """How the run ended: by itself, by an error, or by a person who stopped it."""
    seconds = contracts.task_seconds(start.bundle)
    try:
        end: RunEnd = await workflow.execute_child_workflow(
            contracts.workflow_type(start.bundle),
            start,
            id=start.run_id,
            result_type=RunEnd,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            cancellation_type=workflow.ChildWorkflowCancellationType.TRY_CANCEL,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
            task_timeout=None if seconds is None else timedelta(seconds=seconds),
            static_summary=f"{contracts.name_of(start.bundle)} for {start.user}"[:200],
        )
    except WorkflowAlreadyStartedError:
        return RunEnd("FAILED", failure="it was started by somebody else")
    except ChildWorkflowError as error:
        return end_of(error)
    refuse_when_ending()
    return end
