"""/metrics over real HTTP, read with Prometheus' own parser, and held against the rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, cast
from uuid import UUID, uuid4

import httpx2
import psycopg
import pytest
import uvicorn
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from casework.api import create_app
from casework.app import App
from casework.projection import RunEntry
from casework.settings import Settings
from casework.store import ledger, tokens
from casework.store.database import Database
from casework.store.local import LocalPostgres
from casework.store.migrate import migrate
from tests.integration.api.conftest import Door, asked, at, decided, running
from tests.integration.store.cases import PATH, TENANT, done, new_run, tool_claim
from tests.integration.store.test_hanging_server import hanging

NOBODY = cast("Any", None)


class Scraped:
    """One answer: every sample by its name and labels."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def value(self, name: str, /, **labels: str) -> float | None:
        return self.samples.get((name, frozenset(labels.items())))

    def of(self, name: str) -> dict[frozenset[tuple[str, str]], float]:
        return {labels: value for (each, labels), value in self.samples.items() if each == name}

    def sum(self, name: str, /, **labels: str) -> float:
        return sum(value for found, value in self.of(name).items() if labels.items() <= dict(found).items())


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """The application behind a real socket."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="warning"))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(30):
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event to wait for
            await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        await serving


async def scrape(client: httpx2.AsyncClient, token: str) -> Scraped:
    response = await client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return Scraped(response.text)


async def step(door: Door, run_id: UUID, *ends: str, path: str = PATH, **figures: Any) -> None:
    """One step whose attempts end so, one after the other."""
    for number, end in enumerate(ends, start=1):
        async with door.db.transaction() as conn:
            await ledger.claim(conn, tool_claim(run_id, path, **figures.pop("claim", {})))
        async with door.db.transaction() as conn:
            if end == "FAILED":
                await ledger.attempt_failed(conn, TENANT, run_id, path, number, "503", 20)
            elif end == "COMPLETED":
                await ledger.commit(conn, done(run_id, number, path, **figures))


async def cases(door: Door) -> list[UUID]:
    """Three runs: one tries a tool again, one waits for a person, one was approved; a fourth is another tenant's."""
    one, two, three = [await door.start() for _ in range(3)]
    await door.project(one, running())
    await step(door, one, "FAILED", "lost", "FAILED")
    await door.project(two, running())
    await step(door, two, "COMPLETED", path="underwrite.1/exchange.1/model.1", tokens_in=900, tokens_out=80,
               cost=Decimal("0.0123"), claim={"kind": "model", "name": "model"})  # fmt: skip
    await door.project(two, *asked(two))
    await step(door, three, "COMPLETED", tokens_in=7)
    await door.project(three, running(), *asked(three), decided(three, "approve", outcome="approved"))
    await door.project(three, RunEntry(3, "COMPLETED", 1, 1, at(), outcome="approved"))
    foreign = uuid4()
    async with door.db.transaction() as conn:
        from casework.store import runs

        await runs.create_pending(conn, new_run(foreign, tenant="other", workflow_name="letter"))
    return [one, two, three]


async def test_every_figure_is_that_of_the_rows(door: Door) -> None:
    """DA-29. DA-50. States, outcomes, reviews, attempts, tokens and money, of every tenant, in Prometheus' format."""
    await cases(door)
    async with served(door.app) as client:
        seen = await scrape(client, await door.token("metrics"))
    mine = {"tenant": TENANT, "workflow": "letter"}
    assert seen.value("casework_store_up") == 1
    states = {state: seen.value("casework_runs", **mine, state=state) for state in ("PENDING", "RUNNING")}
    assert states == {"PENDING": 0, "RUNNING": 1}
    assert seen.value("casework_runs", **mine, state="AWAITING_REVIEW") == 1
    assert seen.value("casework_runs", tenant="other", workflow="letter", state="PENDING") == 1
    assert seen.value("casework_runs_accepted_total", **mine) == 3
    assert seen.of("casework_runs_ended_total") == {
        frozenset({*mine.items(), ("state", "COMPLETED"), ("outcome", "approved")}): 1
    }
    assert seen.value("casework_run_duration_seconds_count", **mine, state="COMPLETED") == 1
    assert seen.value("casework_reviews_waiting", **mine) == 1
    assert seen.value("casework_reviews_waiting", tenant="other", workflow="letter") == 0
    assert (seen.value("casework_review_oldest_seconds", **mine) or -1) >= 0
    assert seen.value("casework_reviews_asked_total", **mine) == 2
    assert seen.value("casework_review_wait_seconds_count", **mine) == 1
    credit = {"tenant": TENANT, "kind": "tool", "name": "credit_check"}
    outcomes = ("COMPLETED", "FAILED", "LOST", "LATE")
    attempts = [seen.value("casework_step_attempts_total", **credit, outcome=outcome) for outcome in outcomes]
    assert attempts == [1, 2, 1, 0]
    assert seen.value("casework_step_attempt_duration_seconds_sum", **credit) == pytest.approx(0.08)
    assert seen.value("casework_steps_in_flight", **credit) == 1
    assert seen.value("casework_steps_retrying", **credit) == 1
    assert seen.value("casework_tokens_total", **mine, direction="in") == 907
    assert seen.value("casework_tokens_total", **mine, direction="out") == 80
    assert seen.value("casework_cost_total", **mine) == 0.0123
    assert seen.value("casework_calls_total", **mine, kind="model") == 1
    assert seen.value("casework_calls_total", **mine, kind="tool") == 1


