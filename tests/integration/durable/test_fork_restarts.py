"""Forks that begin again where a run failed, with other code, and across nodes of every kind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from casework.agents import ModelAnswer, ModelRequest, Tool, tool
from casework.app import App
from casework.errors import FatalError, NotFoundError, StateError
from tests.integration.durable.apps import asking, errand, gated
from tests.integration.durable.chains import loop_app
from tests.integration.durable.conftest import House
from tests.integration.durable.forked_runs import forked, paths

CALLS: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def calls() -> Counter[str]:
    """How often each tool and the model were called in this test."""
    CALLS.clear()
    return CALLS


@tool(effects=False)
def look() -> str:
    """Look."""
    CALLS["look"] += 1
    return "seen"


def closing(first: int) -> Tool:
    """A tool that is closed for good the first times."""

    @tool(effects=False)
    def shut() -> str:
        """Shut."""
        CALLS["shut"] += 1
        if CALLS["shut"] <= first:
            raise FatalError("closed for good")
        return "open"

    return shut


def counted(inner: Any) -> Any:
    def script(request: ModelRequest) -> ModelAnswer:
        CALLS["model"] += 1
        made: ModelAnswer = inner(request)
        return made

    return script


async def test_a_failed_run_begins_again_where_it_failed(house: House, tmp_path: Path) -> None:
    """AW-14, AW-15. Without a step: what succeeded in the visit is kept, what failed is done again."""
    script = counted(asking([("look", {})], [("shut", {})]))
    async with house.with_app(errand(tmp_path, [look, closing(1)], script)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "FAILED")
        assert CALLS == {"model": 2, "look": 1, "shut": 1}
        made = await forked(busy, run_id)
        assert (made.fork.visit, made.fork.kept) == ("act.1", 3)
        row = await busy.reaches(made.row.run_id, "AWAITING_REVIEW")
        assert CALLS == {"model": 3, "look": 1, "shut": 2}
        assert str(row.recommendation).startswith('"seen" | "open"')
        assert (await busy.run(run_id)).status == "FAILED"


async def test_a_run_whose_model_failed_is_asked_again(house: House, tmp_path: Path) -> None:
    """AW-14, AW-15. The notes that stand for the lost answer are not taken over; its place is filled by the new one."""
    inner = asking([("look", {})])

    def script(request: ModelRequest) -> ModelAnswer:
        CALLS["model"] += 1
        if CALLS["model"] == 2:
            raise FatalError("the account is closed")
        made: ModelAnswer = inner(request)  # type: ignore[operator]  # a script is called
        return made

    async with house.with_app(errand(tmp_path, [look], script)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "FAILED")
        made = await forked(busy, run_id)
        await busy.reaches(made.row.run_id, "AWAITING_REVIEW")
        assert CALLS == {"model": 3, "look": 1}
        assert await paths(busy, made.row.run_id, taken=False) == ["act.1/exchange.2/model.1"]


async def test_a_kept_tool_of_another_version_is_refused(house: House, tmp_path: Path) -> None:
    """AW-15. Its result would be another's by now; from that step on, or before, it can be forked."""
    script = counted(asking([("look", {})]))
    async with house.with_app(errand(tmp_path, [look], script)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")

    @tool(name="look", effects=False, version="2")
    def look_again() -> str:
        """Look better."""
        return "seen better"

    async with house.with_app(errand(tmp_path, [look_again], script)) as busy:
        with pytest.raises(StateError, match=r"has version 2 by now.*Fork from that step, or from one before it"):
            await forked(busy, run_id, step="act.1/exchange.2")
        made = await forked(busy, run_id, step="act.1/exchange.1/look.1")
        row = await busy.reaches(made.row.run_id, "AWAITING_REVIEW")
    assert str(row.recommendation).startswith('"seen better"')


async def test_a_fork_with_another_version_of_its_workflow(house: House, tmp_path: Path) -> None:
    """AW-15. The agent of the new version goes on from what is kept; one that opens otherwise begins anew."""
    script = counted(asking([("look", {})]))
    async with house.with_app(errand(tmp_path, [look], script)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
    async with house.with_app(errand(tmp_path, [look], script, exchanges=7)) as busy:
        made = await forked(busy, run_id, step="act.1/exchange.2", workflow_version=2)
        row = await busy.reaches(made.row.run_id, "AWAITING_REVIEW")
        assert (row.workflow_version, made.fork.kept, made.fork.anew) == (2, 2, "")
    manifest = tmp_path / "errand.yaml"
    manifest.write_text(manifest.read_text().replace("Do the errand.", "Run the errand."))
    other = App(tools=[look], manifests=(manifest,), scripts={"runner": script})
    async with house.with_app(other) as busy:
        made = await forked(busy, run_id, step="act.1/exchange.2", workflow_version=3)
        assert (made.fork.kept, "begins anew" in made.fork.anew) == (0, True)
        row = await busy.reaches(made.row.run_id, "AWAITING_REVIEW")
        assert str(row.recommendation).endswith("Run the errand.")


async def test_no_fork_ends_by_the_decision_of_another_run(house: House, tmp_path: Path) -> None:
    """DA-12, AW-8, AW-15. Forked behind an approval, or at it: the outcome needs a decision of its own."""
    async with house.with_app(gated(tmp_path)) as busy:
        run_id = await busy.start({"weight": 5}, "gated")
        for node in ("first", "second"):
            await busy.review_at(run_id, node)
            await busy.decide(run_id, "approve")
        assert (await busy.reaches(run_id, "COMPLETED")).outcome == "passed"
        for step, asks in (("second.1", ["second"]), ("heavy.1", ["first", "second"])):
            made = await forked(busy, run_id, step=step)
            for node in asks:
                review = await busy.review_at(made.row.run_id, node)
                assert (await busy.run(made.row.run_id)).outcome is None
                await busy.decide(made.row.run_id, "approve" if node == "first" else "reject")
                assert review.run_id == made.row.run_id
            assert (await busy.reaches(made.row.run_id, "COMPLETED")).outcome == "refused"


async def test_a_condition_sees_what_was_edited(house: House, tmp_path: Path) -> None:
    """AW-15. An edited output of a tool sends the fork another way."""
    async with house.with_app(gated(tmp_path)) as busy:
        run_id = await busy.start({"weight": 5}, "gated")
        await busy.review_at(run_id, "first")
        made = await forked(busy, run_id, step="heavy.1", context={"scale": {"grams": 5}})
        row = await busy.reaches(made.row.run_id, "COMPLETED")
        assert row.outcome is None
        assert (await busy.run(run_id)).status == "AWAITING_REVIEW"


async def test_a_fork_in_a_chain_of_quick_nodes(house: House, tmp_path: Path) -> None:
    """AW-11, AW-15. Visits that shared an activity are recorded one by one, and a fork begins at any of them."""
    async with house.with_app(loop_app(tmp_path)) as busy:
        run_id = await busy.start({"rounds": 5}, "loop")
        whole = await busy.reaches(run_id, "COMPLETED")
        made = await forked(busy, run_id, step="second.3")
        row = await busy.reaches(made.row.run_id, "COMPLETED")
        assert row.loop_count == whole.loop_count
        assert await paths(busy, row.run_id, taken=True) == ["first.1", "second.1", "first.2", "second.2", "first.3"]
        assert set(await paths(busy, row.run_id, taken=False)) == {
            "second.3", "first.4", "second.4", "first.5", "second.5"
        }  # fmt: skip


EVERY_KIND = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: every-kind}
spec:
  initialNode: pause
  nodes:
    - {id: pause, type: WAIT, duration: PT0S}
    - {id: looks, type: PARALLEL, outputKey: looks, branches: [
        {id: one, type: TOOL, tool: look}, {id: two, type: TOOL, tool: look}]}
    - {id: each, type: MAP, items: "[1, 2]", outputKey: each, branches: [{id: it, type: TOOL, tool: look}]}
    - {id: below, type: SUBWORKFLOW, workflowRef: below, outputKey: below}
    - {id: timed, type: WAIT, duration: PT0S, signal: go, outputKey: timed}
    - {id: ask, type: HUMAN_APPROVAL, decisions: [{name: approve, outcome: approved}]}
  edges:
    - {from: pause, to: looks}
    - {from: looks, to: each}
    - {from: each, to: below}
    - {from: below, to: timed}
    - {from: timed, to: ask}
    - {from: ask, to: end, condition: approve}
---
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: below}
spec:
  initialNode: it
  nodes: [{id: it, type: TOOL, tool: look, outputKey: it}]
