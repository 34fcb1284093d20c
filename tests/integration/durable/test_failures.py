"""What goes wrong stays in its class: retry the operation, tell the model, fail the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from casework import ids
from casework.agents import ModelAnswer, ModelRequest, Repeat, tool
from casework.durable.starting import start_of
from casework.errors import FatalError, RetryableError, ToldError
from casework.store import messages, workflows
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import APPLICATION, TENANT, House

LOOK: list[tuple[str, dict[str, object]]] = [("look", {})]


async def test_a_failing_tool_is_tried_three_times_and_the_model_is_told(house: House, tmp_path: Path) -> None:
    """DA-18. A tool has three attempts; then its step is FAILED, the model is told, and the run goes on."""

    @tool(effects=False)
    def look() -> str:
        """Look."""
        raise ConnectionError("the line is dead")

    async with house.with_app(errand(tmp_path, [look], asking(LOOK))) as busy:
        run_id = await busy.start({}, "errand")
        row = await busy.reaches(run_id, "AWAITING_REVIEW")
        assert "look failed and was given up" in row.recommendation
        assert "the line is dead" in row.recommendation
        step = next(step for step in await busy.steps(run_id) if step.name == "look")
        assert (step.state, step.attempt) == ("FAILED", 3)
        assert "agent.tool_failed" in [event.kind for event in await busy.events(run_id)]


async def test_a_refusal_is_told_at_once(house: House, tmp_path: Path) -> None:
    """DA-18. What the model can mend is told to it, without a second attempt."""
    calls = []

    @tool(effects=False)
    def look(where: str = "here") -> str:
        """Look."""
        calls.append(where)
        raise ToldError("look: 'here' is not a place. Say where.")

    script = asking([("look", {}), ("look", {"wher": "x"}), ("unheard_of", {})])
    async with house.with_app(errand(tmp_path, [look], script)) as busy:
        run_id = await busy.start({}, "errand")
        told = (await busy.reaches(run_id, "AWAITING_REVIEW")).recommendation
        assert calls == ["here"]
        for part in ("'here' is not a place", "wher", "there is no tool 'unheard_of'. Tools that can be called: look"):
            assert part in told
        states = {step.path.rpartition("/")[2]: step.state for step in await busy.steps(run_id) if step.kind == "tool"}
        assert states == {"look.1": "FAILED", "look.2": "FAILED", "unheard_of.1": "FAILED"}


async def test_a_fatal_error_fails_the_run_with_its_reason(house: House, tmp_path: Path) -> None:
    """DA-18, DA-19. What no attempt and no answer can mend ends the run FAILED, once, with the root failure's words."""

    @tool(effects=False)
    def look() -> str:
        """Look."""
        raise FatalError("the archive is closed for good")

    @tool(effects=False)
    def wait() -> str:
        """Wait."""
        return "waited"

    async with house.with_app(errand(tmp_path, [look, wait], asking([("look", {}), ("wait", {})]))) as busy:
        run_id = await busy.start({}, "errand")
        row = await busy.reaches(run_id, "FAILED")
        assert row.failure == "act.1/exchange.1/look.1: the archive is closed for good"
        assert row.outcome is None
        step = next(step for step in await busy.steps(run_id) if step.name == "look")
        assert (step.state, step.attempt) == ("FAILED", 1)


@pytest.mark.parametrize("broken", ["no agents", "no workflow"])
async def test_an_unknown_error_of_the_run_ends_it_failed(working: House, broken: str) -> None:
    """DA-19. What nobody foresaw ends the run FAILED with kind and text of the root failure: no endless retry."""
    row = await working.accept(APPLICATION)
    async with working.db.transaction() as conn:
        bundle = await workflows.get(conn, TENANT, row.workflow_name, row.workflow_version) or {}
    cut = {**bundle, "agents": {}} if broken == "no agents" else {}
    await working.runs.start(replace(start_of(row, bundle), bundle=cut or {"workflow": {"metadata": {"name": "x"}}}))
    ended = await working.reaches(row.run_id, "FAILED")
    assert ("KeyError: 'underwriter'" if cut else "is no pinned workflow") in str(ended.failure)