async def test_counters_never_go_back(door: Door) -> None:
    """DA-29. A run's end, a lost attempt that comes late, and deleted runs take nothing from any counter."""
    runs = await cases(door)
    door.app.state.scraper.fresh_s = 0
    token = await door.token("metrics")

    async def late() -> None:
        async with door.db.transaction() as conn:
            await ledger.commit(conn, done(runs[0], 2, latency_ms=99, tokens_in=50))

    async def end() -> None:
        for run_id in runs[:2]:
            await door.project(run_id, RunEntry(9, "CANCELLED", 1, 1, at(), failure="by hand"))

    async def forget() -> None:
        async with door.admin.transaction() as conn:
            await conn.execute("delete from agent_ops.agent_runs where tenant = %s", (TENANT,))

    async with served(door.app) as client:
        before = await scrape(client, token)
        for act in (late, end, forget):
            await act()
            after = await scrape(client, token)
            names = [name for name, family in after.families.items() if family.type in {"counter", "summary"}]
            assert len(names) > 10
            for (name, labels), value in before.samples.items():
                if name.endswith(("_total", "_sum", "_count")):
                    assert after.samples[name, labels] >= value, (act.__name__, name, dict(labels))
            before = after
    credit = {"tenant": TENANT, "kind": "tool", "name": "credit_check"}
    assert before.value("casework_step_attempts_total", **credit, outcome="LOST") == 1
    assert before.value("casework_step_attempts_total", **credit, outcome="LATE") == 1
    assert before.sum("casework_runs_accepted_total", tenant=TENANT) == 3


async def test_requests_are_counted_by_route_and_never_by_path(door: Door) -> None:
    """Whoever asks does not choose how many series there are."""
    token, viewer = await door.token("metrics"), await door.token("viewer")
    run_id = await door.start()
    async with served(door.app) as client:
        headers = {"Authorization": f"Bearer {viewer}"}
        for _ in range(2):
            assert (await client.get(f"/v1/runs/{run_id}", headers=headers)).status_code == 200
        assert (await client.get(f"/v1/runs/{uuid4()}", headers=headers)).status_code == 404
        for path in ("/wp-login.php", f"/{uuid4()}", "/v1/nothing"):
            await client.get(path, headers=headers)
        await client.request("BREW", "/v1/runs", headers=headers)
        seen = await scrape(client, token)
    name, route = "casework_http_requests_total", "/v1/runs/{run_id}"
    assert seen.value(name, method="GET", route=route, status="200") == 2
    assert seen.value(name, method="GET", route=route, status="404") == 1
    assert seen.value(name, method="GET", route="none", status="404") == 3
    assert seen.sum(name, method="other") == 1
    assert seen.value("casework_http_request_duration_seconds_count", method="GET", route=route) == 3
    templates = {"none", *door.app.openapi()["paths"], "/openapi.json"}
    assert {dict(labels)["route"] for labels in seen.of(name)} <= templates
    assert (seen.value("process_resident_memory_bytes") or 0) > 0


async def test_only_a_watcher_may_scrape_and_a_watcher_may_do_nothing_else(door: Door) -> None:
    """Deny by default: figures of all tenants are for the role metrics, and cases are not."""
    async with served(door.app) as client:

        async def status(path: str, token: str) -> int:
            return (await client.get(path, headers={"Authorization": f"Bearer {token}"})).status_code

        assert (await client.get("/metrics")).status_code == 401
        assert await status("/metrics", "cw_unknown") == 401
        for role in ("viewer", "reviewer", "operator", "admin"):
            assert await status("/metrics", await door.token(role)) == 403
        for path in ("/v1/runs", "/v1/reviews", "/v1/metrics/workflows", "/v1/workflows"):
            assert await status(path, await door.token("metrics")) == 403


