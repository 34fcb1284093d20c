"""The OpenAPI document: what FastAPI derives, made true where our door differs from FastAPI's.

Errors are problem documents, and which ones a route can give follows from the route: every guarded one 401 and 403,
one with an id in its path 404, one that changes something 409 and 413. FastAPI's own 422 shape is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from casework.api.problems import MEDIA_TYPE
from casework.api.shapes import FieldError, ProblemDocument

REASONS = {
    "401": "No valid token.",
    "403": "The token has not the role.",
    "404": "There is no such thing.",
    "409": "The present state does not allow it; the members tell that state.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "A field does not hold; `errors` names it.",
    "500": "Something went wrong here.",
    "503": "A server that is needed cannot be reached; see Retry-After.",
}
OPEN_MARK = {"x-open": True}
"""For routes that ask for no token: their operation then says so."""
_OWN_SHAPES = ("HTTPValidationError", "ValidationError")


def install(app: FastAPI) -> None:
    """Let `app` publish the document made here."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _made(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's documented way


def _made(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = made["components"]["schemas"]
    for name in _OWN_SHAPES:
        schemas.pop(name, None)
    for shape in (FieldError, ProblemDocument):
        schema = shape.model_json_schema(ref_template="#/components/schemas/{model}")
        schema.pop("$defs", None)
        schemas[shape.__name__] = schema
    for path, method, operation in _operations(made):
        if operation.pop("x-open", False):
            # FastAPI would add to a list here and not replace it.
            operation["security"] = []
        for status in _statuses(path, method, operation):
            operation["responses"][status] = _response(status)
    return made


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _statuses(path: str, method: str, operation: dict[str, Any]) -> list[str]:
    if not operation["security"]:
        return ["500"] + (["503"] if path == "/readyz" else [])
    found = ["401", "403", "422", "500", "503"]
    if "{" in path:
        found.append("404")
    if method == "post":
        found += ["409", "413", "415"]
    if method == "delete":
        found.append("409")
    return sorted(found)


def _response(status: str) -> dict[str, Any]:
    return {
        "description": REASONS[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    }
