"""Bodies in and out: JSON by the rule of `casework.values`, so that a Decimal keeps its digits through this door.

A request body is read up to a limit, parsed, and looked through for numbers that PostgreSQL could not hold; a response
is the canonical JSON. FastAPI's own parser would turn every fraction into a float.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from casework.errors import InputError, UnserialisableError
from casework.values import MAX_DEPTH, Plain, TwiceError, dumps, loads_once, plain, shortened

log = logging.getLogger(__name__)

BODY_LIMIT = 1_048_576
"""Largest request body, in bytes."""

SHOWN_DEPTH = MAX_DEPTH - 1
"""Deepest nesting of an answer of which a part is not shown."""
NOT_SHOWN = "(not shown: {})"
"""Stands in an answer for a stored value that cannot be written as JSON."""

DIGIT_LIMIT = 1000
"""Largest power of ten, up or down, of a number in a body: PostgreSQL's numeric ends somewhat later."""


class PlainResponse(Response):
    """A response of plain data, rendered as canonical JSON."""

    media_type = "application/json"

    def render(self, content: Plain) -> bytes:
        """The bytes of `content`; Decimals keep their digits. A part that cannot be written is marked, not refused."""
        try:
            return dumps(content).encode()
        except UnserialisableError as error:
            log.warning("a part of an answer is not shown: %s", shortened(str(error)))
            return dumps(_marked(content, SHOWN_DEPTH)).encode()


def _marked(value: Plain, levels: int) -> Plain:
    """`value` with a mark in the place of each part that has no JSON form or lies too deep."""
    if isinstance(value, dict) and levels:
        return {str(key): _marked(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list) and levels:
        return [_marked(item, levels - 1) for item in value]
    if isinstance(value, (dict, list)):
        return NOT_SHOWN.format("nested too deeply")
    try:
        return plain(value)
    except UnserialisableError:
        return NOT_SHOWN.format(type(value).__name__)


class ExactRequest(Request):
    """A request whose body is limited in size and read without losing a digit."""

    async def body(self) -> bytes:
        """The whole body.

        Raises:
            HTTPException: 413, it is larger than `BODY_LIMIT`.
        """
        if not hasattr(self, "_body"):
            self._check_announced()
            chunks, size = [], 0
            async for chunk in self.stream():
                size += len(chunk)
                if size > BODY_LIMIT:
                    raise _too_large()
                chunks.append(chunk)
            self._body = b"".join(chunks)
        return self._body

    def _check_announced(self) -> None:
        announced = self.headers.get("content-length", "0")
        if announced.isdigit() and int(announced[:20]) > BODY_LIMIT:
            raise _too_large()

    async def json(self) -> Plain:
        """The body as plain data.

        Raises:
            InputError: it is not JSON, or it holds a number that cannot be stored.
        """
        if not hasattr(self, "_json"):
            self._json = parse(await self.body())
        return self._json


def parse(body: bytes) -> Plain:
    """The plain data of a request body.

    Raises:
        InputError: it is not JSON, nested too deep, names a key twice, or holds a number that cannot be stored.
    """
    try:
        value = loads_once(body)
        _check_numbers(value, "body")
    except TwiceError as error:
        raise InputError(f"The body {error}. Send it once.", field=error.key) from None
    except RecursionError:
        raise InputError("The body is nested too deep. Send flatter JSON.", field="body") from None
    except ValueError as error:
        raise InputError(f"The body is not JSON: {error}. Send a JSON object.", field="body") from None
    return value


def _check_numbers(value: Plain, field: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _check_numbers(item, f"{field}.{key}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _check_numbers(item, f"{field}[{i}]")
    elif (isinstance(value, Decimal) and not _holdable(value)) or (isinstance(value, int) and abs(value) >= _TOO_BIG):
        name = field.removeprefix("body.")
        raise InputError(f"{name} is a number of more than {DIGIT_LIMIT} digits. Send a smaller one.", field=name)


_TOO_BIG = 10**DIGIT_LIMIT


def _holdable(number: Decimal) -> bool:
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and number.adjusted() < DIGIT_LIMIT and exponent > -DIGIT_LIMIT


def _too_large() -> HTTPException:
    return HTTPException(413, f"The body is larger than {BODY_LIMIT} bytes. Send less.")


class ExactRoute(APIRoute):
    """A route that reads its body through `ExactRequest`, before FastAPI could hide what is wrong with it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, given our request with the body read and parsed."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            exact = ExactRequest(request.scope, request.receive)
            if request.method == "POST" and await exact.body():
                _check_media_type(request)
                await exact.json()
            return await handler(exact)

        return handle


def _check_media_type(request: Request) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != "application/json" and not given.endswith("+json"):
        raise HTTPException(415, f"The body is {given or 'of no named type'}. Send Content-Type: application/json.")