async def test_a_revoked_token_is_refused_while_the_database_answers(door: Door) -> None:
    """A token that was remembered is checked all the same."""
    token = await door.token("metrics")
    async with served(door.app) as client:
        await scrape(client, token)
        async with door.admin.transaction() as conn:
            (row,) = [each for each in await tokens.list_tokens(conn, TENANT) if each.roles == ["metrics"]]
            await tokens.revoke(conn, TENANT, row.token_id)
        refused = await client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 401


async def test_a_scrape_reads_the_store_once_in_a_while(door: Door) -> None:
    """However many ask, the store is read once until the reading is no longer fresh."""
    scraper, token = door.app.state.scraper, await door.token("metrics")
    async with served(door.app) as client:
        await asyncio.gather(*(scrape(client, token) for _ in range(5)))
        first = scraper._last
        await scrape(client, token)
        assert scraper._last is first
        scraper.fresh_s = 0
        await scrape(client, token)
        assert scraper._last is not first


async def test_metrics_answer_while_the_database_is_away(tmp_path_factory: pytest.TempPathFactory) -> None:
    """DA-32. With the server gone, a known watcher is told so, and what this process counts; then it heals."""
    server = LocalPostgres(tmp_path_factory.mktemp("away"), options={"fsync": "off"})
    dsn = server.start()
    try:
        await migrate(dsn)
        with psycopg.connect(dsn) as conn:
            assert conn.info.server_version
        async with await Database.open(dsn, role=None) as admin, admin.transaction() as owner:
            known, unknown = [await tokens.create(owner, name, TENANT, ["metrics"]) for name in ("known", "new")]
        async with await Database.open(dsn, max_size=2) as db:
            app = create_app(Settings(), App(), db, NOBODY)
            app.state.scraper.fresh_s = 0
            async with served(app) as client:
                assert (await scrape(client, known)).value("casework_store_up") == 1
                server.stop()
                began = asyncio.get_running_loop().time()
                away = await scrape(client, known)
                assert asyncio.get_running_loop().time() - began < 9
                stranger = await client.get("/metrics", headers={"Authorization": f"Bearer {unknown}"})
                assert server.start() == dsn
                await healed(client, known)
    finally:
        server.stop()
    assert away.value("casework_store_up") == 0
    assert away.value("casework_http_requests_total", method="GET", route="/metrics", status="200") == 1
    assert "casework_runs" not in away.families
    assert stranger.status_code == 503


async def test_a_scrape_is_bounded_while_the_database_hangs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """DA-32. A server that takes connections and answers nothing: no scrape takes as long as a scraper waits."""
    with LocalPostgres(tmp_path_factory.mktemp("hangs"), options={"fsync": "off"}) as server:
        await migrate(server.dsn)
        async with await Database.open(server.dsn, role=None) as admin, admin.transaction() as owner:
            known = await tokens.create(owner, "known", TENANT, ["metrics"])
        async with await Database.open(server.dsn, max_size=2) as db:
            app = create_app(Settings(), App(), db, NOBODY)
            app.state.scraper.fresh_s = 0
            async with served(app) as client:
                assert (await scrape(client, known)).value("casework_store_up") == 1
                with hanging(server):
                    for _ in range(2):
                        began = asyncio.get_running_loop().time()
                        assert (await scrape(client, known)).value("casework_store_up") == 0
                        assert asyncio.get_running_loop().time() - began < 9
                await healed(client, known)


async def healed(client: httpx2.AsyncClient, token: str) -> None:
    async with asyncio.timeout(60):
        while (await scrape(client, token)).value("casework_store_up") != 1:  # noqa: ASYNC110 - the pool heals unseen
            await asyncio.sleep(0.1)


async def test_odd_names_do_not_break_the_format(door: Door) -> None:
    """Quotes, line ends and backslashes in a name are data."""
    odd = 'a"b\\c\nd é'
    async with door.db.transaction() as conn:
        from casework.store import runs

        await runs.create_pending(conn, new_run(uuid4(), workflow_name=odd))
    async with served(door.app) as client:
        seen = await scrape(client, await door.token("metrics"))
    assert seen.value("casework_runs", tenant=TENANT, workflow=odd, state="PENDING") == 1


def test_names_follow_the_conventions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters end in _total, times are in seconds, everything of ours begins with casework_, no label names a case."""
    from casework.api.store_figures import families
    from casework.store.totals import Totals

    for family in families(Totals((), (), (), (), ())):
        assert family.name.startswith("casework_")
        assert family.documentation.endswith((".", "none is.", "none does."))
        assert not family.name.endswith("_ms")
