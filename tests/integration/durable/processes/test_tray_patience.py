"""What a tray does for itself is done however often its workers are lost: played activities, time that is skipped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from casework.durable import process_contracts as contracts
from casework.durable.process_contracts import GiveUpTray, Outcome, ReleaseTray, TrayEnd, TrayReply, TrayWork
from casework.durable.trays import tray_id, tray_start
from casework.durable.worker import workflow_runner
from casework.durable.workflows.tray import Tray
from casework.process import BusinessProcess, Finalizer, ProcessingMonitor, TaskContext, Transaction, bot_task
from casework.process.admission import admit
from casework.process.tasks import PlainTask

QUEUE = "patience"
LOST = 6
"""Attempts that are lost, twice as many as a station has."""


@bot_task("work", effects=False)
class Working(PlainTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> None:
        """Nothing; the activity is played."""


@dataclass
class Played:
    """Activities of a tray whose worker is lost at each attempt of a station, and at many of what follows."""

    given_up: int = 0
    released: int = 0

    @activity.defn(name=contracts.WORK_TRAY)
    async def work(self, _asked: TrayWork) -> TrayReply:
        raise ApplicationError("the worker was lost")

    @activity.defn(name=contracts.GIVE_UP)
    async def give_up(self, asked: GiveUpTray) -> TrayReply:
        self.given_up += 1
        if self.given_up <= LOST:
            raise ApplicationError("the worker was lost")
        return TrayReply((Outcome("left", tuple(asked.reasons), "HAS_ERROR", held=True, reason="lost"),))

    @activity.defn(name=contracts.RELEASE_TRAY)
    async def release(self, _asked: ReleaseTray) -> None:
        self.released += 1
        if self.released <= LOST:
            raise ApplicationError("the worker was lost")


async def test_a_tray_outlives_the_loss_of_what_it_does_for_itself(time_skipping_env: WorkflowEnvironment) -> None:
    """BP-10: to give a Transaction up, or to let go of it, has no number of attempts: the tray ends, and not FAILED."""
    process = BusinessProcess(
        name="processing",
        monitor=ProcessingMonitor,
        tasks=(Working,),
        finalizer=Finalizer("PROCESSING_IN_PROGRESS", "PROCESSING_COMPLETED"),
    )
    claimed = Transaction(
        uuid=uuid4(), status="PROCESSING_IN_PROGRESS", start_time=datetime(2026, 1, 1, tzinfo=UTC), claim_id=uuid4()
    )
    start, played = tray_start(admit(process), [claimed]), Played()
    client = time_skipping_env.client
    async with (
        Worker(client, task_queue=contracts.station_queue(QUEUE), activities=[played.work]),
        Worker(
            client,
            task_queue=QUEUE,
            workflows=[Tray],
            activities=[played.give_up, played.release],
            workflow_runner=workflow_runner(),
        ),
    ):
        end = await client.execute_workflow(
            contracts.TRAY_WORKFLOW, start, id=tray_id(start.claim_id), task_queue=QUEUE, result_type=TrayEnd
        )
    assert end.transactions == 1
    assert (played.given_up, played.released) == (LOST + 1, LOST + 1)
