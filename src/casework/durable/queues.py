"""One worker on several task queues: its own, the one of stations, and one for each task that has a limit.

Work at stations has a queue of its own, of which a worker takes no more than it has room for (decision 46). The engine
limits what it hands out of a task queue, over all workers that ask for it. So a task with a limit has a queue of its
own too, on which its Transactions come one by one. The workers of all queues start and stop as one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from temporalio.worker import PollerBehaviorSimpleMaximum, Worker

from casework.durable.process_contracts import limited_queue, station_queue

POLLERS = 2
"""How many calls of one worker ask at one time for work at stations, or of one task that has a limit."""


class QueuesWorker(Worker):
    """A worker with others beside it, on other queues."""

    beside: Sequence[Worker] = ()

    async def run(self) -> None:
        """Run all until `shutdown`, or until one of them fails, which ends the others.

        Raises:
            Exception: what the first one failed by.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for each in self.beside:
                    group.create_task(each.run())
                await super().run()
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def shutdown(self) -> None:
        """Stop all at one time, each as the SDK's worker does."""
        await asyncio.gather(super().shutdown(), *(each.shutdown() for each in self.beside))


def station_worker(most: int, task_queue: str, **config: Any) -> Worker:
    """A worker for the queue of stations, which works at `most` in one moment. `config` as for `limited_workers`."""
    behaviour = PollerBehaviorSimpleMaximum(min(most, POLLERS))
    return Worker(
        task_queue=station_queue(task_queue),
        activity_task_poller_behavior=behaviour,
        **{**config, "max_concurrent_activities": most},
    )


def limited_workers(limits: Mapping[str, float], task_queue: str, **config: Any) -> list[Worker]:
    """A worker for the queue of each task of `limits`, which says how much the engine may hand out in a second.

    `config` is what the SDK's `Worker` takes besides.
    """
    return [
        Worker(
            task_queue=limited_queue(task_queue, task),
            max_task_queue_activities_per_second=rate,
            activity_task_poller_behavior=PollerBehaviorSimpleMaximum(POLLERS),
            **config,
        )
        for task, rate in limits.items()
    ]
