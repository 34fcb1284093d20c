"""Expressions that would join more text than memory holds, in a run."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from casework.durable.publish import publish
from casework.settings import DatabaseSettings, Secret
from tests.integration.durable.conftest import House
from tests.integration.durable.worker_processes import worker_process

APP = "tests.integration.durable.joining_app:app"
WORDS = ["x" * 400] * 400
"""160 KB of input, of which three `map` would make 77 GB."""
MOST_MB = 700
"""What a worker may have held at most; it has some 250 after its start."""


def peak_mb(pid: int) -> float:
    """The most memory that a process has held at one time."""
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[0]) / 1024


async def test_a_run_that_would_join_too_much_fails_and_its_worker_works_on(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AW-10, DA-16. The run ends FAILED and says why; the worker's memory stays bounded, and the next run completes."""
    monkeypatch.setenv("CASEWORK_TEST_FOLDER", str(tmp_path))
    here = replace(house, app=importlib.import_module("tests.integration.durable.joining_app").app)
    await publish(here.app, here.db)
    settings = replace(here.settings, database=DatabaseSettings(url=Secret(here.dsn)))
    with worker_process(settings, APP, tmp_path) as worker:
        greedy = await here.start({"words": WORDS}, "joining")
        row = await here.reaches(greedy, "FAILED")
        assert "could join texts of more than 64,000,000 characters over lists of 400" in str(row.failure)
        modest = await here.start({"words": ["a", "b"]}, "joining")
        await here.reaches(modest, "COMPLETED")
        assert worker.poll() is None
        assert peak_mb(worker.pid) < MOST_MB
