"""The random trees of the unit tests, durably: the same plans end the same way under the engine as under plain asyncio.

What `asyncio.sleep(0)` orders is the same in both, so even a tree that ends half of itself on the way ends the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from temporalio.client import WorkflowFailureError
from temporalio.worker import Replayer

from casework.agents import ModelAnswer, ModelRequest
from casework.app import App
from casework.durable.converter import DATA_CONVERTER
from casework.durable.trees import TreePlaces
from casework.durable.worker import WORKFLOWS, workflow_runner
from casework.tasktree import NodeFailedError, NodeTerminatedError
from casework.trees import local_context
from tests.integration.durable.conftest import House
from tests.integration.durable.planned_trees import planned
from tests.integration.durable.tree_notes import SEEN
from tests.unit.tasktree.planned import Plan
from tests.unit.tasktree.test_tree_properties import plans, schedules

EXAMPLES = 12
Ended = list[tuple[str, str, Any]]


def made_up(**what: bool) -> list[dict[str, Any]]:
    """Plans and schedules that are made up, the same in every run of the tests, as they go into a run's input."""
    found: list[dict[str, Any]] = []

    @settings(
        max_examples=EXAMPLES, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )  # fmt: skip
    @given(st.lists(plans(**what), min_size=1, max_size=3), schedules)
    def make(made: list[Plan], schedule: list[int]) -> None:
        found.append({"plans": [plan.to_plain() for plan in made], "schedule": schedule})

    make()
    assert len(found) >= EXAMPLES // 2
    return found


def nods(_: ModelRequest) -> ModelAnswer:
    return ModelAnswer(text="yes")


def ended(snapshot: list[dict[str, Any]]) -> Ended:
    """How each node ended, but for the times."""
    return [(entry["step"], entry["state"], entry["error"]) for entry in snapshot]


async def plainly(tree_input: dict[str, Any]) -> Ended:
    ctx = local_context({**tree_input, "id": (key := str(uuid4()))}, {"ada": nods})
    with contextlib.suppress(NodeFailedError, NodeTerminatedError, asyncio.CancelledError):
        await planned.run(ctx, on_callback_error=lambda *_: None)
    return ended(SEEN.pop(key))


async def durably(house: House, tree_input: dict[str, Any]) -> Ended:
    run_id = await house.start({**tree_input, "id": (key := str(uuid4()))}, "planned")
    handle = house.client.get_workflow_handle(str(run_id))
    with contextlib.suppress(WorkflowFailureError):
        await handle.result()
    made = ended(SEEN.pop(key))
    replayer = Replayer(
        workflows=WORKFLOWS,
        data_converter=DATA_CONVERTER,
        workflow_runner=workflow_runner(),
        interceptors=[TreePlaces([planned])],
    )
    await replayer.replay_workflow(await handle.fetch_history())
    assert ended(SEEN.pop(key)) == made, "a replay ends as the run did"
    return made


@pytest.mark.parametrize(
    "what",
    [
        {"failing": True},
        {"failing": True, "ending": True, "isolating": True, "reacting": True},
        {"failing": False, "reacting": True, "asks": True},
    ],
    ids=["failing", "ending", "asking"],
)
async def test_random_trees_run_durably_as_they_run_plainly(house: House, what: dict[str, bool]) -> None:
    """TT-2, TT-3, DA-16. The same plans give the same paths, states and errors, and their histories replay.

    Where nodes ask a model, the order in which they go on is the engine's, and still nothing of that differs.
    """
    asks = what.pop("asks", False)
    async with house.with_app(App(trees=[planned], scripts={"nods": nods})) as busy:
        for tree_input in made_up(**what):
            given_to_both = {**tree_input, "asks": asks}
            assert await durably(busy, given_to_both) == await plainly(given_to_both)
