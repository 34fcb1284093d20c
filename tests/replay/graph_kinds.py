"""Kinds of runs whose graphs have branches, items, sub-runs, waits and loops. `kinds` keeps them with the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

from casework import ids
from casework.agents import tool
from casework.app import App
from casework.durable.connection import connect
from casework.durable.contracts import CancelRequest, Decision
from casework.errors import RetryableError, ToldError
from casework.store import reviews
from casework.store.rows import ReviewRow
from tests.integration.durable.apps import asking, errand, gated
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.parts import early
from tests.integration.durable.test_waits import send as signal
from tests.integration.durable.test_waits import told, waiting, waits
from tests.replay.replaying import sealed

HEAD = "apiVersion: casework.dev/v1alpha1\nkind: AiWorkflow\nmetadata: {name: kept}\nspec:\n"
BRANCHES = """  initialNode: gather
  nodes:
    - id: gather
      type: PARALLEL
      outputKey: found
      branches:
        - {id: risk, type: HUMAN_APPROVAL, decisions: [{name: fine}, {name: bad}]}
        - {id: law, type: HUMAN_APPROVAL, decisions: [{name: fine}, {name: bad}]}
        - {id: twice, type: TOOL, tool: double, arguments: {n: "{{ input.n }}"}}
        - {id: later, type: WAIT, duration: 0.1}
"""
ITEMS = """  initialNode: each
  nodes:
    - id: each
      type: MAP
      items: input.numbers
      maxParallel: 2
      outputKey: doubled
      branches: [{id: one, type: TOOL, tool: double, arguments: {n: "{{ item }}"}}]
    - {id: sorry, type: WAIT, duration: 0.1}
  edges: [{from: each, to: sorry, onError: true}, {from: each, to: end}]
"""
HELD_ITEMS = """  initialNode: each
  nodes:
    - id: each
      type: MAP
      items: input.numbers
      outputKey: held
      branches: [{id: one, type: WAIT, signal: "go"}]
"""
LOOP = """  initialNode: first
  nodes:
    - {id: first, type: TOOL, tool: double, arguments: {n: "{{ input.n }}"}, outputKey: count}
    - {id: enough, type: CONDITION, expression: "count >= 8"}
    - {id: again, type: TOOL, tool: double, arguments: {n: "{{ count }}"}, outputKey: count}
  edges:
    - {from: first, to: enough}
    - {from: again, to: enough}
    - {from: enough, to: again, condition: "false"}
    - {from: enough, to: end, condition: "true"}
"""
PARENT = """  initialNode: child
  nodes:
    - {id: child, type: SUBWORKFLOW, workflowRef: small, arguments: {n: "{{ input.n }}"}, outputKey: given}
---
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: small}
spec:
  initialNode: double
  nodes:
    - {id: double, type: TOOL, tool: double, arguments: {n: "{{ input.n }}"}, outputKey: twice}
    - {id: hold, type: WAIT, signal: go}
  edges: [{from: double, to: hold}]
