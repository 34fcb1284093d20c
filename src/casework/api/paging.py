"""Query parameters: those that several routes share, the way from a cursor's text and back, the refusal of others."""

from __future__ import annotations

import difflib
from collections import Counter
from typing import Annotated, Any, NoReturn

from fastapi import Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from casework.api.access import is_open
from casework.api.requests import Short
from casework.errors import FieldsError, InputError
from casework.store.paging import Cursor, Page

Limit = Annotated[int, Query(ge=1, le=200, description="Most rows of one page.")]
CursorText = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the page before.")]
TextFilter = Annotated[Short | None, Query()]


def known_only(request: Request) -> None:
    """Refuse query parameters that the route does not know, or that are sent twice: one of them would silently be none.

    Raises:
        FieldsError: there are such; each is named.
    """
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or is_open(route.endpoint):
        return  # health checks are asked by machines that add what they like
    known = _names(route.dependant)
    sent = Counter(name for name, _ in request.query_params.multi_items())
    if unknown := [name for name in sent if name not in known]:
        _refuse("The route has no query parameter", {name: _unknown(name, known) for name in unknown})
    # No parameter is a list.
    if repeated := {name: f"is sent {times} times; send it once" for name, times in sent.items() if times > 1}:
        _refuse("Sent more than once is the query parameter", repeated)


def _refuse(what: str, wrong: dict[str, str]) -> NoReturn:
    errors = [{"field": name[:100], "message": message} for name, message in list(wrong.items())[:20]]
    raise FieldsError(f"{what} {', '.join(repr(error['field']) for error in errors)}.", errors)


def _names(dependant: Dependant) -> list[str]:
    own = [field.alias for field in dependant.query_params]
    return own + [name for inner in dependant.dependencies for name in _names(inner)]


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"is no query parameter here; {f'did you mean {near[0]!r}?' if near else _listed(known)}"


def _listed(known: list[str]) -> str:
    return f"there are: {', '.join(known)}" if known else "there are none"


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
