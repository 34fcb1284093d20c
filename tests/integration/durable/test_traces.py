"""Traces of runs, as a collector receives them over HTTP from a worker and an API at work on real servers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
from opentelemetry import trace

from casework.agents import tool
from casework.api import build, create_app
from casework.durable.worker import make_worker, watchers
from casework.settings import DatabaseSettings, Secret, TelemetrySettings
from casework.store import tokens
from casework.store.database import Database
from casework.telemetry.start import start_tracing
from casework.telemetry.tracer import Tracer
from casework.values import loads
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.collector import Collector, Seen, collecting
from tests.integration.durable.conftest import APPLICATION, TENANT, House
from tests.integration.durable.parts import early, parts_of

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@dataclass
class Traced:
    """A house whose worker and API make spans; `close` sends them all."""

    house: House
    tracer: Tracer
    http: httpx2.AsyncClient
    token: str

    def close(self) -> None:
        self.tracer.close(10)

    async def post(self, path: str, body: Any, **headers: str) -> Any:
        answer = await self.http.post(path, json=body, headers={"Authorization": f"Bearer {self.token}", **headers})
        assert answer.status_code in (200, 202), answer.text
        return loads(answer.content)

    async def start(self, **headers: str) -> UUID:
        body = {"workflow": "loan-underwriting", "input": APPLICATION}
        return UUID((await self.post("/v1/runs", body, **headers))["run_id"])

    async def decide(self, run_id: UUID, command: str) -> None:
        review = await self.house.review(run_id)
        body = {"command": command, "reason": "a private word"}
        await self.post(f"/v1/reviews/{review.review_id}/decisions", body)


@asynccontextmanager
async def traced(house: House, url: str, *, cache_size: int = 500) -> AsyncIterator[Traced]:
    tracer = start_tracing(TelemetrySettings(endpoint=url), "casework-test")
    assert tracer is not None
    runs = house.runs
    settings = replace(house.settings, worker=replace(house.settings.worker, cache_size=cache_size))
    async with await Database.open(house.dsn, role=None, max_size=1) as admin, admin.transaction() as conn:
        token = await tokens.create(conn, "rita-the-reviewer", TENANT, ["admin"])
    transport = httpx2.ASGITransport(create_app(house.settings, house.app, house.db, runs, tracer))
    async with httpx2.AsyncClient(transport=transport, base_url="http://casework.test") as http:
        try:
            async with make_worker(house.client, house.services(), settings, watching=watchers(tracer, None)):
                yield Traced(house, tracer, http, token)
        finally:
            tracer.close(10)


async def approved(at: Traced, **headers: str) -> UUID:
    """One loan case from the request to the approval."""
    run_id = await at.start(**headers)
    await at.house.reaches(run_id, "AWAITING_REVIEW")
    await at.decide(run_id, "approve")
    await at.house.reaches(run_id, "COMPLETED")
    await at.house.client.get_workflow_handle(str(run_id)).result()
    return run_id


def of_run(collector: Collector, run_id: UUID) -> list[Seen]:
    return [span for span in collector.spans if span.trace == run_id.hex]


async def test_a_case_is_one_trace_from_the_request_to_the_approval(house: House, collector: Collector) -> None:
    """The trace has the run's id; the parent of a span is the span of the path above; every one says run and path."""
    async with traced(house, collector.url) as at:
        run_id = await approved(at)
    spans = of_run(collector, run_id)
    print(collector.drawn())
    known = {span.id: span for span in spans}
    assert len(known) == len(spans), "a span came twice"
    assert [span.name for span in spans if not span.parent] == ["POST /v1/runs"]
    for span in spans:
        assert span.attributes["casework.run_id"] == str(run_id)
        assert span.attributes["casework.tenant"] == TENANT
        assert span.path is not None
        assert not span.failed
        assert span.end >= span.start
        if span.parent:
            above = known[span.parent]
            assert span.path.startswith(above.path or ""), f"{span.name} [{span.path}] is below [{above.path}]"

    run = collector.one("run")
    assert known[run.parent].name == "POST /v1/runs"
    visit = collector.one("visit underwrite")
    assert (visit.path, visit.parent) == ("underwrite.1", run.id)
    exchange = collector.one("exchange", "underwrite.1/exchange.1")
    assert exchange.parent == visit.id
    attempt = collector.one("tool credit_check")
    assert (attempt.path, attempt.parent) == ("underwrite.1/exchange.1/credit_check.1", exchange.id)
    assert attempt.attributes["casework.attempt"] == attempt.attributes["temporal.attempt"] == 1
    assert attempt.attributes["casework.workflow"] == "loan-underwriting"
    assert collector.one("execute_tool credit_check").parent == attempt.id
    assert {span.parent for span in collector.named("project")} == {run.id}


