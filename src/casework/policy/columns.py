"""The columns of a policy row: which there are, and how each is read and checked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from casework.errors import PolicyFileError
from casework.policy.limits import PolicyLimits

COLUMNS = (
    "purpose",
    "policy_name",
    "version",
    "min_score",
    "auto_approve_ratio",
    "hard_decline_score",
    "hard_decline_ratio",
    "material_delinquencies",
    "valid_from",
    "valid_until",
)
OPTIONAL = ("valid_from", "valid_until")

_NULLS = ("", "~", "null", "none")
_LARGEST = 2**31 - 1


def is_null(value: Any) -> bool:
    """Whether a cell says nothing: null, blank, or the word for it."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _NULLS)


def check_names(row: Mapping[str, Any], where: str) -> None:
    """Refuse columns that do not exist.

    Raises:
        PolicyFileError: names the column and the nearest one that exists.
    """
    for name in row:
        if name not in COLUMNS:
            near = difflib.get_close_matches(str(name), COLUMNS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"The columns are {', '.join(COLUMNS)}."
            raise PolicyFileError(f"{where}: there is no column {str(name)[:80]!r}. {hint}", field=str(name))


def read_limits(row: Mapping[str, Any], purpose: str, where: str) -> PolicyLimits:
    """The limits of one row.

    Raises:
        PolicyFileError: a cell is empty, is no such number, or contradicts another.
    """
    limits = PolicyLimits(
        purpose=purpose,
        policy_name=_text(row, "policy_name", where),
        version=_whole(row, "version", where, least=1),
        min_score=_whole(row, "min_score", where),
        auto_approve_ratio=_ratio(row, "auto_approve_ratio", where),
        hard_decline_score=_whole(row, "hard_decline_score", where),
        hard_decline_ratio=_ratio(row, "hard_decline_ratio", where),
        material_delinquencies=_whole(row, "material_delinquencies", where, least=1),
        valid_from=_date(row, "valid_from", where),
        valid_until=_date(row, "valid_until", where),
    )
    _check_order(limits, where)
    return limits


def _check_order(limits: PolicyLimits, where: str) -> None:
    if limits.hard_decline_score > limits.min_score:
        raise _fault(where, "hard_decline_score", limits.hard_decline_score, f"at most min_score ({limits.min_score})")
    if limits.hard_decline_ratio < limits.auto_approve_ratio:
        wanted = f"at least auto_approve_ratio ({limits.auto_approve_ratio})"
        raise _fault(where, "hard_decline_ratio", limits.hard_decline_ratio, wanted)
    if limits.valid_from and limits.valid_until and limits.valid_until <= limits.valid_from:
        raise _fault(where, "valid_until", limits.valid_until, f"a date after valid_from ({limits.valid_from})")


def _text(row: Mapping[str, Any], column: str, where: str) -> str:
    value = row.get(column)
    if is_null(value) or not isinstance(value, str) or "\x00" in value:
        raise _fault(where, column, value, "a text")
    return value.strip()


def _number(row: Mapping[str, Any], column: str, where: str, wanted: str) -> Decimal:
    value = row.get(column)
    if is_null(value) or isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
        raise _fault(where, column, value, wanted)
    try:
        number = Decimal(value.strip() if isinstance(value, str) else value)
    except (InvalidOperation, ValueError) as error:
        raise _fault(where, column, value, wanted) from error
    if not number.is_finite() or not 0 <= number <= _LARGEST:
        raise _fault(where, column, value, wanted)
    return number


def _whole(row: Mapping[str, Any], column: str, where: str, least: int = 0) -> int:
    wanted = f"a whole number of {least} or more"
    number = _number(row, column, where, wanted)
    if number < least or number != number.to_integral_value():
        raise _fault(where, column, row[column], wanted)
    return int(number)


def _ratio(row: Mapping[str, Any], column: str, where: str) -> Decimal:
    wanted = "a percentage of 0 or more, as in 36 or 36.5, with at most four decimals"
    number = _number(row, column, where, wanted)
    if number != round(number, 4):
        raise _fault(where, column, row[column], wanted)
    return number


def _date(row: Mapping[str, Any], column: str, where: str) -> date | None:
    value = row.get(column)
    if is_null(value):
        return None
    try:
        return date.fromisoformat(str(value).strip())
    except ValueError as error:
        raise _fault(where, column, value, "a date, as in 2026-01-31, or nothing") from error


def _fault(where: str, column: str, value: object, wanted: str) -> PolicyFileError:
    found = "nothing" if is_null(value) else repr(value)[:80]
    return PolicyFileError(f"{where}, column {column}: expected {wanted}, found {found}.", field=column)
