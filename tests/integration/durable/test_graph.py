"""Graphs without an agent: TOOL, CONDITION, two approvals in a row, an edge for errors."""

from __future__ import annotations

from pathlib import Path

from casework.agents import ModelAnswer, ModelRequest
from casework.errors import FatalError
from tests.integration.durable.apps import errand, gated
from tests.integration.durable.conftest import House


async def test_a_second_approval_asks_again(house: House, tmp_path: Path) -> None:
    """AW-8. The answer to the first approval does not pass the second."""
    async with house.with_app(gated(tmp_path)) as busy:
        run_id = await busy.start({"weight": 5}, "gated")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        first = await busy.decide(run_id, "approve", decision_id="one")
        assert first.node == "first"

        await busy.reaches(run_id, "AWAITING_REVIEW")
        second = await busy.review_at(run_id, "second")
        assert second.review_id != first.review_id
        await busy.decide(run_id, "approve", decision_id="two")
        row = await busy.reaches(run_id, "COMPLETED")
        assert row.outcome == "passed"
        paths = [event.path for event in await busy.events(run_id) if event.kind == "agent.node_started"]
        assert paths == ["weigh.1", "heavy.1", "first.1", "second.1"]


async def test_a_condition_takes_its_edge(house: House, tmp_path: Path) -> None:
    """AW-7. A false condition follows its edge; a run may end without a person, and then has no outcome."""
    async with house.with_app(gated(tmp_path)) as busy:
        run_id = await busy.start({"weight": 1}, "gated")
        row = await busy.reaches(run_id, "COMPLETED")
        assert row.outcome is None


async def test_a_refused_model_fails_its_node_and_may_be_caught(house: House, tmp_path: Path) -> None:
    """AW-8. What a provider refuses for good is a failure of the node: an onError edge leads to a person."""

    def refused(_: ModelRequest) -> ModelAnswer:
        raise FatalError("the account is closed")

    app = errand(tmp_path, [], refused)
    manifest = tmp_path / "errand.yaml"
    rescue = "  edges:\n    - {from: act, to: decision, onError: true}\n"
    manifest.write_text(manifest.read_text().replace("  edges:\n", rescue, 1))
    async with house.with_app(app) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.decide(run_id, "reject")
        assert (await busy.reaches(run_id, "COMPLETED")).outcome == "declined"


async def test_an_error_edge_catches_a_failed_node(house: House, tmp_path: Path) -> None:
    """AW-8. A node that fails is no answer that flows on; its onError edge leads to a person."""
    async with house.with_app(gated(tmp_path)) as busy:
        run_id = await busy.start({"weight": -1}, "gated")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        assert (await busy.review(run_id)).node == "second"
        failed = [event for event in await busy.events(run_id) if event.kind == "agent.node_failed"]
        assert [event.path for event in failed] == ["weigh.1"]
        await busy.decide(run_id, "reject")
        assert (await busy.reaches(run_id, "COMPLETED")).outcome == "refused"
