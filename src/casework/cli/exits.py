"""Exit codes, the same for every command.

| code | means |
| --- | --- |
| 0 | done; of `demo`, `drill` and `audit`: every promise held |
| 1 | an operation failed, or a promise did not hold |
| 2 | the command line, a file or a value is at fault, or what was named does not exist |
| 3 | not possible in the present state: decided already, another body under the same key |
| 4 | not allowed: no valid token, or not the role |
| 5 | a server cannot be reached, or is not ready |
| 130 | interrupted |
"""

from __future__ import annotations

from casework.errors import (
    AccessError,
    CaseworkError,
    InputError,
    LocalStackError,
    NotFoundError,
    RetryableError,
    StateError,
    UnreachableError,
)

OK = 0
FAILED = 1
USAGE = 2
CONFLICT = 3
NOT_ALLOWED = 4
UNREACHABLE = 5
INTERRUPTED = 130

_CODES: dict[type[CaseworkError], int] = {
    InputError: USAGE,
    NotFoundError: USAGE,
    StateError: CONFLICT,
    AccessError: NOT_ALLOWED,
    RetryableError: UNREACHABLE,
    UnreachableError: UNREACHABLE,
    LocalStackError: UNREACHABLE,
}


def code_of(error: CaseworkError) -> int:
    """The exit code of an error: that of the nearest class in the table, else 1."""
    return next((_CODES[cls] for cls in type(error).__mro__ if cls in _CODES), FAILED)
