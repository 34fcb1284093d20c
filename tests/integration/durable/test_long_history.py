"""Histories of long runs grow by the same amount with each exchange, and a worker that never saw the run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.durable.conftest import House
from tests.integration.durable.long_case import RESULT_BYTES, long_app, weights
from tests.integration.durable.parts import parts_of
from tests.replay.replaying import replayer

EXCHANGES = 500
"""That read a record; one more gives the answer."""


@pytest.mark.timeout(900)  # some 50 s on a quiet machine
async def test_history_grows_linearly(house: House, tmp_path: Path) -> None:
    """DA-20, DA-21. 500 exchanges with results of 5 KB complete; at 500 they have at most 1.2 times the bytes each that
    they have at 50, over all parts of the run.

    It is approved when the worker that walked it is gone, so the next one rebuilds it from its last history.
    """
    app = long_app(tmp_path, EXCHANGES + 1)
    async with house.with_app(app) as working:
        run = await working.start({}, "errand")
        await working.reaches(run, "AWAITING_REVIEW", deadline_s=800)
    async with house.with_app(app) as working:
        await working.decide(run, "approve")
        ended = await working.reaches(run, "COMPLETED", deadline_s=90)

    histories = await parts_of(house.client, run)
    assert len(histories) > 1
    assert all(len(history.events) < 4_100 for history in histories)
    bytes_until = weights([event for history in histories for event in history.events])  # the end of each exchange
    at_50, at_500 = bytes_until[50] / 50, bytes_until[500] / 500
    assert at_500 <= 1.2 * at_50
    for history in histories:
        await replayer().replay_workflow(history)
    assert at_500 < RESULT_BYTES  # results are no part of the history
    assert ended.outcome == "approved"
    assert ended.recommendation == f"{EXCHANGES} records read"
    results = [step for step in await house.steps(run) if step.name == "record"]
    assert len(results) == EXCHANGES
    assert all(len(str(step.result["text"])) == RESULT_BYTES for step in results)
