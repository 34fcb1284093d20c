"""An engine whose network swallows everything: it takes connections and never answers. Every wait ends all the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from uuid import uuid4

import pytest

from casework.durable import client as durable_client
from casework.durable.client import RunClient
from casework.durable.contracts import CancelRequest, Decision
from casework.durable.last_sweep import last_sweep
from casework.errors import UnreachableError
from casework.settings import Settings, TemporalSettings

RUN = str(uuid4())


@pytest.fixture
async def away() -> AsyncIterator[RunClient]:
    """A client of an engine that never says a word; it connects at its first call."""
    kept: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: kept.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield await RunClient.open(Settings(temporal=TemporalSettings(address=f"127.0.0.1:{port}")))
    finally:
        server.close()
        for writer in kept:
            writer.close()


async def test_what_the_engine_has_in_hand_is_asked_for_two_seconds(away: RunClient) -> None:
    """DA-32. A reader of many runs waits no longer than one of a single run, and goes on with what the rows say."""
    began = time.monotonic()
    answers = await asyncio.gather(*(away.in_hand(RUN) for _ in range(20)), away.workers())
    assert time.monotonic() - began < 5
    assert answers == [None] * 21


async def test_the_last_sweep_is_asked_for_a_few_seconds(away: RunClient) -> None:
    began = time.monotonic()
    with pytest.raises(UnreachableError, match="no answer in time"):
        await last_sweep(away._client, away.task_queue)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("what", ["check", "cancel", "decide", "tell_again", "standing", "confirm"])
async def test_a_call_ends_in_its_time_and_says_what_is_away(
    away: RunClient, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """DA-18. The first call, which connects, is bounded as every other."""
    monkeypatch.setattr(durable_client, "CALL_TIMEOUT", timedelta(seconds=1))
    decision = Decision(str(uuid4()), str(uuid4()), "approve", "", "rita")
    calls: dict[str, Awaitable[object]] = {
        "check": away.check(),
        "cancel": away.cancel(RUN, CancelRequest("", "rita")),
        "decide": away.decide(RUN, decision),
        "tell_again": away.tell_again(RUN),
        "standing": away.standing(RUN),
        "confirm": away.decide_and_confirm(RUN, decision, 0.5),
    }
    chosen = calls.pop(what)
    for other in calls.values():
        other.close()  # type: ignore[attr-defined]  # a coroutine
    began = time.monotonic()
    with pytest.raises(UnreachableError, match="no answer within 1 s"):
        await chosen
    assert time.monotonic() - began < 5
