"""Model calls that are lost or fail: how often the provider is asked, and which tokens are counted."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from casework.durable.activities.services import Services
from casework.durable.worker import make_worker, models_of
from casework.examples.loan_underwriting.script import underwriter
from casework.settings import DatabaseSettings, ModelSettings, Secret
from casework.store import runs
from casework.testing.openai_server import OpenAiServer, Reply, hangs, says, scripted
from tests.integration.durable.conftest import APPLICATION, TENANT, House, eventually

APP = "casework.examples.loan_underwriting:app"
KEY = "sk-not-a-key-of-anybody"


class HangsOnce:
    """The shipped underwriter, who never answers one request, the first or a later one."""

    def __init__(self, request: int = 1) -> None:
        self.asked = 0
        self._request = request
        self._well = scripted(underwriter)

    def __call__(self, body: Any) -> Reply:
        self.asked += 1
        return hangs() if self.asked == self._request else self._well(body)


def at_provider(house: House, server: OpenAiServer) -> House:
    """The house with every agent at that server."""
    models = ModelSettings(model="openai:any-model", base_url=server.url)
    database = DatabaseSettings(url=Secret(house.dsn))
    return replace(house, settings=replace(house.settings, models=models, database=database))


@contextmanager
def worker_process(house: House, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`casework worker` for the house, as a process of its own."""
    words = [sys.executable, "-m", "casework", "worker", "--app", APP]
    with log.open("wb") as out:
        made = subprocess.Popen(words, env={**os.environ, **house.settings.as_environ()}, stdout=out, stderr=out)
        try:
            yield made
        finally:
            made.kill()
            made.wait()


async def test_another_worker_makes_the_call_of_one_that_was_killed(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-18. A worker takes a model call and is killed; another asks again, and only for that call: one request more.

    The lost attempt is told as such. What it may have used at the provider nobody knows, so it counts no tokens.
    """
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    script = HangsOnce()
    with OpenAiServer(script) as server:
        there = at_provider(house, server)
        run_id = await there.start(APPLICATION)
        with worker_process(there, tmp_path / "worker.log") as process:

            async def asked() -> bool:
                assert process.poll() is None, (tmp_path / "worker.log").read_text()
                return script.asked == 1

            await eventually(asked, "the provider is asked", 90)
            process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(process.wait)
        services = Services(there.db, there.app, models_of(there.app, there.settings), there.settings)
        async with make_worker(there.client, services, there.settings):
            row = await there.reaches(run_id, "AWAITING_REVIEW", deadline_s=90)
        answers = [step for step in await there.steps(run_id) if step.kind == "model"]
        assert len(server.requests) == len(answers) + 1
    async with there.db.transaction() as conn:
        attempts = await runs.attempts(conn, TENANT, run_id)
    of_first = [each for each in attempts if each.step_id == answers[0].step_id]
    assert [(each.attempt, each.outcome) for each in of_first] == [(1, "LOST"), (2, "COMPLETED")]
    assert (of_first[0].tokens_in, of_first[0].tokens_out) == (0, 0)
    assert row.tokens_in == sum(each.tokens_in for each in attempts) > 0
    assert {step.attempt for step in answers[1:]} == {1}


async def test_answers_that_cannot_be_used_count_their_tokens(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-18. Answers that do not hold to the schema fail the attempt; what they have used is on it and on the run."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAiServer(lambda _: says("I would rather not say.", tokens=(10, 5))) as server:
        there = at_provider(house, server)
        services = Services(there.db, there.app, models_of(there.app, there.settings), there.settings)
        async with make_worker(there.client, services, there.settings):
            run_id = await there.start(APPLICATION)
            row = await there.reaches(run_id, "FAILED", deadline_s=60)
        requests = len(server.requests)
    async with there.db.transaction() as conn:
        [attempt] = await runs.attempts(conn, TENANT, run_id)
    assert (attempt.outcome, attempt.tokens_in, attempt.tokens_out) == ("FAILED", 10 * requests, 5 * requests)
    assert requests == 3
    assert (row.tokens_in, row.tokens_out) == (30, 15)
