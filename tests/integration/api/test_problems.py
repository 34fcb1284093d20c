"""Errors: one form for all of them, nothing of the inside in any of them."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from casework.api import problems
from casework.api.access import Role, needs
from casework.errors import ConflictError, FatalError, StoreUnavailableError, UnreachableError
from tests.integration.api.conftest import Door

MEMBERS = {"type", "title", "status", "detail"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/runs/", 404),
        ("DELETE", "/v1/runs", 405),
        ("PUT", "/v1/reviews", 405),
        ("GET", "/docs", 404),
    ],
)
async def test_what_is_not_there_is_a_problem_document(door: Door, method: str, path: str, status: int) -> None:
    """DA-31. RFC 9457 for 404 and 405 too."""
    answer = await door.ask(method, path)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.body.keys() >= MEMBERS
    assert answer.body["status"] == status
    if status == 405:
        assert answer.headers["allow"]


@pytest.mark.parametrize("error", [RuntimeError("hunter2"), FatalError("hunter2"), ConflictError("hunter2")])
async def test_what_nobody_foresaw_tells_nothing_of_the_inside(door: Door, error: Exception) -> None:
    @needs(Role.VIEWER)
    async def broken() -> None:
        raise error

    door.app.add_api_route("/v1/broken", broken)
    response = await door.client.get("/v1/broken", headers={"Authorization": f"Bearer {await door.token('viewer')}"})
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json().keys() >= MEMBERS
    assert "hunter2" not in response.text


async def test_a_database_that_is_away_is_503_with_a_time_to_come_back(door: Door) -> None:
    """DA-31. StoreUnavailable is 503 with Retry-After; /healthz still lives, /readyz says what is wrong."""
    await door.token("viewer")
    await door.db.close()
    answer = await door.get("/v1/runs", role="viewer")
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    ready = await door.get("/readyz", role=None)
    assert (ready.status, ready.body["detail"]) == (503, "The database does not answer.")
    assert (await door.get("/healthz", role=None)).body == {"status": "ok"}


async def test_a_database_that_takes_no_writes_is_not_ready(door: Door, database_dsn: str) -> None:
    """DA-31. /readyz says so, and leaves the server: it is ready again once another one, or the same, takes writes."""
    name = sql.Identifier(str(conninfo_to_dict(database_dsn)["dbname"]))
    with psycopg.connect(database_dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("alter database {} set default_transaction_read_only = on").format(name))
        async with asyncio.timeout(20):
            # A session that is on its way back into the pool stays writable until it is left behind as well.
            while (refused := await door.get("/readyz", role=None)).status == 200:
                await door.db.renew()
        assert (refused.status, refused.body["detail"]) == (503, "The database takes no writes: it is read-only.")
        admin.execute(b"set default_transaction_read_only = off")
        admin.execute(sql.SQL("alter database {} reset default_transaction_read_only").format(name))
    async with asyncio.timeout(20):
        while (await door.get("/readyz", role=None)).status != 200:  # noqa: ASYNC110 - the pool heals unseen
            await asyncio.sleep(0.05)


def test_errors_of_unreachable_servers_are_503() -> None:
    from casework.api.problems import of_error

    assert of_error(StoreUnavailableError("x", retry_after=7.4)).headers["retry-after"] == "7"
    assert of_error(UnreachableError("x")).status_code == 503


async def test_the_document_is_complete(door: Door) -> None:
    """DA-31. OpenAPI names every operation's answers and the security scheme; only health asks for no token."""
    document = (await door.client.get("/openapi.json")).json()
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            announced = set(operation["responses"])
            assert operation["summary"], path
            assert operation["description"], path
            if path in {"/healthz", "/readyz"}:
                assert operation["security"] == []
                continue
            assert operation["security"] == [{"token": []}], path
            assert {"401", "403", "422", "500", "503"} <= announced, path
            assert ("409" in announced) == (method in {"post", "delete"})
            good = next(operation["responses"][code] for code in announced if code.startswith("2"))
            if path == "/metrics":  # Prometheus reads text
                assert set(good["content"]) == {"text/plain"}
                continue
            assert "$ref" in good["content"]["application/json"]["schema"], path
    assert "HTTPValidationError" not in document["components"]["schemas"]


async def test_a_query_parameter_that_no_route_knows_is_named(door: Door) -> None:
    answer = await door.get("/v1/runs", statuss="done", x=1)
    assert answer.status == 422
    assert answer.body["errors"][0] == {
        "field": "statuss",
        "message": "is no query parameter here; did you mean 'status'?",
    }
    assert answer.body["errors"][1]["field"] == "x"
    assert (await door.post("/v1/runs", {}, dry="1")).body["errors"][0]["field"] == "dry"
    assert (await door.get("/v1/runs", role=None, statuss="done")).status == 401, "who asks comes first"
    assert (await door.get("/healthz", role=None, probe="1")).status == 200


async def test_a_title_names_the_kind_and_the_detail_the_case(door: Door) -> None:
    answers = [
        await door.post("/v1/runs", content=b"{}", headers={"Content-Type": "text/csv"}),
        await door.post("/v1/runs", content=b" " * 1_100_000),
        await door.ask("DELETE", "/v1/runs"),
        await door.get("/v1/nothing"),
    ]
    assert [answer.status for answer in answers] == [415, 413, 405, 404]
    known = {problems.TYPE_PREFIX + kind.slug: kind.title for kind in problems.kinds()}
    for answer in answers:
        assert answer.body["title"] == known[answer.body["type"]]
        assert answer.body["title"] != answer.body["detail"]
    assert known.keys() >= {problems.TYPE_PREFIX + slug for slug in ("internal", "bad-request")}


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/metrics/workflows", "/v1/steps?state=failed"])
async def test_a_query_parameter_that_is_sent_twice_is_refused(door: Door, path: str) -> None:
    """Which of the two is meant is not for us to guess: also where both are the same."""
    token = await door.token("admin")
    for twice in ("workflow=a&workflow=b", "workflow=a&workflow=a"):
        url = f"{path}{'&' if '?' in path else '?'}{twice}"
        answer = await door.client.get(url, headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json()["errors"]) == (
            422,
            [{"field": "workflow", "message": "is sent 2 times; send it once"}],
        )
