"""The shapes of requests: what a body may hold, and the texts that bodies and queries share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from casework.review import MAX_REASON


def _holdable(text: str) -> str:
    """Text that is compared with columns or printed: nothing in it that PostgreSQL or a terminal cannot hold."""
    if any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000 for char in text):
        raise ValueError("holds control characters or broken Unicode")
    return text


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside of the years 1 to 9999 in UTC") from None


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A time with its zone, in UTC from here on: every time that a caller sends is one."""
Short = Annotated[
    str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True), AfterValidator(_holdable)
]
"""A name: one line of at most 200 characters, without blanks around it."""
UserName = Annotated[
    str, StringConstraints(min_length=1, max_length=320, strip_whitespace=True), AfterValidator(_holdable)
]
Reason = Annotated[str, StringConstraints(max_length=MAX_REASON, strip_whitespace=True)]


class Body(BaseModel):
    """A request's body: unknown members are refused."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class StartRun(Body):
    """Start a run of `workflow` with `input`, which is checked against the workflow's input schema."""

    workflow: Short
    input: dict[str, Any]
    model: Short | None = Field(None, description="Instead of the agent's own, as PROVIDER:MODEL.")
    turn_limit: Annotated[int, Field(ge=1, le=1000, strict=True)] | None = Field(
        None, description="Most turns of the agent; 5 where nothing is said."
    )
    on_behalf_of: UserName | None = Field(None, description="The user the run is for, where an operator starts it.")


class ForkRun(Body):
    """Fork a run: a new run that begins in the visit of `step`, and keeps what was done before that step."""

    step: Annotated[str, StringConstraints(min_length=1, max_length=4000), AfterValidator(_holdable)] | None = Field(
        None, description="Path of a recorded step or visit; where nothing is said, where the run last was."
    )
    context: dict[Short, Any] = Field(
        default_factory=dict, description="Edited values, by key: `input`, or the output key of a node."
    )
    workflow_version: Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)] | None = Field(
        None, description="Another applied version of the workflow, with its agents."
    )
    model: Short | None = Field(None, description="Instead of the run's own, as PROVIDER:MODEL.")


class CancelRun(Body):
    """Stop a run."""

    reason: Reason = ""


class Decide(Body):
    """Answer a review with one of its commands."""

    command: Short
    reason: Reason = Field("", description="Needed where the agent is to read it, as with more_info.")
    decision_id: Short | None = Field(None, description="Such as a UUID: the same id is the same decision.")


class SendSignal(Body):
    """A signal for a WAIT node."""

    payload: Any = Field(None, description="Any JSON, of at most 64 KB: the value of the node that takes it.")
    signal_id: Short | None = Field(None, description="Such as a UUID: the same id is the same signal.")
