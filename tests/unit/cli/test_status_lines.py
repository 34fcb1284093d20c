"""What `casework status` says of what it found."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from casework.cli import status_lines as lines
from casework.durable.builds import Build, Builds
from casework.durable.contracts import SweepReport
from casework.durable.in_hand import Workers
from casework.durable.last_sweep import LastSweep
from casework.store.health import HeldRun, Work

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOTHING = Work(0, 0, 0, 0, None, 0, None, 0, 0, 0)
SWEPT = LastSweep(scheduled=True, at=NOW - timedelta(seconds=40), report=SweepReport(seen=7))


@pytest.mark.parametrize(
    ("found", "state", "says"),
    [
        (SWEPT, "fine", "7 open runs seen"),
        (replace(SWEPT, at=NOW - timedelta(minutes=4)), "look", "none has ended since"),
        (replace(SWEPT, paused=True), "broken", "paused"),
        (replace(SWEPT, failure="no database"), "look", "no database"),
        (LastSweep(scheduled=True), "fine", "not ended yet"),
        (LastSweep(scheduled=False), "broken", "not scheduled"),
    ],
)
def test_a_sweep_that_is_late_paused_or_gone_is_told(found: LastSweep, state: str, says: str) -> None:
    """Lost runs are found by the sweep alone, so whether it comes is a line of its own."""
    line = lines.sweep(found, NOW)
    assert line.state == state
    assert says in line.text
    assert (line.remedy is None) == (state == "fine")


def test_failed_runs_and_steps_are_to_be_looked_at() -> None:
    """DA-32. They are over, so nothing is broken; but somebody must know."""
    assert lines.ended(NOTHING).state == lines.failures(NOTHING).state == "fine"
    ended = lines.ended(replace(NOTHING, runs_failed=2))
    assert (ended.state, ended.remedy) == ("look", "casework runs list --status failed")
    assert "2 runs" in ended.text
    assert "1 step " in lines.failures(replace(NOTHING, failed=1)).text


def test_workers_that_asked_lately_are_alive() -> None:
    """DA-32. Nobody on the queue is a fault; one that asked a minute ago is none."""
    assert lines.workers("q", Workers({"a": NOW - timedelta(seconds=60)}), NOW).state == "fine"
    gone = lines.workers("q", Workers({"a": NOW - timedelta(minutes=5)}), NOW)
    assert (gone.state, gone.remedy) == ("broken", "casework worker")
    assert lines.workers("q", None, NOW).state == "broken"


@pytest.mark.parametrize("reason", ["its workers are gone; nothing is lost.", "its workers are gone; nothing is lost"])
def test_a_line_that_goes_on_after_a_reason_has_one_full_stop(reason: str) -> None:
    held = lines.incidents([HeldRun(UUID(int=7), reason)] * 2, 2)
    waits = lines.faults([lines.Stuck("r-1", "look.1", reason, NOW)], 1)
    swept = lines.sweep(replace(SWEPT, failure=reason), NOW)
    for line in (held, waits, swept):
        assert line.text.endswith("nothing is lost.")
        assert ".." not in line.text
        assert ".;" not in line.text


OLD = Build("old", "needed", workers=1, open_runs=3, staying=2)
NEW = Build("new", "current", workers=1, open_runs=1, staying=0)


@pytest.mark.parametrize(
    ("found", "state", "says"),
    [
        (Builds("q", "new", [NEW, OLD], 0), "fine", "old needed (1 at work)"),
        (Builds("q", "new", [NEW, replace(OLD, workers=0)], 0), "broken", "2 with old"),
        (Builds("q", "new", [replace(NEW, workers=0), OLD], 0), "broken", "no worker is of build new"),
        (Builds("q", None, [replace(NEW, state="new")], 0), "broken", "no build is current"),
        (Builds("q", None, [replace(NEW, state="new")], 1), "fine", "new new (1 at work)"),
    ],
)
def test_builds_that_nobody_works_for_are_told(found: Builds, state: str, says: str) -> None:
    """DA-32. Runs that wait for a worker of their build, or for any, wait for no person."""
    line = lines.builds(found)
    assert line.state == state
    assert says in line.text
    assert (line.remedy is None) == (state == "fine")