"""


@tool(effects=False)
def double(n: int) -> int:
    """Twice as much; nothing that is below nothing."""
    if n < 0:
        raise ToldError(f"{n} is below nothing")
    return 2 * n


def kept(folder: Path, spec: str) -> App:
    """An App with the workflow `kept`."""
    file = folder / "kept.yaml"
    file.write_text(HEAD + spec)
    return App(tools=[double], manifests=[file])


async def questions_in_branches(house: House, folder: Path) -> UUID:
    """Two questions beside a tool and a timer, answered in the other order."""
    async with house.with_app(kept(folder, BRANCHES)) as busy:
        run_id = await busy.start({"n": 2}, "kept")

        async def both() -> list[ReviewRow] | None:
            async with busy.db.transaction() as conn:
                found = await reviews.of_run(conn, TENANT, run_id)
            return sorted(found, key=lambda each: each.node) if len(found) == 2 else None

        for number, review in enumerate(await eventually(both, "both are asked")):
            made = Decision(str(review.review_id), f"d{number}", "fine", "", "rita")
            await busy.runs.decide(str(run_id), made)
        await busy.reaches(run_id, "COMPLETED")
    return run_id


async def an_item_each(house: House, folder: Path) -> UUID:
    """A MAP over more items than may run at once."""
    async with house.with_app(kept(folder, ITEMS)) as busy:
        run_id = await busy.start({"numbers": [1, 2, 3]}, "kept")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


async def an_item_that_fails(house: House, folder: Path) -> UUID:
    """A MAP whose failure an error edge catches."""
    async with house.with_app(kept(folder, ITEMS)) as busy:
        run_id = await busy.start({"numbers": [1, -2, 3]}, "kept")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


async def cancelled_in_its_items(house: House, folder: Path) -> UUID:
    async with house.with_app(kept(folder, HELD_ITEMS)) as busy:
        run_id = await busy.start({"numbers": [1, 2]}, "kept")
        await waits(busy, run_id, "each.1/one.2")
        await busy.runs.cancel(str(run_id), CancelRequest("olga", "enough"))
        await busy.reaches(run_id, "CANCELLED")
    return run_id


async def waited_for_time_and_signals(house: House, folder: Path) -> UUID:
    """Time alone, a signal alone, a signal before its time is up, and time that is up before a signal."""
    app = waiting(
        folder,
        "type: WAIT, duration: 0.1",
        "type: WAIT, signal: go",
        "type: WAIT, signal: go, duration: PT1H",
        "type: WAIT, signal: never, duration: 0.1",
    )
    async with house.with_app(app) as busy:
        run_id = await busy.start({}, "waiting")
        for number in (1, 2):
            await waits(busy, run_id, f"n{number}.1")
            await signal(busy, run_id, "go", number, f"s{number}")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


async def looped_through_a_condition(house: House, folder: Path) -> UUID:
    """Tool and condition, until it is enough."""
    async with house.with_app(kept(folder, LOOP)) as busy:
        run_id = await busy.start({"n": 1}, "kept")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


async def looped_in_segments(house: House, folder: Path) -> UUID:
    """The same, now that chains of quick nodes share an activity; one call fails, and its node goes alone."""
    failed: list[int] = []

    @tool(effects=False)
    def double(n: int) -> int:
        """Twice as much."""
        if n == 4 and not failed:
            failed.append(n)
            raise RetryableError("not now")
        return 2 * n

    app = kept(folder, LOOP)
    async with house.with_app(App(tools=[double], manifests=app.manifests, scripts=app.scripts)) as busy:
        run_id = await busy.start({"n": 1}, "kept")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


async def a_run_with_a_sub_run(house: House, folder: Path) -> UUID:
    """The parent."""
    return await _parent(house, folder)


async def a_sub_run(house: House, folder: Path) -> UUID:
    """The child."""
    return ids.sub_run_id(await _parent(house, folder), "child.1")


async def _parent(house: House, folder: Path) -> UUID:
    async with house.with_app(kept(folder, PARENT)) as busy:
        run_id = await busy.start({"n": 3}, "kept")
        child = ids.sub_run_id(run_id, "child.1")
        await waits(busy, child, "hold.1")
        await signal(busy, child, "go")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


async def rolled_over_with_a_question_open(house: House, folder: Path) -> UUID:
    """What people send fills the history while nobody decides; the question stays the same in the next part."""
    async with early(house, 40).with_app(gated(folder)) as busy:
        run_id = await busy.start({"weight": 5}, "gated")
        review = str((await busy.review_at(run_id, "first")).review_id)
        number = 0
        while not await told(busy, run_id, "agent.run_rolled_over"):
            made = Decision(review, f"d{number}", "nonsense", "", "rita")
            await busy.runs.decide_and_confirm(str(run_id), made, 20)
            number += 1
        await busy.decide(run_id, "approve")
        await busy.review_at(run_id, "second")
        await busy.decide(run_id, "approve")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


async def encrypted_with_large_values_beside_it(house: House, folder: Path) -> UUID:
    """All values are encrypted, and the large ones are not in the history."""
    return await _large_values(house, folder, encrypted=True)


async def large_values_beside_it(house: House, folder: Path) -> UUID:
    return await _large_values(house, folder, encrypted=False)


async def _large_values(house: House, folder: Path, *, encrypted: bool) -> UUID:
    @tool(effects=False)
    def report() -> str:
        """A page."""
        return "a line of the report\n" * 150

    settings = replace(house.settings, histories=sealed(folder / "blobs", encrypted=encrypted))
    other = replace(house, settings=settings, client=await connect(settings))
    async with other.with_app(errand(folder, [report], asking([("report", {})]))) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.decide(run_id, "approve")
        await busy.client.get_workflow_handle(str(run_id)).result()
    return run_id


ALL = (
    questions_in_branches,
    an_item_each,
    an_item_that_fails,
    cancelled_in_its_items,
    waited_for_time_and_signals,
    looped_through_a_condition,
    looped_in_segments,
    a_run_with_a_sub_run,
    a_sub_run,
    rolled_over_with_a_question_open,
    encrypted_with_large_values_beside_it,
    large_values_beside_it,
)
