"""The shapes of figures over many runs, as OpenAPI publishes them; those of one run are in `shapes`."""

from __future__ import annotations

from pydantic import Field

from casework.api.shapes import Number, Shape


class WorkflowFigures(Shape):
    """The runs of one workflow that were accepted in a window, or in one hour or day of it.

    Every run is in one of the six states, so the six numbers add up to `runs`. `mean_*` are of the runs that ended.
    """

    workflow_name: str
    begin: str | None = Field(description="Start of the hour or day (UTC), where a series was asked for with `by`.")
    runs: int
    pending: int
    running: int
    awaiting_review: int
    completed: int
    failed: int
    cancelled: int
    incidents: int
    reviews_asked: int
    reviews_decided: int
    reviews_closed: int = Field(description="Reviews whose run ended without an answer.")
    model_calls: int
    tool_calls: int
    attempts_completed: int
    attempts_failed: int
    attempts_lost: int
    attempts_late: int
    tokens_in: int
    tokens_out: int
    cost: Number
    latency_ms: int
    mean_seconds: Number | None = Field(description="From acceptance to the end.")
    mean_review_seconds: Number | None = Field(description="How long a decided review had waited.")
    mean_tokens_in: Number | None
    mean_tokens_out: Number | None
    mean_cost: Number | None
    outcomes: dict[str, int]


class WorkflowMetrics(Shape):
    """Figures by workflow. `since` is the start of the hour that was asked for: roll-ups know nothing finer."""

    since: str
    items: list[WorkflowFigures]


class RetryFigures(Shape):
    """Attempts of one tool or model that did not end well since an instant, and what became of their steps."""

    kind: str
    name: str
    failed: int
    lost: int
    late: int
    steps: int
    retrying: int
    given_up: int
    last_at: str


class RetryMetrics(Shape):
    """Figures by tool and model."""

    since: str
    items: list[RetryFigures]
