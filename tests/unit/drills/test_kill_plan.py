"""Which kills are planned, and that every kind has its turn."""

from __future__ import annotations

from collections import Counter

import pytest

from casework.app import App
from casework.drills import recovery
from casework.drills.kill_plan import chosen, declarations, faults_of, kinds, spread, tool_and_point
from casework.durable.activities.faults import POINTS
from casework.examples.loan_underwriting import app as loan
from casework.examples.repeat_safety import app as sample
from casework.rehearsal import Rehearsal


def of(app: App) -> tuple[Rehearsal, dict[str, str]]:
    """The rehearsal of an application, and how its tools are safe to repeat."""
    assert app.rehearsal is not None
    return app.rehearsal, declarations(app.rehearsal, app.toolbox)


def test_the_sample_has_a_tool_of_each_declaration() -> None:
    """DA-27. One idempotent, one keyed, one transactional, one that verifies."""
    assert of(sample)[1] == {
        "set_address": "idempotent",
        "charge_fee": "keyed",
        "note_change": "transactional",
        "send_letter": "verify",
    }


def test_every_point_of_every_declaration_is_a_kind() -> None:
    """DA-26. Five points of each of the four tools, and each once before any comes again."""
    made = kinds(*of(sample))
    assert len(made) == len(set(made)) == 20
    assert {kill.point for kill in made if kill.tool == "note_change"} == set(POINTS)


def test_tools_that_only_read_are_killed_where_that_means_something() -> None:
    """DA-26. Five points for the tool that sends an effect out, four for those that only read."""
    made = {(kill.point, kill.tool) for kill in kinds(*of(loan))}
    assert len(made) == 17
    assert {point for point, tool in made if tool == "credit_check"} == set(POINTS)
    assert {point for point, tool in made if tool == "policy_lookup"} == set(POINTS) - {"sent"}


@pytest.mark.parametrize("number", [4, 5, 10, 17, 20, 200])
def test_kills_are_even_over_declarations_and_points(number: int) -> None:
    """DA-26. Whatever the number, no declaration and no point has two kills more than another."""
    rehearsal, declared = of(sample)
    made = chosen(rehearsal, declared, number)
    for counted in (Counter(declared[kill.tool] for kill in made), Counter(kill.point for kill in made)):
        assert max(counted.values()) - min(counted.values()) <= 1


@pytest.mark.parametrize("app", [loan, sample])
@pytest.mark.parametrize("number", [1, 17, 20, 100])
def test_kills_are_spread_over_runs_one_for_each_stage(app: App, number: int) -> None:
    """A kill takes an attempt of all tools of a stage, so a run has at most one in each."""
    runs = spread(chosen(*of(app), number))
    assert sum(len(kills) for kills in runs) == number
    for kills in runs:
        stages = [kill.stage for kill in kills]
        assert len(stages) == len(set(stages))


def test_a_fault_knows_the_file_that_the_destination_leaves() -> None:
    """At `sent` the worker waits for a call to arrive: named by its key, by its subject, or none in a database."""
    rehearsal, declared = of(sample)
    faults = faults_of(rehearsal, chosen(rehearsal, declared, 4), "run-1", "tag-1")
    assert {tool_and_point(fault.id)[0]: fault.received for fault in faults} == {
        "set_address": "set_address:C-1001.tag-1",
        "charge_fee": "{key}",
        "note_change": None,
        "send_letter": "{key}",
    }


@pytest.mark.parametrize("app", [loan, sample])
def test_recovery_is_measured_at_ten_kills_over_all_points(app: App) -> None:
    """DA-49. Ten kills, one in each stage of a run."""
    runs = recovery.planned(of(app)[0])
    made = [kill for run in runs for kill in run]
    assert len(made) == recovery.KILLS
    assert {"claimed", "acted", "committed", "reported"} <= {kill.point for kill in made}
    assert all(len({kill.stage for kill in run}) == len(run) for run in runs)
