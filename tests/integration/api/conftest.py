"""The API over a real database and the real engine, asked as a client asks: over HTTP, with a token for each role."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from fastapi import FastAPI
from temporalio.client import Client

from casework import ids
from casework.api import create_app
from casework.app import App
from casework.durable.client import RunClient
from casework.graph.bundle import PinnedWorkflow
from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider
from casework.projection import DecisionEntry, EventEntry, ReviewEntry, RunEntry, to_plain
from casework.settings import Settings, TemporalSettings
from casework.store import projection, tokens, workflows
from casework.store.database import Database
from casework.values import dumps, instant, loads
from tests.integration.api.conformance import Conformance, published

TENANT = "default"
LETTER = {
    "apiVersion": "casework.dev/v1alpha1",
    "kind": "AiWorkflow",
    "metadata": {"name": "letter"},
    "spec": {
        "initialNode": "decision",
        "input": {
            "type": "object",
            "required": ["to", "amount"],
            "additionalProperties": False,
            "properties": {
                "to": {"type": "string", "minLength": 1},
                "amount": {"type": "number", "multipleOf": 0.01, "minimum": 0},
                "note": {"type": "string"},
            },
        },
        "nodes": [
            {
                "id": "decision",
                "type": "HUMAN_APPROVAL",
                "decisions": [
                    {"name": "approve", "outcome": "approved"},
                    {"name": "reject", "outcome": "declined"},
                    {"name": "more_info"},
                ],
            }
        ],
        "edges": [
            {"from": "decision", "to": "end", "condition": "approve"},
            {"from": "decision", "to": "end", "condition": "reject"},
            {"from": "decision", "to": "decision", "condition": "more_info"},
        ],
    },
}
"""A workflow of one question to a person: the shortest way to a review."""

GOOD = {"to": "Ada", "amount": 12}


@dataclass(frozen=True)
class Answer:
    """Status, headers, and the JSON with every digit."""

    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass
class Door:
    """The API, and the tokens to knock with."""

    db: Database
    app: FastAPI
    client: httpx2.AsyncClient
    admin: Database
    settings: Settings
    run_client: RunClient
    conformance: Conformance
    held: dict[str, str] = field(default_factory=dict)

    async def token(self, role: str, name: str | None = None, tenant: str = TENANT) -> str:
        """A token of that role; one for each name."""
        key = f"{role}/{name}/{tenant}"
        if key not in self.held:
            async with self.admin.transaction() as conn:
                self.held[key] = await tokens.create(conn, name or f"{role}-1", tenant, [role])
        return self.held[key]

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        role: str | None = "admin",
        name: str | None = None,
        tenant: str = TENANT,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        **query: Any,
    ) -> Answer:
        """One request, as the holder of a role's token (None: of no token); the answer is as OpenAPI announces."""
        sent = dict(headers or {})
        if role is not None:
            sent["Authorization"] = f"Bearer {await self.token(role, name, tenant)}"
        if body is not None:
            content = dumps(body).encode()
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        given = {key: str(value) for key, value in query.items()}
        response = await self.client.request(method, path, params=given, content=content, headers=sent)
        media_type = response.headers["content-type"].partition(";")[0]
        made = loads(response.content) if media_type.endswith("json") else response.text
        self.conformance.check(method, path, response.status_code, media_type, made)
        return Answer(response.status_code, response.headers, made)

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.ask("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await self.ask("POST", path, body, **options)

    async def start(self, body: Mapping[str, Any] | None = None, **options: Any) -> UUID:
        """A run of the letter workflow; its id."""
        answer = await self.post("/v1/runs", {"workflow": "letter", "input": GOOD, **(body or {})}, **options)
        assert answer.status == 202, answer.body
        return UUID(answer.body["run_id"])

    async def project(self, run_id: UUID, *entries: Any) -> None:
        """Write rows as a run's outbox does."""
        async with self.db.transaction() as conn:
            await projection.apply(conn, TENANT, run_id, [to_plain(entry) for entry in entries])


def at(seconds: int = 0) -> str:
    """An instant near now."""
    return instant(datetime.now(UTC) + timedelta(seconds=seconds))


def running(version: int = 1, **more: Any) -> RunEntry:
    return RunEntry(version, "RUNNING", turn=1, current_node="decision", loop_count=1, at=at(), **more)


def asked(run_id: UUID, number: int = 1, version: int = 2, **more: Any) -> tuple[Any, ...]:
    """The rows of a run that asks a person, in their order: the review, the event, the state."""
    path = f"decision.{number}"
    review = str(ids.review_id(run_id, path))
    commands = ("approve", "reject", "more_info")
    return (
        ReviewEntry(path, review, "decision", number, commands, at(), **more),
        EventEntry(path, "agent.review_pending", at(), {"review_id": review}),
        RunEntry(version, "AWAITING_REVIEW", turn=number, current_node="decision", loop_count=number, at=at()),
    )


def decided(run_id: UUID, command: str, number: int = 1, **more: Any) -> DecisionEntry:
    review = str(ids.review_id(run_id, f"decision.{number}"))
    given = {"reason": "enough", "reviewer": "rita", "accepted": True, "decision_id": str(uuid4()), **more}
    return DecisionEntry(f"decision.{number}", review, command=command, at=at(), **given)


def review_id_of(run_id: UUID, number: int = 1) -> UUID:
    return ids.review_id(run_id, f"decision.{number}")


async def publish(
    db: Database, manifest: Mapping[str, Any], agents: tuple[AiAgent, ...] = (), providers: tuple[LlmProvider, ...] = ()
) -> int:
    """Store a manifest as the newest version of its workflow."""
    pinned = PinnedWorkflow(
        AiWorkflow.model_validate(manifest), {one.name: one for one in agents}, {one.name: one for one in providers}
    )
    async with db.transaction() as conn:
        return await workflows.publish(conn, TENANT, pinned.name, pinned.to_plain(), pinned.hash())


@pytest.fixture
async def door(database_dsn: str, temporal_client: Client, temporal_address: str) -> AsyncIterator[Door]:
    """The API with the letter workflow published, and no worker."""
    temporal = TemporalSettings(address=temporal_address, task_queue=f"test-{uuid4().hex}")
    settings = Settings(temporal=temporal)
    run_client = RunClient(temporal_client, temporal.task_queue)
    async with (
        await Database.open(database_dsn, max_size=4) as db,
        await Database.open(database_dsn, role=None, max_size=1) as admin,
    ):
        await publish(db, LETTER)
        app = create_app(settings, App(), db, run_client)
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://casework.test") as client:
            yield Door(db, app, client, admin, settings, run_client, published())
