"""Query parameters that several routes share, and the way from a cursor's text and back."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from casework.api.requests import Short
from casework.errors import InputError
from casework.store.paging import Cursor, Page

Limit = Annotated[int, Query(ge=1, le=200, description="Most rows of one page.")]
CursorText = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the page before.")]
TextFilter = Annotated[Short | None, Query()]


def cursor_of(text: str | None) -> Cursor | None:
    """The cursor of a text; None where none was sent.

    Raises:
        InputError: it is none that a page gave.
    """
    if not text:
        return None
    try:
        return Cursor.decode(text)
    except InputError:
        message = f"{text[:100]!r} is no cursor. Pass the next_cursor of the page before, as it came."
        raise InputError(message, field="cursor") from None


def next_of(page: Page[Any]) -> str | None:
    """The text of the next page's cursor; None on the last page."""
    return page.next.encode() if page.next else None
