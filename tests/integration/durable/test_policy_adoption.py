"""Which policy an open case uses when its owner changes it, and what happens where there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from casework.agents import ModelAnswer, ModelRequest, Request, ToolContext, tool
from casework.app import App
from casework.durable.publish import publish
from casework.examples.loan_underwriting.application import POLICY
from casework.settings import PolicySettings
from casework.store import policy
from tests.integration.durable.apps import errand
from tests.integration.durable.conftest import TENANT, House

CHANGED = POLICY.read_text().replace("personal-loans,1,700", "personal-loans,2,650")


@tool(effects=False)
async def limits(ctx: ToolContext) -> dict[str, Any]:
    """Which limits hold for a car loan."""
    reading = await ctx.policy("car")
    made = reading.limits
    return {"version": made.version, "min_score": made.min_score, "source": reading.source, "reason": reading.reason}


def asks_once_a_turn(request: ModelRequest) -> ModelAnswer:
    """One look at the policy in each turn."""
    turns = sum(1 for message in request.messages if message.role == "user")
    asked = [message for message in request.messages if message.role == "assistant" and message.requests]
    if len(asked) < turns:
        return ModelAnswer(requests=(Request(f"c{turns}", "limits", {}),))
    return ModelAnswer(text="looked")


def adopting(folder: Path, adoption: str) -> App:
    app = errand(folder, [limits], asks_once_a_turn, adoption=adoption)
    return App(tools=app.tools, manifests=app.manifests, scripts=app.scripts, policy=POLICY)


@pytest.mark.parametrize(("adoption", "versions"), [("pinned", [1, 1]), ("next_turn", [1, 2])])
async def test_an_open_case_adopts_a_change_as_its_workflow_says(
    house: House, tmp_path: Path, adoption: str, versions: list[int]
) -> None:
    """DA-5, DA-41. `pinned` keeps the version read first, `next_turn` takes the new one; both are on record."""
    async with house.with_app(adopting(tmp_path, adoption)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.load_policy(CHANGED)
        await busy.decide(run_id, "more_info", "And now?")
        await busy.reaches(run_id, "AWAITING_REVIEW", turn=2)
        used = [step.result["version"] for step in await busy.steps(run_id) if step.name == "limits"]
        assert used == versions
        later = await busy.start({}, "errand")
        await busy.reaches(later, "AWAITING_REVIEW")
        assert [step.result["version"] for step in await busy.steps(later) if step.name == "limits"] == [2]
        async with busy.db.transaction() as conn:
            recorded = [use.version for use in await policy.uses(conn, TENANT, run_id)]
        assert recorded == sorted(set(versions))


async def test_without_a_policy_the_run_fails_closed(house: House, tmp_path: Path) -> None:
    """DA-42. No row and the default setting: the run ends FAILED, and the reason says what to do."""
    async with house.db.transaction() as conn:
        await conn.execute("set local role none; delete from agent_policy.underwriting_policy_limits")
    house.app = adopting(tmp_path, "pinned")
    await publish(house.app, house.db)
    async with house.worker():
        run_id = await house.start({}, "errand")
        row = await house.reaches(run_id, "FAILED")
    assert "casework policy load" in str(row.failure)


async def test_the_fixture_is_used_only_where_the_setting_says_so_and_is_recorded(house: House, tmp_path: Path) -> None:
    """DA-42. With the explicit setting the shipped limits are used, recorded as fixture_fallback with the reason."""
    async with house.db.transaction() as conn:
        await conn.execute("set local role none; delete from agent_policy.underwriting_policy_limits")
    house.app = adopting(tmp_path, "pinned")
    house.settings = replace(house.settings, policy=PolicySettings(fallback="fixture"))
    await publish(house.app, house.db)
    async with house.worker():
        run_id = await house.start({}, "errand")
        await house.reaches(run_id, "AWAITING_REVIEW")
    [step] = [step for step in await house.steps(run_id) if step.name == "limits"]
    assert (step.result["source"], step.result["min_score"]) == ("fixture_fallback", 700)
    assert "no policy row" in step.result["reason"]
