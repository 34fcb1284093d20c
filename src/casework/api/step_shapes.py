"""The shapes of steps in lists: a run's own in pages, and those of all runs that an operator asks for."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from casework.api.shapes import Shape, Status, Step


class StepPage(Shape):
    """A run's steps in the order of their starts."""

    items: list[Step]
    next_cursor: str | None


class StepLine(Shape):
    """A step in a list over all runs.

    `attempts`: how many it has in one round; null for a decision. `error`: why it failed, or why its last attempt did.
    `how`, of a failed one: `refused` was never tried, `told` gave this answer itself, `given_up` had no attempt left.
    """

    step_id: UUID
    run_id: UUID
    path: str
    kind: Literal["tool", "model", "decision"]
    name: str
    node: str | None
    turn: int
    state: Literal["STARTED", "FAILED"]
    attempt: int
    attempts: int | None
    error: str | None
    how: Literal["refused", "told", "given_up"] | None
    started_at: str
    ended_at: str | None
    next_attempt_at: str | None = Field(description="When it is tried again, as far as the engine says.")
    workflow: str
    user: str
    run_status: Status


class StepLines(Shape):
    """Steps of all runs: in flight or tried again, the longest first; failed for good, the newest first."""

    items: list[StepLine]
    next_cursor: str | None
