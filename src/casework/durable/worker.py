"""The worker process: it takes Temporal tasks until it is told to stop, then finishes what it has begun.

A worker registers the fixed set of generic workflows and activities; the application is looked up by name. Everything
that takes long to import is imported before the first task, so that a cold worker is not slow in the middle of a run.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.worker import Interceptor, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from casework.app import App
from casework.durable import policies
from casework.durable.activations import patient_worker
from casework.durable.activities.model import ModelActivity
from casework.durable.activities.monitor import MonitorActivity
from casework.durable.activities.project import ProjectActivity
from casework.durable.activities.segment import SegmentActivity
from casework.durable.activities.services import Services
from casework.durable.activities.sub_runs import SubRunActivity
from casework.durable.activities.sweep import SweepActivity
from casework.durable.activities.task_runs import TaskRunActivities
from casework.durable.activities.tool import ToolActivity
from casework.durable.activities.tray import TrayActivities
from casework.durable.blob_sweep import kept_blobs
from casework.durable.builds import deployment
from casework.durable.canary import try_store
from casework.durable.client import RunClient
from casework.durable.connection import connect
from casework.durable.engines import require_own
from casework.durable.faulting import drill_interceptors
from casework.durable.logs import say_where
from casework.durable.metering import MeteringInterceptor, metrics_runtime
from casework.durable.monitor_configuration import unused
from casework.durable.queues import limited_workers, station_worker
from casework.durable.schedules import kept_sweep
from casework.durable.trees import TreePlaces
from casework.durable.workflows.monitor import MonitorRun
from casework.durable.workflows.process_start import ProcessRun
from casework.durable.workflows.run import CaseRun
from casework.durable.workflows.staying import StayingTreeRun
from casework.durable.workflows.sweep import Sweep
from casework.durable.workflows.tray import Tray
from casework.durable.workflows.trees import TreeRun
from casework.errors import FatalError, SettingsError
from casework.models.catalogue import Models
from casework.models.layer import load_layer
from casework.settings import Settings
from casework.store.database import Database
from casework.store.processes.entities import check_guarded
from casework.telemetry.start import tracing

if TYPE_CHECKING:
    from casework.telemetry.tracer import Tracer

log = logging.getLogger("casework.worker")

PASSED_THROUGH = (
    "casework",
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "simplejson",
    "cel_expr_python",
    "jsonschema",
    "jsonschema_specifications",
    "referencing",
    "rpds",
    "attr",
    "attrs",
    "temporalio",
)
"""Modules that the workflow sandbox shares with the worker. All are pure for workflow code: `casework` by import
contract, the others because they compute and nothing else."""


WORKFLOWS = (CaseRun, TreeRun, Sweep, Tray, MonitorRun, ProcessRun)
"""The generic workflows that every worker, and every replayer, has."""
WORKFLOWS_OF_BUILDS = (CaseRun, StayingTreeRun, Sweep, Tray, MonitorRun, ProcessRun)
"""The same, on workers that have a build."""


def workflow_runner() -> SandboxedWorkflowRunner:
    """The sandbox that workers and replayers run workflow code in."""
    for module in ("cel_expr_python.cel", "jsonschema"):
        importlib.import_module(module)
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))


def make_worker(
    client: Client, services: Services, settings: Settings, *, watching: Sequence[Interceptor] = ()
) -> Worker:
    """A worker on the settings' task queue, and on those of stations and of tasks that have a limit.

    `watching` sees all that it does (`watchers` makes them).

    Raises:
        SettingsError: the name of its build, or of its queue with a build, cannot be used.
    """
    trays, task_runs = TrayActivities(services), TaskRunActivities(services)
    activities: tuple[Callable[..., Any], ...] = (
        ModelActivity(services).call_model,
        ToolActivity(services).call_tool,
        SegmentActivity(services).run_segment,
        ProjectActivity(services).project,
        SubRunActivity(services).open_sub_run,
        SweepActivity(services, client, RunClient(client, settings.temporal.task_queue, settings.histories)).sweep_runs,
        *trays.all(),
        *task_runs.all(),
        *MonitorActivity(services, client).all(),
    )
    task_queue, alike = settings.temporal.task_queue, _of_each_queue(client, settings, watching)
    limits = {task: rate for line in services.lines.values() for task, rate in line.limits.items()}
    beside = [
        station_worker(settings.worker.max_stations, task_queue, activities=[trays.work_tray], **alike),
        *limited_workers(limits, task_queue, activities=[trays.work_tray, task_runs.begin_task_run], **alike),
    ]
    return patient_worker(
        settings.worker.max_workflow_tasks,
        beside,
        task_queue=task_queue,
        workflows=WORKFLOWS if settings.worker.build is None else WORKFLOWS_OF_BUILDS,
        activities=activities,
        workflow_runner=workflow_runner(),
        max_cached_workflows=settings.worker.cache_size,
        max_concurrent_workflow_tasks=settings.worker.max_workflow_tasks,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=settings.worker.sticky_queue_timeout_s),
        **{**alike, "interceptors": [*watching, TreePlaces(services.app.trees), *drill_interceptors()]},
    )


def _of_each_queue(client: Client, settings: Settings, watching: Sequence[Interceptor]) -> dict[str, Any]:
    """What the workers of all queues have in common."""
    return {
        "client": client,
        "interceptors": [*watching, *drill_interceptors()],
        "max_concurrent_activities": settings.worker.max_activities,
        "graceful_shutdown_timeout": timedelta(seconds=settings.worker.graceful_stop_s),
        "deployment_config": deployment(settings),
        "max_heartbeat_throttle_interval": policies.HEARTBEAT / 4,
        "default_heartbeat_throttle_interval": policies.HEARTBEAT / 4,
    }


def models_of(app: App, settings: Settings) -> Models:
    """The application's models as the settings choose them; what a real one needs is imported now, not in a run."""
    chosen = settings.models
    named = [chosen.model] if chosen.model else _provider_types(app)
    if any(not name.startswith("scripted") for name in named):
        importlib.import_module("pydantic_ai.models.openai" if any("openai" in n for n in named) else "pydantic_ai")
        load_layer()  # imports in the first call would hold up its own heartbeats
    return Models(
        app.scripts,
        model=chosen.model,
        base_url=chosen.base_url,
        deadline=chosen.timeout_s,
        connect_timeout=chosen.connect_timeout_s,
    )


