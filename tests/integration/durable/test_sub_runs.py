"""SUBWORKFLOW of durable runs: rows, ids, values, failures that come up, cancellation that goes down, branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from casework import ids
from casework.agents import tool
from casework.app import App
from casework.durable.contracts import CancelRequest, Signal
from casework.durable.publish import publish
from casework.errors import ToldError
from casework.store import runs, workflows
from casework.store.rows import RunRow
from tests.integration.durable import free_tree_app, free_trees
from tests.integration.durable.conftest import APPLICATION, TENANT, House
from tests.integration.durable.sweeping import sweep_now
from tests.integration.durable.test_waits import forgetful, told, values, waits

PARENT = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: parent}
spec:
  initialNode: first
  nodes:
    - {id: first, type: SUBWORKFLOW, workflowRef: child, arguments: {n: "{{ input.n }}"}, outputKey: one}
    - id: each
      type: MAP
      items: input.more
      outputKey: more
      branches: [{id: child, type: SUBWORKFLOW, workflowRef: child, arguments: {n: "{{ item }}"}}]
  edges: [{from: first, to: each}]
---
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: child}
spec:
  initialNode: double
  input: {type: object, required: [n], properties: {n: {type: integer}}}
  nodes:
    - {id: double, type: TOOL, tool: double, arguments: {n: "{{ input.n }}"}, outputKey: twice}
    - {id: big, type: CONDITION, expression: "twice >= 100"}
    - {id: hold, type: WAIT, signal: go}
  edges:
    - {from: double, to: big}
    - {from: big, to: hold, condition: "true"}
    - {from: big, to: end, condition: "false"}
"""
DEADLINE_S = 40.0


def app(folder: Path) -> App:
    @tool(effects=False, name="double")
    async def double(n: int) -> int:
        """Twice as much; nothing that is below nothing."""
        if n < 0:
            raise ToldError(f"{n} is below nothing")
        return 2 * n

    file = folder / "parent.yaml"
    file.write_text(PARENT)
    return App(tools=[double], manifests=[file])


async def row_at(house: House, parent: UUID, path: str) -> RunRow | None:
    """The row of the sub-run that the node at `path` has started."""
    async with house.db.transaction() as conn:
        return await runs.get(conn, TENANT, ids.sub_run_id(parent, path))


async def test_a_sub_run_is_a_run_with_a_row_of_its_own(house: House, tmp_path: Path) -> None:
    """AW-4. Its id follows from parent and path; the parent gets outcome and output, from branches in their order."""
    async with house.with_app(app(tmp_path)) as busy:
        run_id = await busy.start({"n": 4, "more": [1, 2, 3]}, "parent")
        await busy.reaches(run_id, "COMPLETED", deadline_s=DEADLINE_S)
        assert await values(busy, run_id) == {
            "one": {"outcome": None, "output": 8},
            "more": [{"outcome": None, "output": number} for number in (2, 4, 6)],
        }
        for path in ("first.1", "each.1/child.1", "each.1/child.2", "each.1/child.3"):
            row = await row_at(busy, run_id, path)
            assert row is not None
            assert (row.status, row.workflow_name, row.user_id) == ("COMPLETED", "child", "ann")
            assert (row.parent_run_id, row.parent_path) == (run_id, path)
        assert ids.sub_run_id(run_id, "first.1") != ids.step_id(run_id, "first.1")
        started = [path for path, _ in await told(busy, run_id, "agent.sub_run_started")]
        assert sorted(started) == ["each.1/child.1", "each.1/child.2", "each.1/child.3", "first.1"]


async def test_a_failed_sub_run_fails_the_node_with_its_reason(house: House, tmp_path: Path) -> None:
    """AW-8. FAILED comes up as the node's failure, as a local run says it; an input that does not fit starts none."""
    async with house.with_app(app(tmp_path)) as busy:
        run_id = await busy.start({"n": -1, "more": []}, "parent")
        row = await busy.reaches(run_id, "FAILED", deadline_s=DEADLINE_S)
        assert row.failure == "first: the run of child ended FAILED: double: -1 is below nothing"
        wrong = await busy.start({"n": "many", "more": []}, "parent")
        row = await busy.reaches(wrong, "FAILED", deadline_s=DEADLINE_S)
        assert row.failure is not None
        assert row.failure.startswith("first: input.n: ")
        assert await row_at(busy, wrong, "first.1") is None


async def test_cancelling_the_parent_cancels_its_sub_runs(house: House, tmp_path: Path) -> None:
    """AW-4. A cancellation goes down, and the sub-run says by whom."""
    async with house.with_app(app(tmp_path)) as busy:
        run_id = await busy.start({"n": 1, "more": [60, 70]}, "parent")
        for path in ("each.1/child.1", "each.1/child.2"):
            await waits(busy, ids.sub_run_id(run_id, path), "hold.1")
        await busy.runs.cancel(str(run_id), CancelRequest("rita", "enough"))
        await busy.reaches(run_id, "CANCELLED", deadline_s=DEADLINE_S)
        for path in ("each.1/child.1", "each.1/child.2"):
            row = await busy.reaches(ids.sub_run_id(run_id, path), "CANCELLED", deadline_s=DEADLINE_S)
            assert row.failure == f"cancelled by run {run_id}, which started it"


