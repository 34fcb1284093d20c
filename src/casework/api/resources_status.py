"""The status of a resource: worked out when it is asked for, against the application and the rows as they are now."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from casework.api.resources_together import Together, read_back
from casework.api.services import Services
from casework.errors import ManifestError
from casework.graph.manifests import AiAgent, AiWorkflow, Resource
from casework.graph.status import AgentStatus, Condition, NodeExecution, SessionStatus, Status, Tokens, WorkflowStatus
from casework.store import resources, runs, steps, workflows
from casework.store.database import Connection
from casework.store.resources import ResourceRow
from casework.store.rows import RunRow, StepRow
from casework.values import Plain, plain, shortened

SHOWN_STEPS = 200
"""Most steps in `nodeExecutions`, the newest ones."""


async def status_of(conn: Connection, services: Services, tenant: str, row: ResourceRow) -> dict[str, Plain]:
    """The status as a manifest has it, absent fields left out."""
    accepted = Condition(
        type="Accepted",
        status="True",
        reason="Applied",
        message=f"by {row.applied_by}",
        last_transition_time=row.created_at,
    )
    made = await _made(conn, services, tenant, row)
    whole = made.model_copy(update={"observed_generation": row.generation, "conditions": (accepted, *made.conditions)})
    found: dict[str, Plain] = plain(whole.model_dump(by_alias=True), "status")
    return found


async def _made(conn: Connection, services: Services, tenant: str, row: ResourceRow) -> Status:
    if row.run_id is not None:
        return await _session(conn, tenant, row)
    if row.kind == "McpServer":
        text = "agents do not use the tools of MCP servers yet"
        return Status(conditions=(Condition(type="Ready", status="Unknown", reason="NotUsed", message=text),))
    together = Together.of(services.app, await resources.definitions(conn, tenant))
    one = read_back(row)
    if one is None:
        text = "this release cannot read it; apply it again, or use the release that applied it"
        return Status(conditions=(Condition(type="Ready", status="False", reason="NotReadable", message=text),))
    if isinstance(one, AiWorkflow):
        return await _workflow(conn, tenant, together, one)
    ready = _ready(together, one)
    if isinstance(one, AiAgent):
        return _agent(together, one, ready)
    return Status(conditions=(ready,))


def _ready(together: Together, one: Resource) -> Condition:
    """Whether it holds now, with the application as this server knows it."""
    try:
        together.admitted([one.name] if isinstance(one, AiWorkflow) else [], [one])
    except ManifestError as error:
        return Condition(type="Ready", status="False", reason="DoesNotHold", message=shortened(str(error), 1000))
    return Condition(type="Ready", status="True", reason="Holds")


async def _workflow(conn: Connection, tenant: str, together: Together, one: AiWorkflow) -> WorkflowStatus:
    ready = _ready(together, one)
    last = await workflows.latest_hash(conn, tenant, one.name)
    if last is None:
        force = Condition(type="InForce", status="False", reason="NotPublished", message="no run can be started of it")
        return WorkflowStatus(conditions=(ready, force))
    same = ready.status == "True" and together.admitted([one.name])[one.name].hash() == last[1]
    text = f"version {last[0]} is what new runs get" if same else f"version {last[0]} was published from elsewhere"
    force = Condition(
        type="InForce", status="True" if same else "False", reason="Published" if same else "OtherContent", message=text
    )
    return WorkflowStatus(conditions=(ready, force), published_version=last[0])


def _agent(together: Together, one: AiAgent, ready: Condition) -> AgentStatus:
    provider = together.providers.get(one.spec.provider)
    model = one.spec.model or (provider.spec.default_model if provider else None)
    tools = tuple(name for name in one.spec.tools if name in together.app.toolbox.names)
    return AgentStatus(conditions=(ready,), effective_model=model, resolved_tools=tools)


async def _session(conn: Connection, tenant: str, row: ResourceRow) -> SessionStatus:
    assert row.run_id is not None
    run = await runs.get(conn, tenant, row.run_id)
    if run is None:
        gone = Condition(type="Started", status="False", reason="RunDeleted", message="retention took the run")
        return SessionStatus(session_id=str(row.run_id), conditions=(gone,))
    newest, _ = await steps.latest_of_run(conn, tenant, row.run_id, SHOWN_STEPS)
    output = {one.key: one.value for one in await runs.context(conn, tenant, row.run_id)}
    return SessionStatus(
        session_id=str(run.run_id),
        phase=_phase(run),
        conditions=_conditions(run),
        current_node=run.current_node if run.ended_at is None else None,
        loop_count=run.loop_count,
        output=output,
        outcome=run.outcome,
        failure=run.failure,
        workflow_version=run.workflow_version,
        start_time=run.started_at or run.created_at,
        end_time=run.ended_at,
        tokens=Tokens(input=run.tokens_in, output=run.tokens_out),
        cost=run.cost,
        node_executions=tuple(_execution(step) for step in newest),
    )


def _phase(run: RunRow) -> Any:
    return run.status


def _conditions(run: RunRow) -> tuple[Condition, ...]:
    started = _condition("Started", run.started_at is not None, run.status, run.started_at)
    ended = _condition("Ended", run.ended_at is not None, run.outcome or run.status, run.ended_at)
    if run.incident is None:
        return started, ended
    held = Condition(type="Incident", status="True", reason="Held", message=shortened(str(run.incident), 1000))
    return started, ended, held


def _condition(name: str, holds: bool, reason: str, at: datetime | None) -> Condition:
    return Condition(type=name, status="True" if holds else "False", reason=reason, last_transition_time=at)


def _execution(step: StepRow) -> NodeExecution:
    return NodeExecution(
        node=step.node,
        path=step.path,
        name=step.name,
        state=step.state,
        attempt=step.attempt,
        error=step.error,
        start_time=step.started_at,
        end_time=step.ended_at,
    )