async def test_a_run_that_rolls_over_stays_one_trace(house: House, collector: Collector) -> None:
    """DA-20. One span of the run, one of each visit, over all of its parts; all below the request that started it."""
    async with traced(early(house, 20), collector.url) as at:
        run_id = await approved(at)
        assert len(await parts_of(house.client, run_id)) > 1
    spans = of_run(collector, run_id)
    known = {span.id: span for span in spans}
    assert len(known) == len(spans), f"a span came twice:\n{collector.drawn()}"
    assert [span.name for span in spans if not span.parent] == ["POST /v1/runs"]
    assert all(span.parent in known for span in spans if span.parent), collector.drawn()
    run, visit = collector.one("run"), collector.one("visit underwrite")
    assert visit.parent == run.id
    assert run.start <= visit.start
    exchanges = collector.named("exchange")
    assert len(exchanges) > 1
    assert {span.parent for span in exchanges} == {visit.id}
    rounding = 1_000  # the times of visits come from events, which have microseconds
    within = range(visit.start - rounding, visit.end + rounding + 1)
    off = [(each.path, each.start - visit.start, each.end - visit.end) for each in exchanges]
    assert all(each.start in within and each.end in within for each in exchanges), off


async def test_a_model_call_says_what_the_conventions_name(house: House, collector: Collector) -> None:
    """Provider, model and tokens of each call, under the names of OpenTelemetry's conventions."""
    async with traced(house, collector.url) as at:
        run_id = await at.start()
        row = await house.reaches(run_id, "AWAITING_REVIEW")
    calls = [span for span in of_run(collector, run_id) if span.name.startswith("chat ")]
    assert calls
    assert {call.attributes["gen_ai.operation.name"] for call in calls} == {"chat"}
    assert {call.attributes["gen_ai.provider.name"] for call in calls} == {"scripted"}
    assert {f"chat {call.attributes['gen_ai.request.model']}" for call in calls} == {call.name for call in calls}
    async with house.db.transaction() as conn:
        totals = await conn.execute("SELECT tokens_in FROM agent_ops.agent_runs WHERE run_id = %s", [row.run_id])
        kept = await totals.fetchone()
    assert kept is not None
    assert sum(call.attributes["gen_ai.usage.input_tokens"] for call in calls) == kept[0]


async def test_a_decision_stands_in_the_runs_trace_and_names_its_request(house: House, collector: Collector) -> None:
    """The span of a decision is below the visit that asked, and linked to the HTTP request that brought it."""
    async with traced(house, collector.url) as at:
        await approved(at)
    decision = collector.one("decision")
    visit = collector.one("visit decision")
    assert (decision.path, decision.parent) == ("decision.1", visit.id)
    assert decision.attributes["casework.command"] == "approve"
    request = collector.one("POST /v1/reviews/{review_id}/decisions")
    assert decision.links == ((request.trace, request.id),)
    assert request.attributes["casework.run_id"] == decision.attributes["casework.run_id"]


