"""What a drill counts as a broken promise."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from casework import ids
from casework.drills.destination import Counts
from casework.drills.ground import Ground
from casework.drills.promises import Report
from casework.drills.tally import RunTally, instant_of, promise_calls, tally_of
from casework.durable.activities.faults import Passed
from casework.examples.loan_underwriting.rehearsal import REHEARSAL

RUN = "0c2f6e2e-53c8-4e6e-9d0e-1d5b1c1f7a10"
PATH = "underwrite.1/exchange.1/credit_check.1"
KEY = str(ids.step_id(UUID(RUN), PATH))
BEGUN = "2026-03-01T09:00:00+00:00"
COMMITTED = "2026-03-01T09:00:10+00:00"


def count(acts: tuple[float, ...], calls: int, effects: int, arrivals: tuple[float, ...] | None = None) -> RunTally:
    """One step, committed ten seconds after nine; `acts` and `arrivals` were so many seconds after nine."""
    ground: Any = Ground.__new__(Ground)  # what is counted needs the rehearsal alone, no server
    ground.rehearsal = REHEARSAL
    step = {
        "path": PATH,
        "kind": "tool",
        "name": "credit_check",
        "state": "COMPLETED",
        "attempts": [
            {"attempt": 1, "outcome": "LOST", "started_at": BEGUN, "ended_at": COMMITTED},
            {"attempt": 2, "outcome": "COMPLETED", "started_at": COMMITTED, "ended_at": COMMITTED},
        ],
    }
    run = {"run_id": RUN, "input": {"applicant_id": "APP-1001.x"}, "steps": [step], "evidence": {"credit_check": {}}}
    nine = instant_of(BEGUN)
    passed = [Passed("claimed", RUN, PATH, 1, nine + seconds) for seconds in acts]
    times = None if arrivals is None else {KEY: [nine + seconds for seconds in arrivals]}
    return tally_of(ground, run, Counts({KEY: calls}, {KEY: effects}, (), times), passed)


def test_a_repeat_in_flight_is_no_duplicate() -> None:
    """DA-26. A step in flight at a kill may act again: two calls under one key, one effect."""
    tally = count(acts=(1, 5), calls=2, effects=1)
    assert (tally.repeats, tally.duplicates, tally.called_again, tally.single) == (1, 0, 0, True)


def test_an_effect_twice_and_a_call_after_the_commit_are_found() -> None:
    """DA-26. Both promises can be broken, and the counts show it."""
    assert count(acts=(1, 5), calls=2, effects=2).duplicates == 1
    assert count(acts=(1, 11), calls=2, effects=1).called_again == 1


def broken(tally: RunTally) -> list[str]:
    """The promises of calls that did not hold."""
    report = Report("x", "X")
    promise_calls(report, [tally])
    return [promise.text for promise in report.promises if not promise.held]


def test_a_call_after_the_commit_is_found_by_the_destination_alone() -> None:
    """DA-26. No worker wrote a line, the key had one effect: only the times of arrival tell."""
    tally = count(acts=(1, 5), calls=2, effects=1, arrivals=(1.2, 10.5))
    assert (tally.repeats, tally.duplicates, tally.called_again, tally.unbegun) == (1, 0, 1, 0)
    assert broken(tally) == ["No committed result was called again"]
    assert broken(count(acts=(1, 5), calls=2, effects=1, arrivals=(1.2, 5.2))) == []


def test_a_call_without_an_act_is_found_without_times() -> None:
    """DA-26. A destination that tells no times is still asked how many calls it had."""
    tally = count(acts=(1,), calls=2, effects=1)
    assert (tally.called_again, tally.unbegun) == (0, 1)
    assert broken(tally) == ["The destination has no call that no worker began"]


def test_a_lost_effect_is_found() -> None:
    """DA-26. A completed step has its effect once: not twice, and not never."""
    assert [count((1,), 1, effects).lost for effects in (0, 1, 2)] == [1, 0, 0]


def test_missing_evidence_is_named() -> None:
    """Tools of the case that have no result."""
    assert set(count((1,), 1, 1).missing) == {"income_verification", "debt_to_income_calc", "policy_lookup"}


def test_a_report_without_promises_does_not_hold() -> None:
    """Exit 0 means that something was shown and all of it held."""
    report = Report("x", "X")
    seen = [report.held]
    report.promise("Water is wet", True)
    seen.append(report.held)
    report.promise("Fire is cold", False, "it is hot")
    seen.append(report.held)
    assert seen == [False, True, False]
    assert report.to_plain()["promises"][1] == {"text": "Fire is cold", "held": False, "found": "it is hot"}
