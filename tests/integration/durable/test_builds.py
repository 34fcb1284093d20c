"""Workers of two builds side by side on one task queue: open runs go on and end, new ones take the new build."""

from __future__ import annotations

from dataclasses import replace

import pytest

from casework.cli import status_lines as lines
from casework.durable import builds
from casework.errors import InputError, SettingsError
from casework.settings import TemporalSettings
from tests.integration.durable.building import (
    a_patched_worker,
    a_worker,
    becomes,
    builds_of,
    is_seen,
    make_current,
    of_build,
    patches_of,
    seen,
)
from tests.integration.durable.conftest import APPLICATION, House
from tests.replay.kept_trees import app as kept_trees


async def test_an_old_and_a_new_build_side_by_side_and_a_rollback(house: House) -> None:
    """DA-19, DA-47. Open runs of the old build end on the new one; when it is taken back, all but its own go on.

    A run that has passed a patch point of the new build cannot be read by the old one. It stays open, and goes on when
    the new build is current again.
    """
    async with a_worker(house, "old"):
        await make_current(house, "old")
        moved = await house.start(APPLICATION)
        await house.reaches(moved, "AWAITING_REVIEW")
        async with a_patched_worker(house, "new"):
            await is_seen(house, "new")
            before = await house.start(APPLICATION)
            await house.reaches(before, "AWAITING_REVIEW")
            await make_current(house, "new")
            after = await house.start(APPLICATION)
            await house.reaches(after, "AWAITING_REVIEW")
            await house.decide(moved, "approve")
            await house.reaches(moved, "COMPLETED")
            assert (await builds_of(house, moved), await patches_of(house, moved)) == (["old", "new"], 0)
            assert (await builds_of(house, after), await patches_of(house, after)) == (["new"], 1)
            drained = await becomes(house, "old", state="free", staying=0)
            assert drained.workers == 1

            await make_current(house, "old")
            await house.decide(before, "approve")
            await house.reaches(before, "COMPLETED")
            assert await builds_of(house, before) == ["old"]
            await house.decide(after, "approve")
            assert (await house.run(after)).status == "AWAITING_REVIEW"
            await make_current(house, "new")
            assert (await house.reaches(after, "COMPLETED")).outcome == "approved"
    assert await builds_of(house, after) == ["new"]


async def test_the_old_build_may_be_stopped_when_the_new_one_is_current(house: House) -> None:
    """DA-47. Runs that move on need the build that began them no more, whatever they wait for."""
    async with a_worker(house, "old"):
        await make_current(house, "old")
        run_id = await house.start(APPLICATION)
        await house.reaches(run_id, "AWAITING_REVIEW")
        async with a_patched_worker(house, "new"):
            await make_current(house, "new")
    await becomes(house, "old", state="free", staying=0)
    async with a_patched_worker(house, "new"):
        await house.decide(run_id, "more_info", "Is the delinquency settled?")
        await house.reaches(run_id, "AWAITING_REVIEW", turn=2)
        await house.decide(run_id, "approve")
        await house.reaches(run_id, "COMPLETED")
    assert await builds_of(house, run_id) == ["old", "new"]


async def test_runs_that_stay_end_on_the_build_that_began_them(house: House) -> None:
    """DA-19. With CASEWORK_WORKER_RUNS=stay a build drains, also where its workers were away for a while."""
    async with a_worker(house, "old", "stay"):
        await make_current(house, "old")
        run_id = await house.start(APPLICATION)
        await house.reaches(run_id, "AWAITING_REVIEW")
    async with a_worker(house, "new", "stay"):
        await make_current(house, "new")
        async with a_worker(house, "old", "stay"):
            await becomes(house, "old", state="needed", staying=1)
            await house.decide(run_id, "approve")
            await house.reaches(run_id, "COMPLETED")
            await becomes(house, "old", state="free", staying=0)
    assert await builds_of(house, run_id) == ["old"]


async def test_a_free_tree_stays_where_graphs_move_on(house: House) -> None:
    """DA-19. Its code is its user's: no other build takes it up in the middle."""
    async with house.with_app(kept_trees) as plain, a_worker(plain, "old"):
        await make_current(plain, "old")
        run_id = await plain.start({}, "kept-talk")
        await plain.reaches(run_id, "RUNNING")
        async with a_worker(plain, "new"):
            await make_current(plain, "new")
            await plain.reaches(run_id, "COMPLETED")
            later = await plain.start({}, "kept-talk")
            await plain.reaches(later, "COMPLETED")
    assert (await builds_of(plain, run_id), await builds_of(plain, later)) == (["old"], ["new"])


async def test_builds_begin_and_end_while_runs_are_open(house: House) -> None:
    """DA-47. Runs of workers without a build move on to the first build, and back when builds are given up."""
    async with a_worker(house, None):
        run_id = await house.start(APPLICATION)
        await house.reaches(run_id, "AWAITING_REVIEW")
        assert not (await seen(house)).used
        async with a_worker(house, "first"):
            await is_seen(house, "first")
            assert lines.builds(await seen(house)).state == "fine"
            await make_current(house, "first")
            await house.decide(run_id, "more_info", "Is the delinquency settled?")
            await house.reaches(run_id, "AWAITING_REVIEW", turn=2)
            await make_current(house, None)
        await house.decide(run_id, "approve")
        await house.reaches(run_id, "COMPLETED")
    assert await builds_of(house, run_id) == ["", "first", ""]


async def test_a_build_that_nobody_made_current_is_told(house: House) -> None:
    """DA-32. Workers of builds get nothing until one is current; that is no silence."""
    async with a_worker(house, "first"):
        await is_seen(house, "first")
        line = lines.builds(await seen(house))
        assert line.state == "broken"
        assert "no build is current" in line.text
        with pytest.raises(InputError, match="No worker of build 'second' has been seen"):
            await builds.make_current(house.client, house.settings.temporal.task_queue, "second")
        await make_current(house, "first")
        assert lines.builds(await seen(house)).state == "fine"


async def test_names_that_the_engine_cannot_use_are_refused(house: House) -> None:
    """DA-47. A build or a queue whose name the engine would not take is told at the start of the worker."""
    with pytest.raises(SettingsError, match=r"CASEWORK_WORKER_BUILD is 'a:b'"):
        a_worker(house, "a:b")
    for name in ("my.queue", "o'queue", "my:queue"):
        temporal = TemporalSettings(address=house.settings.temporal.address, task_queue=name)
        dotted = replace(house, settings=replace(house.settings, temporal=temporal))
        with pytest.raises(SettingsError, match="CASEWORK_TASK_QUEUE is "):
            a_worker(dotted, "a")
    assert of_build(dotted, None).worker() is not None
