"""Builds of the workers, side by side on one task queue: which of them gets new runs, and which are still needed.

It is the engine's Worker Versioning. A queue's builds form one deployment, which bears the queue's name. Its *current*
build is given new runs, and the open runs that move on; a run that stays needs the build that began it until it ends.
Without builds there is one kind of worker, and any of them takes any run.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Literal

from temporalio.api.deployment.v1 import WorkerDeploymentInfo
from temporalio.api.deployment.v1 import WorkerDeploymentVersion as WorkerDeploymentVersionPart
from temporalio.api.enums.v1 import RoutingConfigUpdateState, TaskQueueType, WorkerVersioningMode
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkerDeploymentRequest,
    DescribeWorkerDeploymentVersionRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from casework.durable import contracts
from casework.durable.client import CALL_TIMEOUT
from casework.durable.in_hand import POLL
from casework.durable.process_contracts import station_queue
from casework.errors import InputError, SettingsError, StateError, UnreachableError
from casework.settings import Settings

BUILD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
QUEUE = re.compile(r"[^.:'\\]{1,200}")
"""The engine writes `deployment:build`, and once wrote `deployment.build`; in its queries the name stands in quotes."""
LOOK_AGAIN_S = 0.1
SEEN_LOOKS = 50
"""How often it is looked, with that pause, whether a worker of the build has come."""
STEADY_LOOKS = 2
"""How many looks in a row, with that pause, must show nothing new."""
LOOKS = 600
"""How often it is looked, with that pause, whether the queue follows a change of the current build."""
BEHAVIOURS = {"move_on": VersioningBehavior.AUTO_UPGRADE, "stay": VersioningBehavior.PINNED}

State = Literal["current", "new", "needed", "free"]


@dataclass(frozen=True)
class Build:
    """A build that the queue has seen.

    current: it gets new runs. new: it was never current. needed: open runs stay with it. free: no open run needs it.
    `open_runs` took their last step there; `staying` of them go on with no other build.
    """

    name: str
    state: State
    workers: int
    open_runs: int
    staying: int
    current_since: datetime | None = None


@dataclass(frozen=True)
class Builds:
    """The builds of a task queue: the current one, then the others, the one that was so last or came last first.

    `plain_workers` are workers without a build, now at work.
    """

    queue: str
    current: str | None
    builds: Sequence[Build]
    plain_workers: int

    @property
    def used(self) -> bool:
        """Whether there is anything to tell of builds."""
        return bool(self.builds)

    @property
    def idle(self) -> bool:
        """Whether nobody gets new runs: no worker is of the current kind."""
        if self.current is None:
            return self.plain_workers == 0
        return not any(each.workers for each in self.builds if each.name == self.current)

    @property
    def deserted(self) -> list[Build]:
        """Builds that runs stay with and that no worker is of."""
        return [each for each in self.builds if each.staying and not each.workers]


def deployment(settings: Settings) -> WorkerDeploymentConfig:
    """What a worker says of its build.

    Raises:
        SettingsError: the build's or the queue's name cannot be used for it.
    """
    build, queue = settings.worker.build, settings.temporal.task_queue
    if build is None:
        # Named, since the SDK's default is a hash over every module that is loaded: seconds of each start.
        return WorkerDeploymentConfig(
            WorkerDeploymentVersion("casework", version("casework")), use_worker_versioning=False
        )
    if not BUILD.fullmatch(build):
        raise SettingsError(
            f"CASEWORK_WORKER_BUILD is {build!r}. Name the build by up to 100 letters, digits, '_', '-' and '.'.",
            field="CASEWORK_WORKER_BUILD",
        )
    if not QUEUE.fullmatch(queue):
        raise SettingsError(
            f"CASEWORK_TASK_QUEUE is {queue!r}, and a queue with builds may have none of . : ' \\ in its name. Name it "
            "otherwise, or unset CASEWORK_WORKER_BUILD.",
            field="CASEWORK_TASK_QUEUE",
        )
    return WorkerDeploymentConfig(
        WorkerDeploymentVersion(queue, build),
        use_worker_versioning=True,
        default_versioning_behavior=BEHAVIOURS[settings.worker.runs],
    )


async def look(client: Client, queue: str) -> Builds:
    """The builds of a queue, as the engine knows them; its counts of runs may be some seconds late.

    Raises:
        UnreachableError: the engine does not say.
    """
    try:
        found, workers = await asyncio.gather(_deployment(client, queue), _workers(client, queue))
        names = [] if found is None else [each.deployment_version.build_id for each in found.version_summaries]
        counts = await asyncio.gather(*(_runs_of(client, queue, name) for name in names))
    except (RPCError, RuntimeError) as error:
        raise UnreachableError(f"Temporal does not tell of the builds of queue {queue} ({error!s:.200}).") from error
    current = None if found is None else found.routing_config.current_deployment_version.build_id or None
    builds = () if found is None else _builds(found, current, workers, dict(zip(names, counts, strict=True)))
    return Builds(queue, current, builds, len(workers.get(None, ())))


def _builds(
    found: WorkerDeploymentInfo,
    current: str | None,
    workers: dict[str | None, set[str]],
    counts: dict[str, tuple[int, int]],
) -> list[Build]:
    made = []
    for each in sorted(found.version_summaries, key=lambda one: _rank(one, current), reverse=True):
        name = each.deployment_version.build_id
        open_runs, staying = counts[name]
        was_current = each.HasField("last_current_time")
        state: State = "current" if name == current else "needed" if staying else "free" if was_current else "new"
        since = each.current_since_time.ToDatetime(tzinfo=UTC) if name == current else None
        made.append(Build(name, state, len(workers.get(name, ())), open_runs, staying, since))
    return made


def _rank(found: WorkerDeploymentInfo.WorkerDeploymentVersionSummary, current: str | None) -> tuple[bool, int]:
    at = found.last_current_time if found.HasField("last_current_time") else found.create_time
    return found.deployment_version.build_id == current, at.ToMilliseconds()


async def make_current(client: Client, queue: str, build: str | None) -> None:
    """Give new runs, and the open runs that move on, to workers of `build`; None: to workers without a build.

    Returns when the whole queue follows. A worker that has just been started gets some seconds to be seen.

    Raises:
        InputError: no worker of that build has been seen on the queue.
        StateError: the engine refuses, as no worker of that build asks for work, or another change is under way.
        UnreachableError: the engine cannot be reached, or the queue does not follow in time.
    """
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace,
        deployment_name=queue,
        build_id=build or "",
        identity=client.identity,
        ignore_missing_task_queues=True,  # that of a task that has lost its limit: its trays ask elsewhere
    )
    try:
        if build is not None:
            await _is_seen(client, queue, build)
        await _set(client, request)
        follows = await _follows(client, queue)
    except RPCError as error:
        raise _refused(error, queue, build) from error
    except RuntimeError as error:  # what a first connection that fails raises
        raise UnreachableError(f"Temporal cannot be reached ({error!s:.200}).") from error
    if not follows:
        raise UnreachableError(f"Queue {queue} does not follow yet. Look again with `casework builds list`.")


async def _is_seen(client: Client, queue: str, build: str) -> None:
    """Wait until all that a worker of the build asks for is known to the engine, for as long as a worker may take.

    A queue that becomes known while the current build changes is never told of the change, and the change never ends.
    Which tasks have a limit, and a queue for it, only the application knows: it is waited until no queue is added.
    """
    version = WorkerDeploymentVersionPart(deployment_name=queue, build_id=build)
    request = DescribeWorkerDeploymentVersionRequest(namespace=client.namespace, deployment_version=version)
    activities, workflows = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    wanted = {(queue, workflows), (queue, activities), (station_queue(queue), activities)}
    seen, steady = set[tuple[str, TaskQueueType.ValueType]](), 0
    for _ in range(SEEN_LOOKS):
        try:
            found = await client.workflow_service.describe_worker_deployment_version(request, timeout=CALL_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
        else:
            before, seen = seen, {(each.name, each.type) for each in found.version_task_queues}
            steady = steady + 1 if seen == before and wanted <= seen else 0
            if steady == STEADY_LOOKS:
                return
        await asyncio.sleep(LOOK_AGAIN_S)


async def _set(client: Client, request: SetWorkerDeploymentCurrentVersionRequest) -> None:
    for look_again in reversed(range(SEEN_LOOKS)):
        try:
            await client.workflow_service.set_worker_deployment_current_version(request, timeout=CALL_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND or not look_again:
                raise
            await asyncio.sleep(LOOK_AGAIN_S)
        else:
            return


def _refused(error: RPCError, queue: str, build: str | None) -> InputError | StateError | UnreachableError:
    if error.status is RPCStatusCode.NOT_FOUND:
        return InputError(
            f"No worker of build {build!r} has been seen on queue {queue}. Start one with "
            f"CASEWORK_WORKER_BUILD={build}; `casework builds list` shows what has been seen."
        )
    if error.status in (RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.ABORTED, RPCStatusCode.INVALID_ARGUMENT):
        return StateError(f"Temporal does not make {build!r} the current build: {error.message:.300}")
    return UnreachableError(f"Temporal does not take the change ({error.status.name}: {error.message:.200}).")


async def _follows(client: Client, queue: str) -> bool:
    """Whether the queue has taken the change over; waited for, since it takes a moment."""
    under_way = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS
    for _ in range(LOOKS):
        found = await _deployment(client, queue)
        if found is None or found.routing_config_update_state != under_way:
            return True
        await asyncio.sleep(LOOK_AGAIN_S)
    return False


async def _deployment(client: Client, queue: str) -> WorkerDeploymentInfo | None:
    """None where no worker of the queue ever had a build, or the server is too old to know of them."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=queue)
    try:
        found = await client.workflow_service.describe_worker_deployment(request, timeout=CALL_TIMEOUT)
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.INVALID_ARGUMENT):
            return None
        raise
    return found.worker_deployment_info


