"""How a test asks for the end of a run: whatever it is, in seconds. A hang is a failure that shows the tree."""

import asyncio
from typing import Any

import pytest

from casework.tasktree import Commander, Job

LONG_ENOUGH = 10.0
"""Seconds. What is waited for takes milliseconds; a machine under load takes more."""


async def outcome(commander: Commander, *jobs: Job) -> Any:
    """What `run` returns, or the error that it raises, interrupts among them."""
    given: Any = None
    async with asyncio.timeout(LONG_ENOUGH) as limit:
        try:
            given = await commander.run(*jobs)
        except BaseException as error:  # noqa: BLE001 - every end is an answer here
            given = error
    if limit.expired():
        pytest.fail(f"the run hangs:\n{commander.render()}")
    return given


def quiet() -> Commander:
    """A Commander that keeps errors of callbacks to itself."""
    return Commander(on_callback_error=lambda *_: None)
