"""Every error that a user can meet, named by what the caller can do about it.

    CaseworkError
    ├── InputError                    mend the request and send it again
    │   ├── BlankIdError
    │   ├── FieldsError               several fields are at fault; each is listed with what is wrong
    │   ├── UnserialisableError
    │   ├── ManifestError             a manifest was refused; names file, node and remedy
    │   ├── ExpressionError           a CEL expression or a Liquid template does not hold
    │   ├── ToolDeclarationError      a tool cannot be registered as it is written
    │   ├── TreeDeclarationError      a free tree cannot be registered as it is written
    │   ├── ProcessDeclarationError   a business process, or a part of one, does not hold as it is written
    │   ├── SettingsError             a setting is unknown or has no valid value
    │   └── PolicyFileError           a policy file was refused; names row and column
    ├── NotFoundError                 what was named does not exist
    ├── AccessError                   the caller may not do this
    │   └── UnauthenticatedError      no valid token came with the request
    ├── StateError                    not possible in the present state; look, then decide anew
    │   ├── StaleReviewError          the review is not the current one, or was decided
    │   ├── IdempotencyConflictError  the key was used with another body
    │   └── TransitionError           a Transaction may not go to that status
    ├── OperationError                an operation of a run did not succeed
    │   ├── RetryableError            the operation is tried again (retry the operation)
    │   │   ├── StoreUnavailableError the database cannot be reached; costs no attempt
    │   │   └── RunFailedError        the run of an agent or manual task ended FAILED; a further attempt is another run
    │   ├── ToldError                 the model is told and goes on (tell the model)
    │   ├── BusinessError             the Transaction itself is at fault; never tried again
    │   ├── GivenUpError              a call of a free tree has no result; the tree goes on if it catches it
    │   └── FatalError                the run ends FAILED (fail the run)
    │       ├── AttemptsUsedError     the ledger holds all attempts of the step; it did not act again
    │       ├── ConflictError         a row is not what this write may touch
    │       ├── RunCancelledError     a person stopped the run of an agent or manual task; no other is started for it
    │       └── PolicyUnavailableError  no policy row can be read and the setting is fail_closed
    ├── UnreachableError              a server cannot be reached, or says that it is not ready
    │   └── PayloadUnreadableError    a value of a history cannot be read or kept here: a key or a blob is missing
    ├── MigrationError                the schema cannot be brought up to date; names file, role or server
    └── LocalStackError               a local server cannot be started or joined

The three classes under OperationError are never mixed: a retriable fault is no message for the model, and what the
model is told fails no run. `retryable` is a fact of the class, not of the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar


class CaseworkError(Exception):
    """Base of all errors of this package. The message says what, which value, and what to do."""

    retryable: ClassVar[bool] = False


class InputError(CaseworkError):
    """The request is at fault. `field` names the part, where there is one."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class FieldsError(InputError):
    """Fields of a request are at fault; `errors` lists each as `field` and `message`."""

    def __init__(self, message: str, errors: Sequence[Mapping[str, str]]) -> None:
        super().__init__(message, field=errors[0]["field"] if errors else "")
        self.errors = [dict(each) for each in errors]


class BlankIdError(InputError):
    """An id is empty or only blanks."""

    def __init__(self, field: str, value: str) -> None:
        super().__init__(f"{field} is blank ({value!r}). Pass a text that names it.", field=field)


class UnserialisableError(InputError):
    """A value has no JSON form, or is too large or too deep."""

    def __init__(self, field: str, found: str, remedy: str = "") -> None:
        remedy = remedy or (
            "Pass None, bool, numbers, text, aware datetimes, UUIDs, lists, or mappings with text keys."
        )
        super().__init__(f"{field} cannot be stored: {found}. {remedy}", field=field)


class ManifestError(InputError):
    """A manifest was refused at admission."""


class ExpressionError(InputError):
    """An expression or template does not parse, names something unknown, or gives the wrong type."""