"""


@pytest.fixture
def kinds(tmp_path: Path) -> App:
    """A workflow that passes a node of every kind before it asks."""
    manifest = tmp_path / "kinds.yaml"
    manifest.write_text(EVERY_KIND)
    return App(tools=[look], manifests=(manifest,))


async def test_a_fork_behind_nodes_of_every_kind(house: House, kinds: App) -> None:
    """AW-4, AW-15. Their outputs are taken over, and none of them is visited again."""
    async with house.with_app(kinds) as busy:
        run_id = await busy.start({}, "every-kind")
        await busy.review_at(run_id, "ask")
        before = CALLS["look"]
        made = await forked(busy, run_id)
        await busy.review_at(made.row.run_id, "ask")
        assert CALLS["look"] == before == 5
        again = await forked(busy, run_id, step="each.1/it.2")
        assert "begins anew" in again.fork.anew
        await busy.review_at(again.row.run_id, "ask")
        assert CALLS["look"] == before + 3
        subs = [e.data["run_id"] for e in await busy.events(again.row.run_id) if e.kind == "agent.sub_run_started"]
        assert (await busy.run(subs[0])).parent_run_id == again.row.run_id


async def test_a_sub_run_is_forked_by_itself(house: House, kinds: App) -> None:
    """AW-15. As a run of its own, whose end nobody waits for."""
    async with house.with_app(kinds) as busy:
        run_id = await busy.start({}, "every-kind")
        await busy.review_at(run_id, "ask")
        subs = [e.data["run_id"] for e in await busy.events(run_id) if e.kind == "agent.sub_run_started"]
        made = await forked(busy, subs[0], step="it.1")
        row = await busy.reaches(made.row.run_id, "COMPLETED")
        assert (row.parent_run_id, CALLS["look"]) == (None, 6)


async def test_no_fork_acts_on_a_decision_that_is_not_its_own(house: House, tmp_path: Path) -> None:
    """DA-12, AW-15. Behind the approval that gives the outcome it is refused and nothing acts; at it, it asks."""
    manifest = tmp_path / "late.yaml"
    manifest.write_text(LATE)
    async with house.with_app(App(tools=[look], manifests=(manifest,))) as busy:
        run_id = await busy.start({}, "late")
        await busy.review_at(run_id, "ask")
        await busy.decide(run_id, "approve")
        assert (await busy.reaches(run_id, "COMPLETED")).outcome == "approved"
        before = CALLS["look"]
        for step in ("note.1", None):
            with pytest.raises(StateError, match=r"edge from 'note' with outcome 'approved'.*Fork from ask\.1, and a"):
                await forked(busy, run_id, step=step)
        assert CALLS["look"] == before
        at_it = await forked(busy, run_id, step="ask.1")
        await busy.review_at(at_it.row.run_id, "ask")
        await busy.decide(at_it.row.run_id, "approve")
        assert (await busy.reaches(at_it.row.run_id, "COMPLETED")).outcome == "approved"
        with pytest.raises(StateError, match=r"Fork from ask\.1, and a person decides anew"):
            await forked(busy, at_it.row.run_id)


async def test_branches_that_have_no_step_are_named_as_others(house: House, tmp_path: Path) -> None:
    """AW-15. A branch that asks a person, or that is a run of its own, is recorded: its visit begins anew."""
    manifest = tmp_path / "branches.yaml"
    manifest.write_text(STEPLESS)
    async with house.with_app(App(tools=[look], manifests=(manifest,))) as busy:
        run_id = await busy.start({}, "stepless")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        for step in ("both.1/asks.1", "both.1/below.1"):
            made = await forked(busy, run_id, step=step)
            assert (made.fork.visit, "begins anew" in made.fork.anew) == ("both.1", True)
        with pytest.raises(NotFoundError, match=r"no step 'both\.1/other\.1'"):
            await forked(busy, run_id, step="both.1/other.1")


STEPLESS = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: stepless}
spec:
  initialNode: both
  nodes:
    - {id: both, type: PARALLEL, outputKey: both, branches: [
        {id: below, type: SUBWORKFLOW, workflowRef: below},
        {id: asks, type: HUMAN_APPROVAL, decisions: [{name: fine}]}]}
---
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: below}
spec:
  initialNode: it
  nodes: [{id: it, type: TOOL, tool: look, outputKey: it}]
"""
LATE = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: late}
spec:
  initialNode: ask
  nodes:
    - {id: ask, type: HUMAN_APPROVAL, decisions: [{name: approve, outcome: approved}]}
    - {id: note, type: TOOL, tool: look, outputKey: noted}
  edges:
    - {from: ask, to: note, condition: approve}
    - {from: note, to: end, outcome: approved}
