"""The clock of a Monitor on the engine, with time that is skipped: no test waits for it."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.testing import WorkflowEnvironment

from casework.durable import monitor_contracts as contracts
from casework.durable.monitor_contracts import Asked, MonitorEnd, MonitorStanding, MonitorStart
from casework.process.schedules import HALF_DAY_RUN
from tests.integration.durable.processes.clocked import MS, Played, in_force, started, working

MINUTE = timedelta(minutes=1)
START = MonitorStart("default", "intake")


async def test_it_polls_every_three_minutes_and_ends_after_eight_hours(time_skipping_env: WorkflowEnvironment) -> None:
    """BP-15: sleep PT1M, poll PT3M, stop after PT8H or 500 polls, whichever first: the time, behind 160 polls."""
    played = Played(in_force(3 * MINUTE, MINUTE, max_running_ms=8 * 3600 * 1000, max_loops=500))
    async with working(time_skipping_env, played):
        end = await (await started(time_skipping_env, START)).result()
    assert (end.stopped, end.loops, end.claimed) == ("by_time", 160, 320)
    first, last = played.polled_at[0], played.polled_at[-1]
    apart = [later - sooner for sooner, later in itertools.pairwise(played.polled_at)]
    assert {round(each / MINUTE, 1) for each in apart} == {3.0}
    assert len(played.looks) == end.rounds == 481
    assert timedelta(hours=8) <= played.told[-1].at - first < timedelta(hours=8, seconds=30)
    assert last - first < timedelta(hours=8)


async def test_it_ends_by_loops_where_those_come_first(time_skipping_env: WorkflowEnvironment) -> None:
    """BP-14: whichever comes first stops it; BP-12: the one that stops emits no loop record."""
    played = Played(in_force(3 * MINUTE, MINUTE, max_running_ms=8 * 3600 * 1000, max_loops=5))
    async with working(time_skipping_env, played):
        end = await (await started(time_skipping_env, START)).result()
    assert (end.stopped, end.loops) == ("by_loops", 5)
    assert [each.stopped for each in played.told] == [None] * 4 + ["by_loops"]


async def test_a_half_day_leaves_no_gap_over_a_minute(time_skipping_env: WorkflowEnvironment) -> None:
    """BP-30: with `maxRunningTime` of 11 h 59 min it ends to the second, one minute before the next start."""
    played = Played(in_force(45 * MINUTE, 45 * MINUTE, max_running_ms=HALF_DAY_RUN // MS))
    async with working(time_skipping_env, played):
        end = await (await started(time_skipping_env, START)).result()
    assert (end.stopped, end.loops) == ("by_time", 16)
    ran = played.told[-1].at - played.polled_at[0]
    assert HALF_DAY_RUN <= ran < HALF_DAY_RUN + timedelta(seconds=10)


async def test_a_wake_without_a_poll_is_no_loop_and_tells_nothing(time_skipping_env: WorkflowEnvironment) -> None:
    """BP-15, BP-16: between polls it only looks at its row; set there, the flag stops it at its next wake."""
    played = Played(in_force(60 * MINUTE, MINUTE), stopped=lambda look: look == 11)
    async with working(time_skipping_env, played):
        end = await (await started(time_skipping_env, START)).result()
    assert end == MonitorEnd("by_row", loops=1, rounds=11, claimed=2)
    assert [(each.round, each.stopped) for each in played.told] == [(1, None), (11, "by_row")]


async def test_it_runs_once_where_no_rule_takes_the_loop_record_back(time_skipping_env: WorkflowEnvironment) -> None:
    """BP-12: without the refusal at the start, the Monitor of such a process runs once."""
    played = Played(in_force(MINUTE, MINUTE), to="check")
    async with working(time_skipping_env, played):
        end = await (await started(time_skipping_env, START)).result()
    assert end == MonitorEnd("by_rule", loops=1, rounds=1, claimed=2)


async def test_its_history_rolls_over_and_its_life_goes_on(time_skipping_env: WorkflowEnvironment) -> None:
    """A Monitor without end does not outgrow the engine: loops, rounds, paths and life go over to the next part."""
    played = Played(in_force(MINUTE, MINUTE, max_loops=40))
    async with working(time_skipping_env, played):
        handle = await started(time_skipping_env, MonitorStart("default", "intake", roll_over_events=100))
        end = await handle.result()
        last = await time_skipping_env.client.get_workflow_handle(handle.id).describe()
    assert end == MonitorEnd("by_loops", loops=40, rounds=40, claimed=80)
    assert last.run_id != handle.first_execution_run_id
    assert [each.poll for each in played.polls] == list(range(1, 41))
    assert {each.life for each in played.polls} == {handle.first_execution_run_id}
    assert [each.starts for each in played.looks] == [True] + [False] * 39


async def test_signals_wake_it(time_skipping_env: WorkflowEnvironment) -> None:
    """BP-16: it is polled and stopped at once, however long it would sleep; who stopped it is told."""
    played = Played(in_force(timedelta(days=365), timedelta(days=30)))
    async with working(time_skipping_env, played):
        with time_skipping_env.auto_time_skipping_disabled():
            handle = await started(time_skipping_env, START)
            await handle.signal(contracts.POLL_SIGNAL, Asked("ann"))
            await handle.signal(contracts.STOP_SIGNAL, Asked("bob"))
            end = await handle.result()
    assert end.stopped == "by_row"
    assert end.loops in (1, 2)  # the first poll may have been asked for already
    assert played.told[-1].stop == Asked("bob")


async def test_the_query_says_where_it_stands(time_skipping_env: WorkflowEnvironment) -> None:
    played = Played(in_force(MINUTE, MINUTE, max_loops=3))
    async with working(time_skipping_env, played):
        handle = await started(time_skipping_env, START)
        await handle.result()
        standing = await handle.query(contracts.MONITOR_QUERY, result_type=MonitorStanding)
    assert (standing.state.completed_loops, standing.rounds, standing.next_wake) == (3, 3, None)
    assert standing.in_force == played.in_force


async def test_it_waits_for_a_database_that_is_away(time_skipping_env: WorkflowEnvironment) -> None:
    played = Played(in_force(MINUTE, MINUTE, max_loops=1), away=20)
    async with working(time_skipping_env, played):
        end = await (await started(time_skipping_env, START)).result()
    assert end.loops == 1


async def test_a_cancelled_monitor_tells_that_it_was(time_skipping_env: WorkflowEnvironment) -> None:
    played = Played(in_force(timedelta(days=365), timedelta(days=30)))
    async with working(time_skipping_env, played):
        with time_skipping_env.auto_time_skipping_disabled():
            handle = await started(time_skipping_env, START)
            await handle.signal(contracts.POLL_SIGNAL, Asked("ann"))
            await handle.cancel()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
    assert played.told[-1].stopped == "cancelled"