def check_models(app: App, settings: Settings) -> None:
    """That every agent can be asked under the setting CASEWORK_MODEL; whether a key is there shows when it is asked.

    Raises:
        SettingsError: the setting means no model.
    """
    if settings.models.model is None:
        return
    models = Models(app.scripts, model=settings.models.model, base_url=settings.models.base_url)
    for pinned in app.bundles().values():
        for agent in pinned.agents.values():
            try:
                models.for_agent(agent, pinned.providers)
            except FatalError as error:
                raise SettingsError(
                    f"CASEWORK_MODEL={settings.models.model}: {error}", field="CASEWORK_MODEL"
                ) from error


def _provider_types(app: App) -> list[str]:
    return [provider.spec.type for pinned in app.bundles().values() for provider in pinned.providers.values()]


def watchers(tracer: Tracer | None, runtime: Runtime | None) -> list[Interceptor]:
    """Who watches over a worker: its spans, and its metrics, where they are wanted. The outermost is first."""
    watching: list[Interceptor] = []
    if tracer is not None:
        # Needs the extra: imported only where there is a tracer.
        watching.append(importlib.import_module("casework.durable.tracing.attempts").TracingInterceptor(tracer))
    if runtime is not None:
        watching.append(MeteringInterceptor(runtime.metric_meter))
    return watching


async def run_worker(app: App, settings: Settings) -> None:
    """Work until SIGTERM or SIGINT, then drain: running activities get the grace to end.

    Raises:
        ProcessDeclarationError: a process of the application is refused, or a Task or Monitor of it asks for what no
            module provides; or one of its tables of entities is not guarded.
        SettingsError: traces or metrics are asked for, and cannot be had as the settings say; or the engine that the
            settings name is not the one that the database's runs are in; or what the other workers write into
            histories cannot be read here; or the configuration of Monitors cannot be read.
        StoreUnavailableError: the database cannot be reached at the start.
        UnreachableError: Temporal cannot be reached at the start, or the metrics' address not be listened on.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    say_where()
    runtime = _metrics(settings)
    with tracing(settings.telemetry, "casework-worker", for_tools=True) as tracer:
        client = await connect(settings, runtime=runtime)
        await _work(client, app, settings, watchers(tracer, runtime), stop)


async def _work(
    client: Client, app: App, settings: Settings, watching: Sequence[Interceptor], stop: asyncio.Event
) -> None:
    pool = settings.database
    async with await Database.open(
        pool.runtime_dsn(), min_size=pool.pool_min_size, max_size=pool.pool_max_size, name="casework-worker"
    ) as db:
        await require_own(db, client)
        await try_store(client)
        async with (
            ready(Services(db, app, models_of(app, settings), settings)) as services,
            kept_sweep(client, settings.temporal.task_queue),
            kept_blobs(client),
            make_worker(client, services, settings, watching=watching),
        ):
            log.info("worker is ready on task queue %s", settings.temporal.task_queue)
            await stop.wait()
            log.info("worker is draining")


@asynccontextmanager
async def ready(services: Services) -> AsyncIterator[Services]:
    """The services with all that the application's processes ask for, until the worker stops.

    What of the configuration of Monitors has no effect is told in the log, once.

    Raises:
        ProcessDeclarationError, SettingsError: as `run_worker`.
    """
    try:
        if services.lines:
            _ = services.injector  # made now: what is missing is told at the start
        if services.app.entities:
            async with services.db.transaction() as conn:
                await check_guarded(conn, services.app.entities)
        for line in unused(services.monitors, services.lines.values()):
            log.warning("the configuration of Monitors: %s", line)
        yield services
    finally:
        await services.close()


def _metrics(settings: Settings) -> Runtime | None:
    if settings.worker.metrics_address is None:
        return None
    runtime, address = metrics_runtime(settings.worker.metrics_address)
    log.info("metrics are served at %s", address)
    return runtime
