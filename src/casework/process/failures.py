"""What is recorded when a task fails a Transaction: the ErrorEntity, one for each attempt that failed."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import CodeType
from typing import Any
from uuid import UUID

from casework.agents import scrub
from casework.errors import BusinessError, UnserialisableError
from casework.ids import derived_id
from casework.process.transactions import Transaction
from casework.values import shortened

SHORT_LIMIT = 200
"""Longest short description, in characters."""
_LIBRARIES = ("<", *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
"""How the names of files begin that are not a project's own."""


class ErrorType(StrEnum):
    """Whose fault it is, and so whether to try again can help."""

    BUSINESS = "BUSINESS"
    """The case itself does not hold: its data is missing or wrong. To try again changes nothing."""
    APPLICATION = "APPLICATION"
    """The software, or a system that it uses, failed. To try again may help."""


class Severity(StrEnum):
    """How much harm it does."""

    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a Transaction is worked on: process, task, and the id of the step (`identities.step_key`)."""

    process: str
    task: str
    step: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEntity:
    """One failure of one Transaction at one task. `attempt` counts from 1; instants are aware, in UTC."""

    uuid: UUID
    transaction: UUID
    root: UUID
    """The Transaction that those were split from, or the Transaction itself."""
    type: ErrorType
    code: str
    severity: Severity
    short: str
    """One line, at most SHORT_LIMIT characters."""
    full: str
    process: str
    task: str
    attempt: int
    started: datetime
    """When the attempt began."""
    failed: datetime


def error_entity(
    error: BaseException,
    transaction: Transaction,
    spot: Spot,
    *,
    root: UUID,
    attempt: int,
    started: datetime,
    failed: datetime,
    environment: Mapping[str, str],
) -> ErrorEntity:
    """What to record of `error`; secrets of `environment` are struck from its words.

    A BusinessError is of type BUSINESS and brings its code and severity; anything else is APPLICATION, its code the
    name of its class, its last line the place in the project's code where it was raised. The id follows from step and
    attempt: a repeated record is the same row.
    """
    words = scrub.told(scrub.words_of(error), environment)
    kind, code, severity = _sorted(error)
    place = _place(error) if kind is ErrorType.APPLICATION else None
    return ErrorEntity(
        uuid=derived_id(spot.step, f"attempt.{attempt}", "error"),
        transaction=transaction.uuid,
        root=root,
        type=kind,
        code=code,
        severity=severity,
        short=shortened(words.partition("\n")[0], SHORT_LIMIT - 30),
        full=words if place is None else f"{words}\nat {place}",
        process=spot.process,
        task=spot.task,
        attempt=attempt,
        started=started,
        failed=failed,
    )


def _sorted(error: BaseException) -> tuple[ErrorType, str, Severity]:
    if isinstance(error, BusinessError):
        return ErrorType.BUSINESS, error.code, Severity(error.severity)
    if isinstance(error, UnserialisableError):  # the task's result has no form that can be kept
        return ErrorType.APPLICATION, type(error).__name__, Severity.CRITICAL
    return ErrorType.APPLICATION, type(error).__name__, Severity.ERROR


def _place(error: BaseException) -> str | None:
    """File and line of the innermost frame that is a project's own: neither Casework's nor of a library."""
    frames = traceback.walk_tb(error.__traceback__)
    own = [(frame.f_code.co_filename, line) for frame, line in frames if _is_own(frame.f_globals, frame.f_code)]
    return None if not own else f"{own[-1][0]}:{own[-1][1]}"


def _is_own(names: Mapping[str, Any], code: CodeType) -> bool:
    package = str(names.get("__name__", ""))
    if package.startswith("casework.") and not package.startswith("casework.examples."):
        return False
    return not code.co_filename.startswith(_LIBRARIES)