async def test_a_row_that_contradicts_ends_the_run_and_is_told(house: House) -> None:
    """DA-25. A write that meets a row it may not touch is a conflict: an event in its own transaction, and no retry."""
    row = await house.accept(APPLICATION)
    path = "underwrite.1/exchange.1/model.1"
    async with house.db.transaction() as conn:
        await messages.write(
            conn, TENANT, row.run_id, path=path, position=1, agent="underwriter", role="user", content="something else"
        )
        bundle = await workflows.get(conn, TENANT, row.workflow_name, row.workflow_version) or {}
    async with house.worker():
        await house.runs.start(start_of(row, bundle))
        ended = await house.reaches(row.run_id, "FAILED")
    assert path in str(ended.failure)
    kinds = [event.kind.partition(":")[0] for event in await house.events(row.run_id)]
    assert "conflict" in kinds


async def test_an_end_that_cannot_be_written_is_failed_and_written_alone(house: House) -> None:
    """DA-19. An entry that the store refuses for good holds up neither the run nor its end."""
    row = await house.accept(APPLICATION)
    review = ids.review_id(row.run_id, "decision.1")
    async with house.db.transaction() as conn:
        await conn.execute(
            "insert into agent_ops.agent_reviews"
            " (tenant, review_id, run_id, path, node, turn, status, decisions, created_at)"
            " values (%s, %s, %s, 'elsewhere.1', 'elsewhere', 9, 'pending', '[]', now())",
            (TENANT, review, row.run_id),
        )
        bundle = await workflows.get(conn, TENANT, row.workflow_name, row.workflow_version) or {}
    async with house.worker():
        await house.runs.start(start_of(row, bundle))
        ended = await house.reaches(row.run_id, "FAILED")
    assert "entries could not be written" in str(ended.failure)


async def test_a_model_is_tried_four_times(house: House, tmp_path: Path) -> None:
    """DA-18. A model has four attempts; after them its node fails, and here the run with it."""

    def broken(_: ModelRequest) -> ModelAnswer:
        raise RetryableError("overloaded", retry_after=0.05)

    async with house.with_app(errand(tmp_path, [], broken)) as busy:
        run_id = await busy.start({}, "errand")
        row = await busy.reaches(run_id, "FAILED")
        assert row.failure == "act.1/exchange.1/model.1: overloaded"
        [step] = await busy.steps(run_id)
        assert (step.kind, step.state, step.attempt) == ("model", "FAILED", 4)


async def test_an_agent_without_an_answer_fails_its_node(house: House, tmp_path: Path) -> None:
    """AW-16. Over `maxExchanges` the node fails."""

    @tool(effects=False)
    def look() -> str:
        """Look."""
        return "nothing"

    async with house.with_app(errand(tmp_path, [look], asking(*[LOOK] * 9), exchanges=3)) as busy:
        run_id = await busy.start({}, "errand")
        assert "no answer within 3 exchanges" in str((await busy.reaches(run_id, "FAILED")).failure)


async def test_an_unknown_error_of_a_tool_is_retried_and_then_told(house: House, tmp_path: Path) -> None:
    """DA-18, DA-24. A passing fault costs an attempt; the next one's result is the step's."""
    tries = []

    @tool(repeat=Repeat.IDEMPOTENT)
    async def look() -> str:
        """Look."""
        tries.append(1)
        if len(tries) == 1:
            raise ZeroDivisionError("a bug")
        return "found"

    async with house.with_app(errand(tmp_path, [look], asking(LOOK))) as busy:
        run_id = await busy.start({}, "errand")
        assert "found" in (await busy.reaches(run_id, "AWAITING_REVIEW")).recommendation
        step = next(step for step in await busy.steps(run_id) if step.name == "look")
        assert (step.state, step.attempt, step.result) == ("COMPLETED", 2, "found")
