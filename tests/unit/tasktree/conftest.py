"""What every test of the tree must leave behind: nothing."""

import asyncio
import gc
from typing import Any

import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick_collections() -> Any:
    """What the test tools hold is left out of the garbage collections below, which else take most of the time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
async def _no_noise() -> Any:
    """No test here leaves a task behind, or an exception that nobody retrieved."""
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))
    before = asyncio.all_tasks()
    yield
    left = [task for task in asyncio.all_tasks() if task not in before and task is not asyncio.current_task()]
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []
    assert left == []
