"""Routes under /v1/processes: the lines of the application, their Monitors started and stopped, and schedules."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from casework.api import process_requests, process_shapes, process_standing
from casework.api.access import CallerDep, Role, needs
from casework.api.body import ExactRoute, PlainResponse
from casework.api.services import ServicesDep
from casework.errors import FieldsError, ProcessDeclarationError

router = APIRouter(prefix="/v1/processes", tags=["processes"], route_class=ExactRoute)

Name = Annotated[str, Path(description="The name of the process.", max_length=64)]


@router.get("", response_model=process_shapes.ProcessList)
@needs(Role.VIEWER)
async def list_processes(caller: CallerDep, services: ServicesDep) -> Response:
    """The processes, how many Transactions are at each in which status, and where their Monitors stand."""
    return PlainResponse(await process_standing.of_processes(services, caller))


@router.get("/{name}", response_model=process_shapes.ProcessDetail)
@needs(Role.VIEWER)
async def show_process(name: Name, caller: CallerDep, services: ServicesDep) -> Response:
    """One process, with its schedule."""
    line = process_standing.line_of(services, name)
    return PlainResponse(await process_standing.of_process(services, caller, line))


@router.post("/{name}/start", status_code=202, response_model=process_shapes.ProcessReceipt)
@needs(Role.OPERATOR)
async def start_process(name: Name, caller: CallerDep, services: ServicesDep) -> Response:
    """Start the Monitor of a process, which ends a stop by hand. `running`: it was there already."""
    line = process_standing.line_of(services, name)
    new = await services.processes.start(caller.tenant, line.process.name, caller.name)
    return PlainResponse({"process": name, "state": "started" if new else "running"}, 202)


@router.post("/{name}/stop", status_code=202, response_model=process_shapes.ProcessReceipt)
@needs(Role.OPERATOR)
async def stop_process(name: Name, caller: CallerDep, services: ServicesDep) -> Response:
    """Stop the Monitor of a process. What is in trays goes on. 409: it does not run."""
    line = process_standing.line_of(services, name)
    await services.processes.stop(caller.tenant, line.process.name, caller.name)
    return PlainResponse({"process": name, "state": "stopping"}, 202)


@router.post("/{name}/schedule", status_code=200, response_model=process_shapes.ProcessReceipt)
@needs(Role.OPERATOR)
async def schedule_process(
    name: Name, body: process_requests.ScheduleProcess, caller: CallerDep, services: ServicesDep
) -> Response:
    """Let the engine start the process by a schedule, instead of one that it may have."""
    line = process_standing.line_of(services, name)
    try:
        wanted = body.schedule(line.process)
    except ProcessDeclarationError as error:
        raise FieldsError(str(error), [{"field": error.field or "every", "message": str(error)}]) from None
    await services.processes.schedule(caller.tenant, line.process.name, wanted, declared=body.declared)
    return PlainResponse({"process": name, "state": "scheduled"})


@router.delete("/{name}/schedule", status_code=200, response_model=process_shapes.ProcessReceipt)
@needs(Role.OPERATOR)
async def unschedule_process(name: Name, caller: CallerDep, services: ServicesDep) -> Response:
    """Take the schedule of a process away; a Monitor that it has started goes on."""
    line = process_standing.line_of(services, name)
    was_there = await services.processes.unschedule(caller.tenant, line.process.name)
    return PlainResponse({"process": name, "state": "unscheduled" if was_there else "unchanged"})
