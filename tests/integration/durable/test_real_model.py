"""A whole run with a model behind the OpenAI wire format: a local server, with the troubles that real ones have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from casework.durable.activities.services import Services
from casework.durable.worker import make_worker, models_of
from casework.examples.loan_underwriting.script import underwriter
from casework.settings import ModelSettings
from casework.testing.openai_server import OpenAiServer, Reply, cut, fails, hangs, says, scripted
from tests.integration.durable.conftest import APPLICATION, House

KEY = "sk-secret-of-the-test-0123456789"


class Troubled:
    """The script of the shipped underwriter, behind one trouble after another."""

    def __init__(self, troubles: list[Reply]) -> None:
        self._troubles: Iterator[Reply] = iter(troubles)
        self._well = scripted(underwriter)

    def __call__(self, body: Any) -> Reply:
        return next(self._troubles, None) or self._well(body)


async def test_a_run_survives_what_real_providers_do(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-15, DA-18. Too many requests, a server error and a cut connection are tried again; the key is nowhere.

    One setting points every agent at the endpoint; the transcript, tool calls included, goes over the wire.
    """
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    troubles = [fails(429, "slow down", retry_after="0.2"), fails(500), cut(says("half an answer"))]
    with OpenAiServer(Troubled(troubles)) as server:
        models = ModelSettings(model="openai:any-model", base_url=server.url)
        house.settings = replace(house.settings, models=models)
        services = Services(house.db, house.app, models_of(house.app, house.settings), house.settings)
        async with make_worker(house.client, services, house.settings):
            run_id = await house.start(APPLICATION)
            row = await house.reaches(run_id, "AWAITING_REVIEW", deadline_s=60)
    assert row.recommendation["recommendation"] == "refer"
    assert (row.tokens_in, row.tokens_out) > (0, 0)
    first = next(step for step in await house.steps(run_id) if step.kind == "model")
    assert (first.state, first.attempt) == ("COMPLETED", 4)
    history = (await house.client.get_workflow_handle(str(run_id)).fetch_history()).to_json()
    async with house.db.transaction() as conn:
        tables = await (
            await conn.execute("select table_name from information_schema.tables where table_schema = 'agent_ops'")
        ).fetchall()
        for (table,) in tables:
            found = await (
                await conn.execute(f'select count(*) from agent_ops."{table}" t where t::text like %s', (f"%{KEY}%",))
            ).fetchone()
            assert found == (0,), table
    assert KEY not in history


async def test_a_model_that_never_answers_fails_its_node(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-18. A time-out is an attempt; after the last the run says why it failed."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAiServer(lambda _: hangs()) as server:
        models = ModelSettings(model="openai:any-model", base_url=server.url, timeout_s=0.3)
        house.settings = replace(house.settings, models=models)
        services = Services(house.db, house.app, models_of(house.app, house.settings), house.settings)
        async with make_worker(house.client, services, house.settings):
            run_id = await house.start(APPLICATION)
            row = await house.reaches(run_id, "FAILED", deadline_s=60)
    assert "0.3 s" in str(row.failure)
    [step] = await house.steps(run_id)
    assert (step.state, step.attempt) == ("FAILED", 4)
