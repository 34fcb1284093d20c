"""What follows when a task fails a Transaction, and which answers a person may give.

The default: the Transaction becomes HAS_ERROR and rides to the end of its line, the others of its tray go on, and the
Error process ends it by ABORTED. A project, a process or a Task may have another policy; the nearest one counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from casework.errors import CaseworkError, ProcessDeclarationError

ERROR_CLAIMS = 5
"""How often an Error process takes a Transaction that it fails itself; then it is left to a person, in HAS_ERROR."""


class OnError(StrEnum):
    """What a failure does, once there is nothing left to try."""

    HOLD = "hold"
    """The Transaction becomes HAS_ERROR; the others of its tray go on."""
    FAIL_FAST = "fail_fast"
    """Every Transaction of the tray that is not through becomes HAS_ERROR with it."""
    LOG_AND_FORGET = "log_and_forget"
    """The error is recorded, and the Transaction goes on as if the task had changed nothing."""


class Next(StrEnum):
    """What is to be done about one failure."""

    AGAIN = "again"
    HOLD = "hold"
    HALT = "halt"
    FORGET = "forget"


class Answer(StrEnum):
    """What a person or an error task may do about a failed Transaction."""

    ABORT = "abort"
    CLONE = "clone"
    """A new Transaction in a status of the normal flow takes the entities over; this one is ABORTED."""
    RESUME = "resume"
    """It goes on at a task, in the status that it had before the error."""
    COMPLETE = "complete"
    """It is COMPLETED by hand, and marked so."""


_THEN = {OnError.HOLD: Next.HOLD, OnError.FAIL_FAST: Next.HALT, OnError.LOG_AND_FORGET: Next.FORGET}


@dataclass(frozen=True)
class ErrorPolicy:
    """How failures are dealt with.

    `retries` are further attempts after the first, for APPLICATION errors that may pass. `siblings`: a failed child of
    a split takes the other children with it. `resume` and `complete_by_hand` put these answers on offer.
    """

    on_error: OnError = OnError.HOLD
    retries: int = 0
    siblings: bool = False
    resume: bool = False
    complete_by_hand: bool = False

    def __post_init__(self) -> None:
        if type(self.retries) is not int or not 0 <= self.retries <= 100:
            raise ProcessDeclarationError(
                f"retries is {self.retries!r:.60}. Give a whole number from 0 to 100.", field="retries"
            )

    def judge(self, error: BaseException, attempt: int) -> Next:
        """What follows the failure of attempt `attempt`, from 1.

        A BUSINESS error is never tried again, nor one of the platform that is the same each time (an illegal status, a
        Rule that cannot be evaluated).
        """
        may_pass = error.retryable if isinstance(error, CaseworkError) else True
        if may_pass and attempt <= self.retries:
            return Next.AGAIN
        return _THEN[self.on_error]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers on offer, in the order of a form."""
        more = ((Answer.RESUME, self.resume), (Answer.COMPLETE, self.complete_by_hand))
        return (Answer.ABORT, Answer.CLONE, *(answer for answer, on in more if on))


DEFAULT_POLICY = ErrorPolicy()


def nearest(policies: Iterable[ErrorPolicy | None]) -> ErrorPolicy:
    """The first that is there, from the Task outward; else the default."""
    return next((policy for policy in policies if policy is not None), DEFAULT_POLICY)
