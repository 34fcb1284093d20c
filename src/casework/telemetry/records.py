"""A span as a value: what is known of it when it is over. Workflow code's interceptor makes these, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from casework.telemetry.identity import Place

Kind = Literal["internal", "server", "client", "consumer"]
Attributes = Mapping[str, str | int | float | bool]

RUN_ID, TENANT, PATH = "casework.run_id", "casework.tenant", "casework.path"
"""In every span of a run."""
STEP_ID, ATTEMPT, ENGINE_ATTEMPT = "casework.step_id", "casework.attempt", "temporal.attempt"
WORKFLOW, VERSION = "casework.workflow", "casework.workflow_version"
NODE, STATE, ERROR = "casework.node", "casework.state", "error.type"


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One finished span. Times in nanoseconds since the epoch; `error` is the kind of an error, never its text."""

    name: str
    place: Place
    parent: Place | None
    start: int
    end: int
    attributes: Attributes
    kind: Kind = "internal"
    links: tuple[Place, ...] = field(default=())
    error: str | None = None