"""


async def test_an_edit_changes_no_answer_that_happens_to_be_alike(house: House, tmp_path: Path) -> None:
    """AW-15. Two agents said the same: the person is asked about the second's words, whatever the first's become."""
    manifest = tmp_path / "alike.yaml"
    manifest.write_text(ALIKE)
    script = counted(lambda request: ModelAnswer(text="yes"))
    async with house.with_app(App(manifests=(manifest,), scripts={"runner": script})) as busy:
        run_id = await busy.start({}, "alike")
        await busy.review_at(run_id, "ask")
        first = await forked(busy, run_id, step="ask.1", context={"one": "no"})
        await busy.review_at(first.row.run_id, "ask")
        assert (await busy.run(first.row.run_id)).recommendation == "yes"
        second = await forked(busy, first.row.run_id, step="ask.1", context={"two": "never"})
        await busy.review_at(second.row.run_id, "ask")
        assert (await busy.run(second.row.run_id)).recommendation == "never"


ALIKE = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: alike}
spec:
  initialNode: one
  nodes:
    - {id: one, type: AGENT, agentRef: runner, outputKey: one}
    - {id: two, type: AGENT, agentRef: runner, outputKey: two}
    - {id: ask, type: HUMAN_APPROVAL, decisions: [{name: approve, outcome: approved}]}
  edges:
    - {from: one, to: two}
    - {from: two, to: ask}
    - {from: ask, to: end, condition: approve}
---
apiVersion: casework.dev/v1alpha1
kind: AiAgent
metadata: {name: runner}
spec: {provider: scripts}
---
apiVersion: casework.dev/v1alpha1
kind: LlmProvider
metadata: {name: scripts}
spec: {type: scripted, script: runner}
"""
