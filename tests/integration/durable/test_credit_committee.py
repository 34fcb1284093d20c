"""The loan case with a credit committee: who is talked about before a person decides, and who is not."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from casework import ids
from casework.agents import ModelAnswer, ModelRequest
from casework.app import App
from casework.errors import FatalError
from casework.examples.credit_committee.application import WHERE, app
from casework.examples.group_talk.committee import CAST
from casework.examples.loan_underwriting.fixtures import APPROVABLE, BORDERLINE, DECLINABLE
from casework.graph.bundle import PinnedWorkflow
from casework.store import runs
from casework.values import dumps, loads
from tests.integration.durable.conftest import TENANT, House
from tests.integration.durable.test_waits import told, values

WORKFLOW = "loan-underwriting-with-committee"
WITH_TALK = ["underwrite.1", "borderline.1", "talk.1", "decision.1"]
WITHOUT = ["underwrite.1", "borderline.1", "decision.1"]
CLEAR = [(APPROVABLE, "approve", "approved"), (DECLINABLE, "reject", "declined")]


def application(applicant: str) -> dict[str, Any]:
    return {"applicant_id": applicant, "amount": 12000, "purpose": "debt_consolidation"}


@pytest.fixture
async def bank(house: House) -> AsyncIterator[House]:
    """The house, with this example at work."""
    async with house.with_app(app) as busy:
        yield busy


async def visits(house: House, run_id: UUID) -> list[str]:
    return [path for path, _ in await told(house, run_id, "agent.node_started")]


async def sub_runs(house: House, run_id: UUID) -> list[str]:
    return [path for path, _ in await told(house, run_id, "agent.sub_run_started")]


def check_minutes(minutes: list[dict[str, Any]]) -> None:
    """The chair opens with the application and what the underwriter said; then only members speak."""
    chair, *members = minutes
    assert chair["speaker"] == "Chair"
    assert f"Application {BORDERLINE}: 12000 US dollars" in chair["words"]
    assert "minimum_score wants score >= 700, found 665" in chair["words"]
    assert members
    assert {line["speaker"] for line in members} <= {member.name for member in CAST}
    assert all(line["words"] and not line["broken_off"] for line in members)


async def test_a_borderline_case_is_talked_about_before_a_person_decides(bank: House) -> None:
    """AW-4. The talk is a run with its own row; when the review waits, the minutes are there and it says where."""
    run_id = await bank.start(application(BORDERLINE), WORKFLOW)
    waiting = await bank.reaches(run_id, "AWAITING_REVIEW")
    review = await bank.review(run_id)
    assert review.recommendation["recommendation"] == "refer"
    assert review.recommendation["rationale"].endswith(WHERE)
    assert review.recommendation == waiting.recommendation

    found = (await values(bank, run_id))["committee"]
    check_minutes(found["output"]["minutes"])
    assert found["output"]["ended"] == "nobody has anything to say"
    sub = await bank.run(ids.sub_run_id(run_id, "talk.1"))
    assert (sub.status, sub.workflow_name) == ("COMPLETED", "group-talk")
    assert (sub.parent_run_id, sub.parent_path, sub.user_id) == (run_id, "talk.1", "ann")
    assert len([step for step in await bank.steps(sub.run_id) if step.kind == "model"]) >= len(CAST)

    await bank.decide(run_id, "approve")
    assert (await bank.reaches(run_id, "COMPLETED")).outcome == "approved"
    assert await visits(bank, run_id) == WITH_TALK == await visits_locally(BORDERLINE, "approve")


async def test_a_second_recommendation_that_refers_is_talked_about_anew(bank: House) -> None:
    """DA-13, AW-4. What the reviewer asked is heard in the second talk, which is another run; turns are the agent's."""
    run_id = await bank.start(application(BORDERLINE), WORKFLOW)
    await bank.reaches(run_id, "AWAITING_REVIEW")
    await bank.decide(run_id, "more_info", "Is the delinquency settled?")
    await bank.reaches(run_id, "AWAITING_REVIEW", turn=2)
    chair = (await values(bank, run_id))["committee"]["output"]["minutes"][0]
    assert "Is the delinquency settled?" in chair["words"]
    await bank.decide(run_id, "reject")
    assert (await bank.reaches(run_id, "COMPLETED")).outcome == "declined"
    assert await sub_runs(bank, run_id) == ["talk.1", "talk.2"]
    for path in ("talk.1", "talk.2"):
        assert (await bank.run(ids.sub_run_id(run_id, path))).status == "COMPLETED"


@pytest.mark.parametrize(("applicant", "decision", "outcome"), CLEAR)
async def test_a_clear_case_goes_straight_to_a_person(bank: House, applicant: str, decision: str, outcome: str) -> None:
    """AW-4. No sub-run, no minutes, and nothing that points to any."""
    run_id = await bank.start(application(applicant), WORKFLOW)
    row = await bank.reaches(run_id, "AWAITING_REVIEW")
    assert WHERE not in row.recommendation["rationale"]
    await bank.decide(run_id, decision)
    assert (await bank.reaches(run_id, "COMPLETED")).outcome == outcome
    assert await visits(bank, run_id) == WITHOUT == await visits_locally(applicant, decision)
    assert await sub_runs(bank, run_id) == []
    async with bank.db.transaction() as conn:
        assert await runs.get(conn, TENANT, ids.sub_run_id(run_id, "talk.1")) is None
    assert list(await values(bank, run_id)) == ["recommendation"]


async def test_a_committee_that_cannot_meet_lets_no_case_pass(house: House) -> None:
    """AW-8. Where no role can be asked the talk fails, and the run with it: nobody decides without minutes."""

    def unreachable(_request: ModelRequest) -> ModelAnswer:
        raise FatalError("the committee is on holiday")

    mute = {member.agent: unreachable for member in CAST}
    lonely = App(app.tools, app.manifests, trees=app.trees, scripts={**app.scripts, **mute}, policy=app.policy)
    async with house.with_app(lonely) as busy:
        run_id = await busy.start(application(BORDERLINE), WORKFLOW)
        row = await busy.reaches(run_id, "FAILED")
        assert row.failure is not None
        assert row.failure.startswith("talk: the run of group-talk ended FAILED: ")
        assert "the committee is on holiday" in row.failure
        assert await visits(busy, run_id) == WITH_TALK[:3]
        assert list(await values(busy, run_id)) == ["recommendation"]


async def visits_locally(applicant: str, decision: str) -> list[str]:
    """The visits of the same case in a process without servers."""
    words = ["runs", "start", WORKFLOW, "--app", "casework.examples.credit_committee:app", "--local", "--json"]
    words += ["--input", dumps(application(applicant)), "--decide", f"decision={decision}"]
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "casework", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if not name.startswith(("CASEWORK_", "LOAN_"))},
    )
    out, told_besides = await running.communicate()
    assert running.returncode == 0, told_besides.decode()
    end: Any = loads(out)
    assert end["status"] == "COMPLETED"
    assert list(end["runs"]) == [step["path"] for step in end["trace"] if step["command"] == "RunSubworkflow"]
    return [step["path"] for step in end["trace"]]


def test_the_manifest_and_the_script_say_the_same_of_the_minutes() -> None:
    """A real model is told to end a rationale with what the scripted one ends it with."""
    pinned = app.workflow(WORKFLOW)
    assert isinstance(pinned, PinnedWorkflow)
    assert WHERE in pinned.agents["underwriter"].spec.system_prompt
