"""What the platform says about a resource: conditions, and per kind what it knows. People write specs, never these."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from pydantic import AwareDatetime, JsonValue

from casework.graph.manifests import Part


class Condition(Part):
    """One thing that holds of a resource or not, and why."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""
    last_transition_time: AwareDatetime | None = None


class Status(Part):
    """What every kind has. `observedGeneration` is the generation of the spec that the conditions speak of."""

    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()


class WorkflowStatus(Status):
    """`publishedVersion` is the version that a run started now gets."""

    published_version: int | None = None


class AgentStatus(Status):
    """What the agent comes to with its provider."""

    effective_model: str | None = None
    resolved_tools: tuple[str, ...] | None = None


class Tokens(Part):
    """Tokens that were sent and received."""

    input: int = 0
    output: int = 0


class NodeExecution(Part):
    """A step of a run: a model call or a tool call, below the visit of a node."""

    node: str | None = None
    path: str
    name: str
    state: str
    attempt: int
    error: str | None = None
    start_time: AwareDatetime | None = None
    end_time: AwareDatetime | None = None


class SessionStatus(Status):
    """The run of a session, from its rows. Of very long runs `nodeExecutions` are the newest ones."""

    session_id: str | None = None
    phase: Literal["PENDING", "RUNNING", "AWAITING_REVIEW", "COMPLETED", "FAILED", "CANCELLED"] | None = None
    current_node: str | None = None
    loop_count: int = 0
    output: JsonValue = None
    outcome: str | None = None
    failure: str | None = None
    workflow_version: int | None = None
    start_time: AwareDatetime | None = None
    end_time: AwareDatetime | None = None
    tokens: Tokens | None = None
    cost: Decimal | None = None
    node_executions: tuple[NodeExecution, ...] = ()


STATUSES: Mapping[str, type[Status]] = {
    "AiWorkflow": WorkflowStatus,
    "AiAgent": AgentStatus,
    "LlmProvider": Status,
    "McpServer": Status,
    "WorkflowSession": SessionStatus,
}
"""The status of each kind."""