async def test_a_sub_run_that_a_person_stops_fails_its_node(house: House, tmp_path: Path) -> None:
    """AW-4. CANCELLED comes up as the node's failure."""
    async with house.with_app(app(tmp_path)) as busy:
        run_id = await busy.start({"n": 60, "more": []}, "parent")
        sub = ids.sub_run_id(run_id, "first.1")
        await waits(busy, sub, "hold.1")
        await busy.runs.cancel(str(sub), CancelRequest("rita", "not this one"))
        row = await busy.reaches(run_id, "FAILED", deadline_s=DEADLINE_S)
        assert row.failure == "first: the run of child ended CANCELLED: cancelled by rita: not this one"


async def test_a_parent_goes_on_with_what_its_sub_run_did_meanwhile(house: House, tmp_path: Path) -> None:
    """DA-1. Workers without memory come to the same end; the sub-run is not started anew."""

    async with house.with_app(app(tmp_path)) as busy:
        run_id = await busy.start({"n": 60, "more": [2]}, "parent")
        sub = ids.sub_run_id(run_id, "first.1")
        await waits(busy, sub, "hold.1")
    await busy.runs.signal(str(sub), Signal("go", "s", "rita"))
    async with forgetful(busy):
        await busy.reaches(run_id, "COMPLETED", deadline_s=90)
    assert (await values(busy, run_id))["one"] == {"outcome": None, "output": 120}


async def test_a_sub_run_keeps_the_version_of_its_parent(house: House, tmp_path: Path) -> None:
    """AW-5. A newer version of the child is nobody's who is pinned to the older one, and stays the newest."""
    async with house.with_app(app(tmp_path)) as busy:
        before = await _latest(busy)
        changed = PARENT.replace("twice >= 100", "twice >= 1000")
        newer = tmp_path / "newer"
        newer.mkdir()
        (newer / "child.yaml").write_text(changed.split("---")[1])
        await publish(App(tools=busy.app.tools, manifests=[newer / "child.yaml"]), busy.db)
        after = await _latest(busy)
        assert after == before + 1
        run_id = await busy.start({"n": 1, "more": []}, "parent")
        await busy.reaches(run_id, "COMPLETED", deadline_s=DEADLINE_S)
        row = await row_at(busy, run_id, "first.1")
        assert row is not None
        assert row.workflow_version == before
        assert await _latest(busy) == after


async def _latest(house: House) -> int:
    async with house.db.transaction() as conn:
        found: Any = await workflows.latest(conn, TENANT, "child")
    return int(found[0])


TREES = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: talks}
spec:
  initialNode: talk
  nodes:
    - {id: talk, type: SUBWORKFLOW, workflowRef: rounds, arguments: {rounds: 1}, outputKey: talked}
    - {id: fails, type: SUBWORKFLOW, workflowRef: failing, arguments: {}, outputKey: never}
  edges: [{from: talk, to: fails}]
"""


async def test_a_free_tree_is_a_sub_run_too(house: House, tmp_path: Path) -> None:
    """AW-4. What it returns is the output; an error of its code fails the node."""
    file = tmp_path / "talks.yaml"
    file.write_text(TREES)
    made = App(tools=free_tree_app.app.tools, manifests=[file], scripts=free_tree_app.app.scripts, trees=free_trees.ALL)
    async with house.with_app(made) as busy:
        run_id = await busy.start({}, "talks")
        row = await busy.reaches(run_id, "FAILED", deadline_s=DEADLINE_S)
        assert row.failure is not None
        assert row.failure.startswith("fails: the run of failing ended FAILED: ")
        sub = await row_at(busy, run_id, "talk.1")
        assert sub is not None
        assert (sub.status, sub.workflow_name) == ("COMPLETED", "rounds")
        talked = (await values(busy, run_id))["talked"]
        assert talked == {"outcome": None, "output": (await values(busy, sub.run_id))["result"]}


async def test_a_sub_run_that_was_never_started_is_its_parents_to_start(house: House) -> None:
    """DA-8. The sweep leaves the PENDING row of a sub-run alone, and closes it when its parent has ended."""
    parent = await house.start(APPLICATION)
    sub = await house.accept(APPLICATION, parent_run_id=parent, parent_path="first.1")
    report = await sweep_now(house)
    assert (report.started, report.failed) == (0, 0)
    assert (await house.run(sub.run_id)).status == "PENDING"
    async with house.worker():
        await house.runs.cancel(str(parent), CancelRequest("rita", "enough"))
        await house.reaches(parent, "CANCELLED", deadline_s=DEADLINE_S)
    assert (await sweep_now(house)).failed == 1
    row = await house.run(sub.run_id)
    assert (row.status, row.failure) == ("FAILED", f"run {parent}, which was to start it, ended first")
