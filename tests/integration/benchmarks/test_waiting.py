"""A small crowd that waits for review on a whole local stack, restarted from its data."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.support.crowd import Crowd


@pytest.mark.timeout(600)
async def test_those_who_wait_wait_on_when_every_process_was_restarted(tmp_path: Path) -> None:
    """DA-38. API, worker, Temporal and PostgreSQL are stopped and started again; then one of the runs is approved."""
    made = Crowd(tmp_path / "stack")
    try:
        await made.start()
        assert await made.grow(5) == 5
        await made.stop()
        await made.start()

        assert await made.approve_one() == "COMPLETED approved"
        assert made.waiting() == 4
    finally:
        await made.stop()