async def test_nothing_personal_and_no_secret_is_in_a_span(house: House, collector: Collector) -> None:
    """No argument, result, prompt, message, reason, reviewer or token leaves with a span."""
    async with traced(house, collector.url) as at:
        await approved(at)
        token = at.token
    sent = b"".join(collector.bodies)
    private = ["APP-1001", "debt_consolidation", "a private word", "rita-the-reviewer", "delinquency", token]
    assert not [word for word in private if word.encode() in sent]
    names = {name for span in collector.spans for name in span.attributes}
    assert names == {
        *("casework.run_id", "casework.tenant", "casework.path", "casework.step_id", "casework.node"),
        *("casework.workflow", "casework.workflow_version", "casework.attempt", "temporal.attempt", "casework.state"),
        *("casework.command", "casework.accepted", "casework.asked_again"),
        *("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.agent.name"),
        *("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
        *("gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id"),
        *("http.request.method", "http.response.status_code", "http.route", "url.scheme", "url.path"),
    }


async def test_a_callers_trace_goes_on_through_the_run(house: House, collector: Collector) -> None:
    """An inbound traceparent is honoured: request, run and attempts are in the caller's trace."""
    async with traced(house, collector.url) as at:
        await approved(at, traceparent=CALLER)
    _, trace_id, caller, _ = CALLER.split("-")
    request = collector.one("POST /v1/runs")
    assert (request.trace, request.parent) == (trace_id, caller)
    assert {collector.one(name).trace for name in ("run", "visit underwrite", "tool credit_check")} == {trace_id}


async def test_a_caller_who_does_not_record_is_followed(house: House, collector: Collector) -> None:
    """With the sampled flag off nothing of the run is sent."""
    async with traced(house, collector.url) as at:
        await approved(at, traceparent=f"{CALLER[:-2]}00")
    assert {span.name for span in collector.spans} <= {"POST /v1/reviews/{review_id}/decisions"}


async def test_replay_writes_no_span_again(house: House, collector: Collector) -> None:
    """A worker that keeps no run in memory rebuilds it at every step: the spans are the same, each once."""
    async with traced(house, collector.url) as at:
        usual = await approved(at)
    async with traced(house, collector.url, cache_size=0) as at:
        replayed = await approved(at)

    def shape(run_id: UUID) -> list[tuple[str, str | None]]:
        return sorted((span.name, span.path) for span in of_run(collector, run_id))

    spans = of_run(collector, replayed)
    assert len({span.id for span in spans}) == len(spans)
    assert shape(replayed) == shape(usual)


async def test_each_failed_attempt_is_a_span_with_an_error(house: House, collector: Collector, tmp_path: Path) -> None:
    """Two attempts fail and the third works: three spans below one exchange, numbered as the ledger does."""
    calls: list[int] = []

    @tool(effects=False)
    async def ring() -> str:
        """Fails twice."""
        calls.append(trace.get_current_span().get_span_context().span_id)
        if len(calls) < 3:
            raise ConnectionError("the bell says a private word")
        return "rang"

    other = replace(house, app=errand(tmp_path, [ring], asking([("ring", {})])))
    await other.open()
    async with traced(other, collector.url):
        run_id = await other.start({}, "errand")
        await other.reaches(run_id, "AWAITING_REVIEW")
    attempts = sorted(collector.named("tool ring"), key=lambda span: span.start)
    assert [(span.failed, span.attributes["casework.attempt"]) for span in attempts] == [
        (True, 1),
        (True, 2),
        (False, 3),
    ]
    assert {span.attributes.get("error.type") for span in attempts} == {"RetryableError", None}
    assert len({span.parent for span in attempts}) == 1
    acts = sorted(collector.named("execute_tool ring"), key=lambda span: span.start)
    assert [int(act.id, 16) for act in acts] == calls, "a tool finds its span by the OpenTelemetry API"
    assert b"private word" not in b"".join(collector.bodies)


async def test_a_collector_that_is_away_holds_up_nothing(house: House) -> None:
    """Nobody listens: the run completes, and closing is over within its bound."""
    async with traced(house, "http://127.0.0.1:9") as at:
        await approved(at)
        began = time.monotonic()
        at.tracer.close(1)
        assert time.monotonic() - began < 2


async def test_the_api_process_sends_its_last_spans_when_it_ends(house: House, collector: Collector) -> None:
    """By settings alone: a request has a span with route, status and tenant; health checks and strangers' paths."""
    settings = replace(
        house.settings,
        database=DatabaseSettings(url=Secret(house.dsn)),
        telemetry=TelemetrySettings(endpoint=collector.url, headers=Secret("api-key=a%20key")),
    )
    async with await Database.open(house.dsn, role=None, max_size=1) as admin, admin.transaction() as conn:
        token = await tokens.create(conn, "ann", TENANT, ["viewer"])
    served = build(settings, house.app)
    async with served.router.lifespan_context(served):
        transport = httpx2.ASGITransport(served)
        async with httpx2.AsyncClient(transport=transport, base_url="http://casework.test") as http:
            headers = {"Authorization": f"Bearer {token}"}
            for path in ("/v1/runs?user=ann", "/healthz", "/readyz", "/no/such/place"):
                await http.get(path, headers=headers)
            await http.request("BREW", "/v1/runs", headers=headers)
    asked = collector.one("GET /v1/runs")
    assert (asked.service, asked.attributes["casework.tenant"], asked.parent) == ("casework-api", TENANT, "")
    assert asked.attributes["http.response.status_code"] == 200
    assert "ann" not in asked.attributes.values()
    assert sorted(span.name.partition(" ")[0] for span in collector.spans) == ["GET", "GET", "HTTP"]
    assert collector.headers[0]["api-key"] == "a key"
