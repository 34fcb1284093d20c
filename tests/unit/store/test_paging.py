"""Cursors and limits of keyset pages."""

from __future__ import annotations

import base64
import contextlib
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.errors import InputError
from casework.store.paging import LIMIT, Cursor, checked_limit

SOME = Cursor(datetime(2026, 3, 1, 9, 0, 0, 123456, tzinfo=UTC), UUID(int=7))


@given(st.datetimes(timezones=st.just(UTC)), st.uuids())
def test_cursor_survives_a_url(at: datetime, id_: UUID) -> None:
    """To the microsecond, in characters that a URL takes as they are."""
    text = Cursor(at, id_).encode()
    assert Cursor.decode(text) == Cursor(at, id_)
    assert all(char.isalnum() or char in "-_" for char in text)


def test_cursor_is_an_instant() -> None:
    """The same moment in another zone is the same cursor."""
    there = SOME.at.astimezone(timezone(timedelta(hours=5)))
    assert Cursor(there, SOME.id).encode() == SOME.encode()


@pytest.mark.parametrize("text", ["", "x", "\x00", "é", SOME.encode()[:-4], SOME.encode() + "AAAA", "a" * 10_000])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    """The message says what to pass; the field is named."""
    with pytest.raises(InputError, match=r"is no cursor\. Pass the `next`") as caught:
        Cursor.decode(text)
    assert caught.value.field == "after"


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59"])
def test_a_time_outside_of_all_years_is_refused(at: str) -> None:
    """A zone may move the first and the last year out of what a time can be; the database holds no such row either."""
    text = base64.urlsafe_b64encode(f"{at}|{SOME.id}".encode()).decode().rstrip("=")
    with pytest.raises(InputError, match="is no cursor"):
        Cursor.decode(text)


@given(st.text())
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    """No text breaks the decoder in another way."""
    with contextlib.suppress(InputError):
        Cursor.decode(text)


@pytest.mark.parametrize("limit", [1, LIMIT])
def test_usable_limits(limit: int) -> None:
    """From one to the most rows of a page."""
    assert checked_limit(limit) == limit
