"""Segments: chains of quick nodes in one activity. What a reader sees is what the ordinary walk leaves."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from temporalio.api.enums.v1 import EventType

from casework.agents.tools import Repeat
from casework.app import App
from casework.durable import contracts
from casework.durable.starting import start_of
from casework.durable.workflows.segments import MOST_VISITS
from casework.errors import RetryableError, ToldError
from casework.store import metrics, runs, workflows
from tests.integration.durable.chains import loop_app
from tests.integration.durable.conftest import TENANT, House

RESCUED = "- {from: second, to: go_on, onError: true}"


async def activities(house: House, run_id: UUID) -> list[str]:
    """The kinds of the activities of a run, in the order in which they were scheduled."""
    history = await house.client.get_workflow_handle(str(run_id)).fetch_history()
    kind = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    found = [event for event in history.events if event.event_type == kind]
    return [event.activity_task_scheduled_event_attributes.activity_type.name for event in found]


async def seen(house: House, run_id: UUID) -> dict[str, Any]:
    """All that a reader sees of a run, but for its id, its versions and times."""
    row = await house.run(run_id)
    async with house.db.transaction() as conn:
        context = await runs.context(conn, TENANT, run_id)
        figures = await metrics.of_run(conn, TENANT, run_id)
    events = [(e.path, e.kind, {**(e.data or {}), "version": 0}) for e in await house.events(run_id)]
    return {
        "run": (row.status, row.version, row.outcome, row.failure, row.current_node, row.loop_count, row.turn),
        "events": events,
        "steps": [
            (s.path, s.name, s.node, s.turn, s.state, s.attempt, s.arguments, s.hash, s.result, s.error)
            for s in sorted(await house.steps(run_id), key=lambda each: each.path)
        ],
        "context": sorted((each.key, each.path, each.version, str(each.value)) for each in context),
        "trace": await house.client.get_workflow_handle(str(run_id)).query(contracts.TRACE_QUERY),
        "metrics": replace(figures, latency_ms=0),
    }


async def both(house: House, folder: Path, act: Any, rounds: int, end: str, **graph: Any) -> tuple[Any, Any, UUID]:
    """What is seen of the same run with segments, and without them; and the id of the first."""
    found = []
    for number, quick in enumerate((True, False)):
        at = folder / str(number)
        at.mkdir()
        async with house.with_app(loop_app(at, act, **graph)) as busy:
            run_id = await started(busy, rounds) if quick else await started_plain(busy, rounds)
            await busy.reaches(run_id, end)
            found.append((await seen(busy, run_id), run_id, await activities(busy, run_id)))
    assert contracts.RUN_SEGMENT in found[0][2]
    assert contracts.RUN_SEGMENT not in found[1][2]
    return found[0][0], found[1][0], found[0][1]


async def started(house: House, rounds: int) -> UUID:
    return await house.start({"rounds": rounds}, "loop")


async def started_plain(house: House, rounds: int) -> UUID:
    """A run of the same workflow as a release without segments has pinned it."""
    pinned = replace(house.app.workflow("loop"), quick=())
    async with house.db.transaction() as conn:
        await workflows.publish(conn, TENANT, "loop", pinned.to_plain(), pinned.hash())
    return await started(house, rounds)


async def test_a_chain_is_one_activity_and_leaves_what_the_nodes_alone_leave(house: House, tmp_path: Path) -> None:
    """AW-11, AW-9. One activity for the whole loop; same events, rows, trace and figures as without."""
    with_segments, without, run_id = await both(house, tmp_path, lambda _name, _calls: None, 4, "COMPLETED")
    assert with_segments == without
    assert Counter(await activities(house, run_id)) == {contracts.RUN_SEGMENT: 1, contracts.PROJECT: 1}


async def test_a_long_chain_is_several_segments(house: House, tmp_path: Path) -> None:
    """AW-11. A segment is bounded, and the next one goes on where it stopped."""
    async with house.with_app(loop_app(tmp_path)) as busy:
        run_id = await started(busy, 150)
        row = await busy.reaches(run_id, "COMPLETED")
        assert row.loop_count == 3 * 150 + 1 > MOST_VISITS
        assert Counter(await activities(busy, run_id)) == {contracts.RUN_SEGMENT: 2, contracts.PROJECT: 1}
        steps = await busy.steps(run_id)
        assert {(step.state, step.attempt) for step in steps} == {("COMPLETED", 1)}
        assert len(steps) == 300


async def test_a_passing_failure_is_the_first_attempt_of_the_node_alone(house: House, tmp_path: Path) -> None:
    """AW-11, DA-24. The segment ends before the node that fails; the attempt there counts under its own policy."""

    def act(name: str, calls: int) -> None:
        if name == "second" and calls == 2:
            raise RetryableError("busy")

    with_segments, without, run_id = await both(house, tmp_path, act, 3, "COMPLETED")
    assert with_segments == without
    kinds = [kind for kind in await activities(house, run_id) if kind != contracts.PROJECT]
    assert kinds == [contracts.RUN_SEGMENT, contracts.CALL_TOOL, contracts.RUN_SEGMENT]
    assert [step.attempt for step in await house.steps(run_id)] == [1, 1, 1, 2, 1, 1]


async def test_a_tool_that_always_fails_has_no_attempt_more_than_alone(house: House, tmp_path: Path) -> None:
    """AW-11. Three attempts are three, wherever they are made; the edge for errors is followed as ever."""

    def act(name: str, calls: int) -> None:
        if name == "second" and 2 <= calls <= 4:
            raise RetryableError("busy")

    with_segments, without, _ = await both(house, tmp_path, act, 3, "COMPLETED", edges=RESCUED)
    assert with_segments == without


async def test_an_error_that_is_told_fails_the_node_and_is_told_once(house: House, tmp_path: Path) -> None:
    """AW-11, AW-8. A refusal is the node's failure, which an edge may catch; the tool is not asked again for it."""

    def act(name: str, calls: int) -> None:
        if name == "second" and calls == 2:
            raise ToldError("not today")

    with_segments, without, _ = await both(house, tmp_path, act, 3, "COMPLETED", edges=RESCUED)
    assert with_segments == without


async def test_a_tool_that_is_no_longer_quick_is_called_alone(house: House, tmp_path: Path) -> None:
    """AW-11. The worker's own tools count, whatever the bundle says of those it was applied with."""
    app = loop_app(tmp_path)
    second = next(tool for tool in app.tools if tool.name == "second")
    keyed = [replace(tool, repeat=Repeat.KEYED) if tool is second else tool for tool in app.tools]
    async with house.with_app(app) as busy:
        pass
    row = await busy.accept({"rounds": 2}, "loop", run_id=uuid4())
    async with busy.db.transaction() as conn:
        bundle = await workflows.get(conn, TENANT, "loop", row.workflow_version)
    assert bundle is not None
    assert bundle["quick"] == ["first", "second"]
    other = replace(busy, app=App(keyed, app.manifests))
    async with other.worker():
        await other.runs.start(start_of(row, bundle))
        await other.reaches(row.run_id, "COMPLETED")
    kinds = Counter(await activities(other, row.run_id))
    assert kinds[contracts.CALL_TOOL] == 2
    assert kinds[contracts.RUN_SEGMENT] >= 1
