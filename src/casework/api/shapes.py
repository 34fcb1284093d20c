"""The shapes of answers, as OpenAPI publishes them; every answer of the tests is held against its own.

Numbers with a fraction are JSON numbers with all their digits. Times are ISO-8601 instants in UTC.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

Status = Literal["PENDING", "RUNNING", "AWAITING_REVIEW", "COMPLETED", "FAILED", "CANCELLED"]


Number = Annotated[Decimal, WithJsonSchema({"type": "number"})]
"""A JSON number that keeps its digits; pydantic's own schema would call it a text."""


class Shape(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="forbid")


class ForkOrigin(Shape):
    """The run and the step of it from which a run was forked."""

    run_id: UUID
    path: str


class ForkOf(ForkOrigin):
    """A run that was forked from this one, at `path`."""

    status: Status
    created_at: str


class Run(Shape):
    """A run's own row."""

    run_id: UUID
    workflow: str
    workflow_version: int
    status: Status
    version: int
    user: str
    actor: str
    input: dict[str, Any]
    model: str | None
    turn: int
    turn_limit: int
    current_node: str | None
    loop_count: int
    recommendation: Any
    outcome: str | None
    failure: str | None
    incident: Any
    tokens_in: int
    tokens_out: int
    cost: Number
    forked_from: ForkOrigin | None
    created_at: str
    updated_at: str
    ended_at: str | None


class ForkedRun(Run):
    """A fork, and what of the visit in which it begins it does not do again."""

    visit: str = Field(description="The visit in which it begins.")
    kept_steps: int = Field(description="Steps of that visit that were taken over and are not done again.")
    anew: str | None = Field(description="Why the visit begins anew as a whole, where more could have been kept.")


class RunPage(Shape):
    """Runs, newest first; `next_cursor` leads to the page after, and is null on the last."""

    items: list[Run]
    next_cursor: str | None


class Attempt(Shape):
    """One try of a step. `outcome` is null while it runs; LOST: never heard of again; LATE: came after another."""

    attempt: int
    outcome: Literal["COMPLETED", "FAILED", "LOST", "LATE"] | None
    error: str | None
    latency_ms: int | None
    tokens_in: int
    tokens_out: int
    cost: Number
    started_at: str
    ended_at: str | None


class Step(Shape):
    """A row of the ledger: a tool call, a model call or a decision, with every attempt."""

    step_id: UUID
    path: str
    kind: Literal["tool", "model", "decision"]
    name: str
    node: str | None
    turn: int
    state: Literal["STARTED", "COMPLETED", "FAILED"]
    attempt: int
    arguments: Any
    result: Any
    error: str | None
    latency_ms: int | None
    started_at: str
    ended_at: str | None
    taken_from: UUID | None = Field(description="The run in which it was done, where this run is a fork of it.")
    attempts: list[Attempt]


class Doing(Shape):
    """What the run is doing, told apart: an intended wait, a retry, a database fault, work, an incident, an end."""

    kind: Literal[
        "starting",
        "working",
        "retrying",
        "waiting_for_person",
        "waiting",
        "store_fault",
        "no_worker",
        "incident",
        "ended",
    ]
    text: str
    steps: list[str] = Field(description="Paths of the steps this is about.")
    since: str | None = Field(description="Since when, as far as it is known.")
    next_attempt_at: str | None = Field(description="When it is tried again, as far as the engine says.")


class PolicyView(Shape):
    """What policy says of the evidence, beside what the model recommends."""

    evaluation: Any
    model: Any


class DecisionGiven(Shape):
    """An answer that reached the run. `ignored` says why it did not count."""

    decision_id: str
    command: str
    reason: str
    reviewer: str
    accepted: bool
    ignored: str | None
    outcome: str | None
    at: str


class Review(Shape):
    """A question to a person. `refused` gives, by command, why it cannot be given (the turn limit)."""

    review_id: UUID
    run_id: UUID
    path: str
    node: str
    turn: int
    status: Literal["pending", "decided", "closed"]
    decisions: list[str]
    refused: dict[str, str]
    recommendation: Any
    note: str | None
    created_at: str
    ended_at: str | None