async def _workers(client: Client, queue: str) -> dict[str | None, set[str]]:
    """Names of the workers that asked for work lately, by build; None: those without one."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    found = await client.workflow_service.describe_task_queue(request, timeout=CALL_TIMEOUT)
    alive: dict[str | None, set[str]] = {}
    now = datetime.now(UTC)
    for poller in found.pollers:
        if now - poller.last_access_time.ToDatetime(tzinfo=UTC) < POLL:
            alive.setdefault(_build_of(poller), set()).add(poller.identity)
    return alive


def _build_of(poller: PollerInfo) -> str | None:
    said = poller.deployment_options
    versioned = said.worker_versioning_mode == WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED
    return said.build_id if versioned else None


async def _runs_of(client: Client, queue: str, build: str) -> tuple[int, int]:
    """Open runs that took their last step with a build, and those of them that stay with it."""
    query = (
        f"{contracts.OF_RUNS} AND ExecutionStatus = 'Running' AND TemporalWorkerDeploymentVersion = '{queue}:{build}'"
    )
    both = (query, f"{query} AND TemporalWorkflowVersioningBehavior = 'Pinned'")
    open_runs, staying = await asyncio.gather(
        *(client.count_workflows(each, rpc_timeout=CALL_TIMEOUT) for each in both)
    )
    return open_runs.count, staying.count