class ToolDeclarationError(InputError):
    """A tool function cannot be registered as it is written."""


class TreeDeclarationError(InputError):
    """A free tree cannot be registered as it is written."""


class ProcessDeclarationError(InputError):
    """A business process, or a part of one, does not hold as it is written."""


class SettingsError(InputError):
    """A setting is unknown or its value is not valid."""


class PolicyFileError(InputError):
    """A policy file was refused; nothing of it was loaded."""


class NotFoundError(CaseworkError):
    """What was named does not exist, or not for this tenant."""


class AccessError(CaseworkError):
    """The caller is not known or has not the role."""


class UnauthenticatedError(AccessError):
    """No token came with the request, or none that is valid."""


class StateError(CaseworkError):
    """The present state does not allow it. `details` are facts of that state, as plain data for the caller."""

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = dict(details or {})


class StaleReviewError(StateError):
    """The review is not the current one, or it has been decided."""


class IdempotencyConflictError(StateError):
    """The idempotency key was used before with another body."""


class TransitionError(StateError):
    """A Transaction may not go from its status to that one; `details` name both, and those that are allowed."""


class OperationError(CaseworkError):
    """An operation of a run did not succeed. Tokens and `cost` (US dollars) are what it has used all the same."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: Decimal = Decimal(0)


class RetryableError(OperationError):
    """Passing trouble: the engine tries the operation again. `retry_after` is in seconds, if the peer named one."""

    retryable = True

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StoreUnavailableError(RetryableError):
    """The database cannot be reached. Nothing was done; trying again costs the step no attempt.

    `statement`: others may well be run, this one cannot: what it names is missing, its role lacks a right, or it takes
    too long. Where it is one of the project's own, that is the project's fault.
    """

    def __init__(self, message: str, *, retry_after: float | None = None, statement: bool = False) -> None:
        super().__init__(message, retry_after=retry_after)
        self.statement = statement


class RunFailedError(RetryableError):
    """The run of an agent or manual task ended FAILED. Where the ErrorPolicy has retries, another run follows."""


class ToldError(OperationError):
    """The tool's answer to the model is this text: wrong arguments, or a business refusal. The run goes on."""


class BusinessError(OperationError):
    """Raised by a Task: the Transaction itself is at fault. It becomes HAS_ERROR and is never tried again.

    `code` is the project's own name of the fault, `severity` WARNING, ERROR or CRITICAL.
    """

    def __init__(self, message: str, *, code: str = "BUSINESS", severity: str = "ERROR") -> None:
        super().__init__(message)
        self.code = code
        self.severity = severity


class GivenUpError(OperationError):
    """A call of a free tree has no result: its attempts are used, or none would help. `path` names it.

    The tree may catch it and go on; else the run ends FAILED.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class FatalError(OperationError):
    """The run cannot go on and ends FAILED with this reason."""


class AttemptsUsedError(FatalError):
    """The ledger holds as many attempts of the step as its policy allows; it is given up, and did not act again."""


class ConflictError(FatalError):
    """A write met a row that it may not touch; recorded as an event, never tried again."""


class RunCancelledError(FatalError):
    """The run of an agent or manual task was stopped by a person, whose word counts: no other is started for it."""


class PolicyUnavailableError(FatalError):
    """No policy row can be read, and the setting `policy_fallback` is `fail_closed`."""


class UnreachableError(CaseworkError):
    """A server cannot be reached, or it answers that it cannot serve now. Nothing was done, or it is not known."""


class PayloadUnreadableError(UnreachableError):
    """A value of a history cannot be read or kept by this process: its key, its blob or the blob store is missing. It
    goes on where they are there; no step loses an attempt by it."""


class MigrationError(CaseworkError):
    """The schema cannot be brought up to date. The message names the file, role or server, and what to do."""


class LocalStackError(CaseworkError):
    """A local server cannot be started or joined; the message names the folder, port or process."""
