"""What a tool logs can be found by its run and path."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from casework.agents import tool
from casework.durable.logs import WhereFilter
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import House


async def test_a_line_of_a_tool_says_run_path_and_attempt(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A tool logs as any code does, in its own thread; the line ends with where it belongs."""

    @tool(effects=False)
    def look() -> str:
        """Look."""
        logging.getLogger("a.tool").warning("looked at %d", 7)
        return "seen"

    caplog.handler.addFilter(WhereFilter())
    other = replace(house, app=errand(tmp_path, [look], asking([("look", {})])))
    await other.open()
    async with other.worker():
        run_id = await other.start({}, "errand")
        await other.reaches(run_id, "AWAITING_REVIEW")
    [line] = [record for record in caplog.records if record.name == "a.tool"]
    assert line.getMessage() == f"looked at 7 (run {run_id}: act.1/exchange.1/look.1, attempt 1)"


def test_a_line_outside_of_any_run_stays_as_it_is() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "ready on %s", ("casework",), None)
    assert WhereFilter().filter(record)
    assert record.getMessage() == "ready on casework"
