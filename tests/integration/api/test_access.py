"""Who may do what: every route needs a role, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from casework.api import create_app
from casework.api.access import ADMITS, Role, need_of
from casework.settings import Settings
from tests.integration.api.conftest import Door

OPEN = {"/healthz", "/readyz"}
NOBODY: Any = None


def routes(holder: FastAPI | APIRouter) -> Iterator[APIRoute]:
    """Every route of an application, those of included routers too."""
    for route in holder.routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from routes(inner)
        elif isinstance(route, APIRoute):
            yield route


def every_route() -> list[tuple[str, str, APIRoute]]:
    app = create_app(Settings(), NOBODY, NOBODY, NOBODY)
    return [(method, route.path, route) for route in routes(app) for method in sorted(route.methods or ())]


ROUTES = every_route()


def concrete(path: str) -> str:
    for name in ("run_id", "review_id", "uuid"):
        path = path.replace(f"{{{name}}}", str(uuid4()))
    return path.replace("{name}", "letter").replace("{kind}", "WorkflowSession")


def test_there_are_routes_to_walk() -> None:
    """DA-31. Start, detail, list, events, decision, cancel, metrics, retries, waiting reviews, health."""
    assert {(method, path) for method, path, _ in ROUTES} == {
        ("POST", "/v1/runs"),
        ("GET", "/v1/runs"),
        ("GET", "/v1/runs/{run_id}"),
        ("GET", "/v1/runs/{run_id}/steps"),
        ("GET", "/v1/runs/{run_id}/events"),
        ("GET", "/v1/runs/{run_id}/messages"),
        ("POST", "/v1/runs/{run_id}/fork"),
        ("POST", "/v1/runs/{run_id}/cancel"),
        ("POST", "/v1/runs/{run_id}/signals/{name}"),
        ("GET", "/v1/steps"),
        ("GET", "/v1/reviews"),
        ("GET", "/v1/reviews/{review_id}"),
        ("POST", "/v1/reviews/{review_id}/decisions"),
        ("GET", "/v1/processes"),
        ("GET", "/v1/processes/{name}"),
        ("POST", "/v1/processes/{name}/start"),
        ("POST", "/v1/processes/{name}/stop"),
        ("POST", "/v1/processes/{name}/schedule"),
        ("DELETE", "/v1/processes/{name}/schedule"),
        ("GET", "/v1/monitors"),
        ("GET", "/v1/monitors/{name}"),
        ("POST", "/v1/monitors/{name}/poll"),
        ("POST", "/v1/monitors/{name}/stop"),
        ("PATCH", "/v1/monitors/classes/{monitor_class}"),
        ("POST", "/v1/transactions"),
        ("GET", "/v1/transactions"),
        ("GET", "/v1/transactions/{uuid}"),
        ("POST", "/v1/transactions/{uuid}/retry"),
        ("POST", "/v1/transactions/{uuid}/clone"),
        ("POST", "/v1/transactions/{uuid}/abort"),
        ("POST", "/v1/transactions/{uuid}/complete"),
        ("POST", "/v1/inbox/{name}"),
        ("GET", "/v1/workflows"),
        ("GET", "/v1/workflows/{name}"),
        ("GET", "/v1/workflows/{name}/manifest"),
        ("POST", "/v1/resources"),
        ("GET", "/v1/resources"),
        ("GET", "/v1/resources/{kind}/{name}"),
        ("DELETE", "/v1/resources/{kind}/{name}"),
        ("GET", "/v1/metrics/workflows"),
        ("GET", "/v1/metrics/retries"),
        ("GET", "/metrics"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
    }


@pytest.mark.parametrize(("method", "path", "route"), ROUTES, ids=[f"{m} {p}" for m, p, _ in ROUTES])
async def test_every_route_declares_its_role_and_refuses_the_others(
    door: Door, method: str, path: str, route: APIRoute
) -> None:
    """Deny by default: no token 401, a token without the role 403, and nothing is open but health."""
    need = need_of(route.endpoint)
    if path in OPEN:
        assert (await door.ask(method, path, role=None)).status == 200
        return
    assert isinstance(need, Role)
    for bad in (None, "Bearer cw_unknown", "Basic YTpi", "Bearer "):
        refused = await door.ask(method, concrete(path), role=None, headers={"Authorization": bad} if bad else {})
        assert refused.status == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert refused.body["type"] == "urn:casework:problem:unauthenticated"
    for role in Role:
        answer = await door.ask(method, concrete(path), role=role)
        assert (answer.status == 403) == (role not in ADMITS[need]), role


def test_a_get_needs_no_more_than_a_viewer_and_changes_need_more() -> None:
    """DA-37. A decision needs the reviewer's role; reading needs a viewer's."""
    needs = {(method, path): need_of(route.endpoint) for method, path, route in ROUTES if path not in OPEN}
    assert needs.pop(("GET", "/metrics")) is Role.METRICS
    assert {need for (method, _), need in needs.items() if method == "GET"} == {Role.VIEWER}
    assert needs["POST", "/v1/reviews/{review_id}/decisions"] is Role.REVIEWER
    assert needs["POST", "/v1/runs/{run_id}/signals/{name}"] is Role.REVIEWER
    assert needs["POST", "/v1/runs"] is Role.OPERATOR
    assert needs["POST", "/v1/runs/{run_id}/cancel"] is Role.OPERATOR


async def test_a_route_that_declares_nothing_is_refused_to_everyone(door: Door) -> None:
    async def forgotten() -> dict[str, str]:
        return {"secret": "told"}

    door.app.add_api_route("/v1/forgotten", forgotten)
    answer = await door.get("/v1/forgotten", role="admin")
    assert answer.status == 403
    assert "declares no role" in answer.body["detail"]


async def test_a_revoked_token_is_refused_from_the_next_request_on(door: Door) -> None:
    from casework.store import tokens

    assert (await door.get("/v1/runs", role="viewer")).status == 200
    async with door.admin.transaction() as conn:
        for row in await tokens.list_tokens(conn, "default"):
            await tokens.revoke(conn, "default", row.token_id)
    assert (await door.get("/v1/runs", role="viewer")).status == 401


async def test_a_tenant_sees_nothing_of_another(door: Door) -> None:
    run_id = await door.start()
    for rest in (f"runs/{run_id}", f"runs/{run_id}/events", f"runs/{run_id}/messages", "workflows/letter"):
        path = f"/v1/{rest}"
        assert (await door.get(path, tenant="other")).status == 404
    assert (await door.get("/v1/runs", tenant="other")).body["items"] == []
    assert (await door.post(f"/v1/runs/{run_id}/cancel", tenant="other")).status == 404