class ReviewDetail(Review):
    """A review with its run's state and every decision it was given."""

    workflow: str
    run_status: Status
    given: list[DecisionGiven]


class WaitingReview(Review):
    """A review that waits, with what its run is."""

    workflow: str
    user: str


class ReviewPage(Shape):
    """Reviews that wait for a person, the oldest first."""

    items: list[WaitingReview]
    next_cursor: str | None


class ReviewWithDecisions(Review):
    """A run's newest review with every decision it was given."""

    given: list[DecisionGiven]


class Used(Shape):
    """What was used. `attempts_*` count finished attempts, `latency_ms` is their sum in milliseconds."""

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


class TurnUsed(Used):
    """The same for one turn."""

    turn: int


class RetryPolicy(Shape):
    """How an operation is tried. Times in seconds; `schedule_to_close` bounds all attempts together."""

    operation: Literal["model", "tool", "store", "segment"]
    attempts: int
    start_to_close: float
    schedule_to_close: float | None
    first_delay: float
    backoff: float
    longest_delay: float


class RunDetail(Run):
    """A run with its evidence, steps, attempts, policy and review, readable while it goes on."""

    doing: Doing
    evidence: dict[str, Any] = Field(description="The newest result of each tool, by its name.")
    context: dict[str, Any] = Field(description="The newest output under each key.")
    steps: list[Step] = Field(description="The newest 200 steps, in the order of their starts.")
    earlier_steps: bool = Field(description="Whether there are older ones: `/v1/runs/{run_id}/steps` has all.")
    policy: PolicyView
    review: ReviewWithDecisions | None = Field(description="The newest one, open or ended.")
    open_reviews: list[ReviewWithDecisions] = Field(
        description="The ones that wait for a person now, the oldest first, at most 100: branches may ask side by side."
    )
    metrics: Used
    turns: list[TurnUsed]
    forks: list[ForkOf] = Field(description="Runs that were forked from this one, the oldest first, at most 100.")
    retry_policies: list[RetryPolicy]


class Event(Shape):
    """A numbered milestone of a run."""

    seq: int
    event_id: UUID
    path: str
    kind: str
    data: Any
    at: str


class EventPage(Shape):
    """Events after the asked number, in order; ask again with `after` the last `seq`."""

    items: list[Event]


class MessageShape(Shape):
    """A row of the transcript."""

    position: int
    agent: str
    role: Literal["user", "assistant", "tool", "note"]
    content: str
    requests: list[Any]
    call_id: str | None
    tool: str | None


class MessagePage(Shape):
    """Messages after the asked position, in order."""

    items: list[MessageShape]


class Receipt(Shape):
    """`received`: sent to the run, which will accept or ignore it. `accepted`: it counts."""

    state: Literal["received", "accepted"]
    run_id: UUID
    review_id: UUID
    decision_id: str
    command: str


class CancelReceipt(Shape):
    """The request to cancel was received."""

    run_id: UUID
    state: Literal["received"]


class SignalReceipt(Shape):
    """The signal was received. A node that waits for it, or will wait for it, takes it."""

    run_id: UUID
    state: Literal["received"]
    name: str
    signal_id: str


class WorkflowNode(Shape):
    """A node of a workflow's graph, with its decisions where a person answers."""

    id: str
    type: str
    decisions: list[str]


class WorkflowName(Shape):
    """A workflow and its newest version."""

    name: str
    version: int


class WorkflowList(Shape):
    """All workflows."""

    items: list[WorkflowName]


class WorkflowDetail(WorkflowName):
    """A workflow's newest version."""

    input_schema: dict[str, Any] | None
    nodes: list[WorkflowNode]


class WorkflowManifest(WorkflowName):
    """The manifest of a workflow's newest version; null for a free tree, which is code."""

    manifest: dict[str, Any] | None


class Health(Shape):
    """The process lives."""

    status: Literal["ok"]


class FieldError(Shape):
    """One field of a request that is at fault."""

    field: str
    message: str


class ProblemDocument(BaseModel):
    """RFC 9457. Further members are facts of the kind of problem (the run's state, who decided)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldError] | None = None
