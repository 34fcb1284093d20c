"""Which kills are planned, and that every kind has its turn."""

from __future__ import annotations

import pytest

from casework.drills.kill_plan import chosen, kinds, spread
from casework.durable.activities.faults import POINTS
from casework.examples.loan_underwriting.rehearsal import REHEARSAL


def test_every_point_of_every_tool_is_a_kind() -> None:
    """DA-26. Five points for the tool that sends an effect out, four for those that only read."""
    made = [(kill.point, kill.tool) for kill in kinds(REHEARSAL)]
    assert len(made) == len(set(made)) == 17
    assert {point for point, tool in made if tool == "credit_check"} == set(POINTS)
    assert {point for point, tool in made if tool == "policy_lookup"} == set(POINTS) - {"sent"}


@pytest.mark.parametrize("number", [1, 17, 20, 100])
def test_kills_are_spread_over_runs_one_for_each_stage(number: int) -> None:
    """A kill takes an attempt of all tools of a stage, so a run has at most one in each."""
    runs = spread(chosen(REHEARSAL, number))
    assert sum(len(kills) for kills in runs) == number
    for kills in runs:
        stages = [kill.stage for kill in kills]
        assert len(stages) == len(set(stages))
