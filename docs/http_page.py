"""The page of the HTTP API, from its OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from fastapi.routing import APIRoute

from casework.api import create_app, problems
from casework.api.access import need_of
from casework.api.app import ROUTES
from casework.app import App
from casework.errors import CaseworkError
from casework.settings import Settings
from docs.markdown import GENERATED, cell, table

_INTRO = (
    "Base path `/v1`. Every route but the health checks needs `Authorization: Bearer TOKEN` with a role that may use "
    "it "
    "([roles](../operations/processes.md#roles)). The OpenAPI document is at `/openapi.json`, and asks for no token.",
    "Numbers with a fraction are JSON numbers with all their digits. Times are ISO-8601 instants in UTC. Ids are "
    "UUIDs.",
    "Lists come in pages: `limit` rows and a `next_cursor`, which is sent back as `cursor` for the page after and is "
    "null on the last. Events and messages are "
    "asked for by the last number seen (`after`).",
    "`POST /v1/runs` takes an `Idempotency-Key`, at most 255 characters: the same key and body again is the same "
    "run (200), the same key with another body is 409.",
)


def http() -> str:
    """Routes, shapes and problems."""
    app = create_app(Settings(), App(), cast("Any", None), cast("Any", None))
    document = app.openapi()
    needs = _needs()
    text = [GENERATED, "# HTTP", *_INTRO, "## Routes"]
    rows = []
    details: list[str] = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            need = needs[method, path]
            rows.append((f"`{method.upper()} {path}`", need, cell(operation.get("description", "").split("\n\n")[0])))
            details += _operation(method, path, need, operation)
    text += [table(("route", "needs", "what it does"), rows), *details, *_problems(), *_shapes(document)]
    return "\n\n".join(text)


def _needs() -> dict[tuple[str, str], str]:
    """What each route declares that its caller must have."""
    found = {}
    for module in ROUTES:
        for route in module.router.routes:
            assert isinstance(route, APIRoute)
            need = need_of(route.endpoint)
            found.update({(method.lower(), route.path): str(need) for method in route.methods or ()})
    return found


def _operation(method: str, path: str, need: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {method.upper()} {path}"
    yield cell(operation.get("description", "")) + (" Asks for no token." if need == "open" else f" Needs: {need}.")
    parameters = [
        (f"`{each['name']}`", each["in"], "required" if each.get("required") else _default(each["schema"]),
         each.get("description") or "")
        for each in operation.get("parameters", ())
    ]  # fmt: skip
    if parameters:
        yield table(("parameter", "in", "required or default", "what it is"), parameters)
    body = operation.get("requestBody")
    if body:
        yield f"Body: {_type(body['content']['application/json']['schema'])}."
    yield f"Answers: {', '.join(_answer(status, each) for status, each in sorted(operation['responses'].items()))}."


def _default(schema: Mapping[str, Any]) -> str:
    return "" if schema.get("default") is None else f"`{schema['default']}`"


def _answer(status: str, response: Mapping[str, Any]) -> str:
    content = response.get("content", {}).get("application/json")
    return f"{status} {_type(content['schema'])}" if content else status


def _problems() -> Iterator[str]:
    yield "## Problems"
    yield (
        "Every error is an RFC 9457 problem document (`application/problem+json`) with `type`, `title`, `status` and "
        "`detail`, and further members that tell the state: `errors` "
        "with `field` and `message` for each field at fault; for a decision that came too late `run_status`, "
        "`current_review_id` and the `decision` that was taken. `type` is "
        f"`{problems.TYPE_PREFIX}` and one of:"
    )
    rows = [(f"`{kind.slug}`", kind.status, kind.title) for kind in problems.kinds()]
    yield table(("type", "status", "title"), rows)
    yield "A 503 carries `Retry-After`. A 500 tells nothing of the inside; the log does."


def status_of(cls: type[CaseworkError]) -> str:
    """The HTTP status of an error class; 500 where it has none of its own."""
    return str(next((problems._KINDS[each].status for each in cls.__mro__ if each in problems._KINDS), 500))


def _shapes(document: Mapping[str, Any]) -> Iterator[str]:
    yield "## Shapes"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield f"### {name}"
        if schema.get("description"):
            yield cell(schema["description"])
        required = set(schema.get("required", ()))
        rows = [
            (
                f"`{field}`",
                _type(part),
                "required" if field in required else _default(part),
                part.get("description", ""),
            )
            for field, part in schema.get("properties", {}).items()
        ]
        yield table(("member", "type", "required or default", "what it is"), rows)


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in words, with a link where it is a shape of its own."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)
