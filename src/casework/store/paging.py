"""Keyset paging: a page starts after the last row of the one before, found by an index and not by counting."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

from casework.errors import InputError
from casework.values import instant

Row = TypeVar("Row")
LIMIT = 500
"""Most rows of one page."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place of a row in a list that is ordered by time and id."""

    at: datetime
    id: UUID

    def encode(self) -> str:
        """As a text for a URL."""
        return base64.urlsafe_b64encode(f"{instant(self.at)}|{self.id}".encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Cursor:
        """The cursor that `encode` wrote.

        Raises:
            InputError: the text is none.
        """
        try:
            at, found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().split("|")
            moment = datetime.fromisoformat(at)
            instant(moment)
            return cls(moment, UUID(found))
        except (ValueError, OverflowError, binascii.Error, InputError) as error:
            raise InputError(
                f"after={text[:100]!r} is no cursor. Pass the `next` of the page before, as it came.", field="after"
            ) from error


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows, and the cursor of the next page or None at the end."""

    rows: list[Row]
    next: Cursor | None


def checked_limit(limit: int) -> int:
    """`limit` if it is usable.

    Raises:
        InputError: it is not between 1 and LIMIT.
    """
    if not 1 <= limit <= LIMIT:
        raise InputError(f"limit={limit} is not between 1 and {LIMIT}. Ask for fewer rows, and page on.", field="limit")
    return limit


def place(after: Cursor | None) -> dict[str, datetime | UUID | None]:
    """The query parameters of a cursor."""
    return {"after_at": after.at if after else None, "after_id": after.id if after else None}
