"""How much a model may answer. What is too large, or cannot be kept, is said by field and size, and ends the run.

Asking again would give the same, at the same price. A tool's name that nobody registered is another matter: it is kept,
in a form that can be stored and sent back, so that the model is told what there is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from casework.agents.messages import Request
from casework.agents.model import ModelAnswer
from casework.errors import FatalError, UnserialisableError
from casework.values import ENTRY_BYTES, MAX_DEPTH, Plain, bounded, clean

NAME_LIMIT = 64
"""Longest name of a tool, in characters: that of providers and of `@tool`."""
CALL_ID_LIMIT = 200
"""Longest id of a tool call, in characters."""
PARTS_LIMIT = 4 * ENTRY_BYTES
"""Largest provider's own form of an answer, in bytes: text and arguments again, and thoughts."""


def checked(answer: Any, reference: str) -> ModelAnswer:
    """`answer` as plain data within the bounds; `reference` is the model's, for messages.

    Raises:
        FatalError: it is no answer, has no plain form, or is too large; names field and size.
    """
    if not isinstance(answer, ModelAnswer):
        raise FatalError(f"{reference} gave {type(answer).__name__}, not a ModelAnswer. Mend the script.")
    output = plain_part(answer.output, "output", reference)
    plain_part([answer.text, output], "text and output", reference)
    parts = plain_part(answer.parts, "provider's form", reference, PARTS_LIMIT, MAX_DEPTH)
    requests = tuple(_request(request, number, reference) for number, request in enumerate(answer.requests, start=1))
    if [made.name for made in requests] != [given.name for given in answer.requests]:
        # Sent back as it came, a name that is none would be refused by the provider.
        parts = None
    return replace(answer, output=output, parts=parts, requests=requests)


def plain_part(value: Any, field: str, reference: str, limit: int = ENTRY_BYTES, depth: int | None = None) -> Plain:
    """`value` as plain data within the bounds.

    Raises:
        FatalError: it has none, or is too large or too deep.
    """
    try:
        return bounded(value, field, limit) if depth is None else bounded(value, field, limit, depth)
    except (UnserialisableError, RecursionError) as error:
        raise FatalError(f"{reference}: its answer cannot be kept: {error}") from None


def _request(request: Request, number: int, reference: str) -> Request:
    call_id = str(request.call_id)
    if len(call_id) > CALL_ID_LIMIT:
        raise FatalError(
            f"{reference}: its answer cannot be kept: the id of tool call {number} has {len(call_id):,} characters, "
            f"over the limit of {CALL_ID_LIMIT}."
        )
    arguments = plain_part(request.arguments, f"arguments of tool call {number}", reference)
    return Request(str(clean(call_id).value), _name(request.name), arguments)


def _name(name: object) -> str:
    return str(clean(str(name).strip()).value)[:NAME_LIMIT] or "unnamed"
