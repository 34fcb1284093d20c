"""Tables and figures that pages write by hand, held against the code that they tell of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from casework.agents import Repeat
from casework.api import shapes
from casework.api.access import ADMITS, Role
from casework.drills.scenarios import SCENARIOS
from casework.durable import policies
from casework.durable.activities.faults import POINTS
from casework.durable.schedules import SWEEP_EVERY
from casework.graph.manifests import AiAgentSpec, AiWorkflowSpec
from casework.graph.state import DEFAULT_TURN_LIMIT
from casework.policy.columns import COLUMNS
from casework.settings.parts import PolicySettings
from tests.docs.pages import ROOT, name

DOCS = ROOT / "docs"
STATES = DOCS / "concepts/runs_and_states.md"
SAFETY = DOCS / "concepts/repeat_safety.md"
POLICY = DOCS / "concepts/policy.md"
DRILLS = DOCS / "operations/drills.md"
WAITS = DOCS / "how_to/tell_waits_from_faults.md"


def text_of(page: Path) -> str:
    return " ".join(page.read_text(encoding="utf-8").split())


def first_cells(page: Path) -> set[str]:
    """The first cell of every row of every table, without marks."""
    return {cell.strip(" `") for cell in re.findall(r"^\|([^|]*)\|", page.read_text(encoding="utf-8"), re.MULTILINE)}


@pytest.mark.parametrize("page", [STATES, WAITS], ids=name)
def test_what_a_run_is_doing_is_described(page: Path) -> None:
    """Every kind that a reader can meet stands in the table."""
    assert set(get_args(shapes.Doing.model_fields["kind"].annotation)) <= first_cells(page)


def test_how_attempts_end_is_described() -> None:
    """COMPLETED, FAILED, LOST and LATE each have their row."""
    choices = get_args(get_args(shapes.Attempt.model_fields["outcome"].annotation)[0])
    assert set(choices) <= first_cells(STATES)


def test_declarations_are_described() -> None:
    """Each way of being safe to repeat has its row."""
    assert {f"Repeat.{kind.name}" for kind in Repeat} <= first_cells(SAFETY)


def test_retry_policies_are_told_as_they_are() -> None:
    """The numbers of the page are those of the code."""
    model, tool, store = policies.MODEL, policies.TOOL, policies.STORE
    assert model.schedule_to_close == 180
    assert (
        f"a model has {model.attempts} attempts within 3 minutes, each of {model.start_to_close} seconds; a tool "
        f"{tool.attempts} attempts of {tool.start_to_close} seconds; a write {store.attempts} of "
        f"{store.start_to_close} seconds."
    ) in text_of(SAFETY)


def test_limits_are_told_as_they_are() -> None:
    """The defaults of the page are those of the code."""
    text = text_of(STATES)
    assert f"visits of AGENT nodes, {DEFAULT_TURN_LIMIT} unless" in text
    assert f"`maxLoops` of the workflow, {AiWorkflowSpec.model_fields['max_loops'].default} by default" in text
    assert f"`maxExchanges` of the agent, {AiAgentSpec.model_fields['max_exchanges'].default} by default" in text
    assert f"Every {SWEEP_EVERY.total_seconds():g} seconds a sweep" in text


def test_drills_are_described() -> None:
    """Each scenario and each point of a kill has its row, and the README names no scenario that is not there."""
    scenarios = {scenario.NAME for scenario in SCENARIOS}
    assert scenarios | set(POINTS) <= first_cells(DRILLS)
    named = set(re.findall(r"`casework drill` \(([\w-]+)\)", (ROOT / "README.md").read_text()))
    assert named
    assert named <= scenarios


def test_policy_is_described() -> None:
    """Every column of a limit, and both answers to a missing row."""
    cells = {part.strip(" `") for cell in first_cells(POLICY) for part in cell.split(",")}
    assert set(COLUMNS) - {"purpose", "policy_name", "version"} <= cells
    choices = get_args(PolicySettings.__annotations__["fallback"]) or ("fail_closed", "fixture")
    assert all(choice in text_of(POLICY) for choice in choices)


def test_roles_are_described() -> None:
    """What the page says of roles is what routes ask for."""
    text = text_of(DOCS / "operations/processes.md")
    assert all(f"`{role.value}`" in text for role in Role)
    assert ADMITS[Role.VIEWER] == set(Role) - {Role.METRICS}
    assert ADMITS[Role.METRICS] == {Role.METRICS}
    assert ADMITS[Role.REVIEWER] == {Role.REVIEWER, Role.ADMIN}
    assert ADMITS[Role.OPERATOR] == {Role.OPERATOR, Role.ADMIN}
