"""What a decision must look like before anyone asks whether it counts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from casework.errors import BlankIdError, InputError

MAX_REASON = 4000
"""Longest reason, in characters."""
MAX_NAME = 255
"""Longest id, command or reviewer, in characters."""
NEEDS_REASON = frozenset({"more_info"})
"""Commands whose reason is said to the agent, and so cannot be blank."""


class DecisionLike(Protocol):
    """A person's answer, whatever carries it."""

    @property
    def review_id(self) -> str:
        """The question it answers."""

    @property
    def decision_id(self) -> str:
        """Its own id: the same id is the same answer."""

    @property
    def command(self) -> str:
        """The name of the decision taken."""

    @property
    def reason(self) -> str:
        """The reviewer's words; may be empty where the command needs none."""

    @property
    def reviewer(self) -> str:
        """Who answers."""


def command_name(text: str, known: Collection[str] = ()) -> str:
    """The decision's name for what a person typed: `more-info` is `more_info`, `Approve` is `approve`.

    A name in `known` is taken as it stands.
    """
    text = text.strip()
    return text if text in known else text.lower().replace("-", "_")


def check_decision(decision: DecisionLike) -> None:
    """Refuse a decision that cannot be right for any review.

    Raises:
        BlankIdError: an id, the command or the reviewer is blank.
        InputError: a part is too long, or the command needs a reason; names the field.
    """
    for field in ("review_id", "decision_id", "command", "reviewer"):
        value = getattr(decision, field)
        if not isinstance(value, str) or not value.strip("\x00 \t\r\n\u200b\ufeff").strip():
            raise BlankIdError(field, value)
        if len(value) > MAX_NAME:
            raise InputError(f"{field} has {len(value)} characters; at most {MAX_NAME}.", field=field)
    _check_reason(decision.command, decision.reason)


def _check_reason(command: str, reason: str) -> None:
    if len(reason) > MAX_REASON:
        raise InputError(f"reason has {len(reason)} characters; at most {MAX_REASON}. Shorten it.", field="reason")
    if command in NEEDS_REASON and not reason.strip("\x00 \t\r\n\u200b\ufeff").strip():
        raise InputError(
            f"{command} needs a reason: it is what the agent is told. Say what is missing.", field="reason"
        )
