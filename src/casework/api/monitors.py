"""Routes under /v1/monitors: each with its configuration in force and where it comes from; stopped, and polled now."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from casework.api import process_render, process_requests, process_shapes, process_standing
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.processes import stop_process
from casework.api.services import ServicesDep
from casework.store.processes import intake, monitors

router = APIRouter(prefix="/v1/monitors", tags=["monitors"], route_class=ExactRoute)

Name = Annotated[str, Path(description="The name of the Monitor's process.", max_length=64)]

Class = Annotated[str, Path(description="The name of the Monitor's class.", max_length=200)]


@router.get("", response_model=process_shapes.MonitorList)
@needs(Role.VIEWER)
async def list_monitors(caller: CallerDep, services: ServicesDep) -> Response:
    """The Monitors of all processes."""
    items = await process_standing.of_monitors(services, caller, services.app.lines().values())
    return PlainResponse({"items": items})


@router.get("/{name}", response_model=process_shapes.MonitorDetail)
@needs(Role.VIEWER)
async def show_monitor(name: Name, caller: CallerDep, services: ServicesDep) -> Response:
    """The Monitor of a process, with its newest rounds, and what it could not take in."""
    line = process_standing.line_of(services, name)
    (told,) = await process_standing.of_monitors(services, caller, [line])
    async with services.db.transaction() as conn:
        rounds = await monitors.rounds(conn, caller.tenant, name)
        refused = await intake.refused(conn, caller.tenant, name)
    newest = {
        "newest_rounds": [process_render.monitor_round(row) for row in rounds],
        "newest_refused": [process_render.refused(row) for row in refused],
    }
    return PlainResponse({**told, **newest})


@router.post("/{name}/poll", status_code=202, response_model=process_shapes.ProcessReceipt)
@needs(Role.OPERATOR)
async def poll_monitor(name: Name, caller: CallerDep, services: ServicesDep) -> Response:
    """Let a Monitor poll, whether or not it is time. 409: it does not run."""
    line = process_standing.line_of(services, name)
    await services.processes.poll_now(caller.tenant, line.process.name, caller.name)
    return PlainResponse({"process": name, "state": "polling"}, 202)


@router.patch("/classes/{monitor_class}", response_model=process_shapes.MonitorClass)
@needs(Role.OPERATOR)
async def configure_monitor(
    monitor_class: Class, body: process_requests.ConfigureMonitor, caller: CallerDep, services: ServicesDep
) -> Response:
    """Write values into the row that goes before all other configuration of a Monitor class; null takes one back."""
    name, values = process_standing.class_of(services, monitor_class), body.values()
    async with services.db.transaction() as conn:
        await monitors.configure(conn, caller.tenant, name, values)
        found = await process_standing.in_force(services, conn, caller.tenant, name)
    return PlainResponse({"monitor_class": name, "configuration": process_render.configuration(found)})


router.add_api_route(
    "/{name}/stop",
    stop_process,
    methods=["POST"],
    status_code=202,
    response_model=process_shapes.ProcessReceipt,
    name="stop_monitor",
)
