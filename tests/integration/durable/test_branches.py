"""PARALLEL and MAP of durable runs: paths, rows, values, failures in order, transcripts, cancel, lost workers."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from casework.agents import ModelAnswer, ModelRequest, Request, ToolContext, tool
from casework.app import App
from casework.durable.contracts import CancelRequest, Decision, DecisionReply
from casework.errors import FatalError, ToldError
from casework.store import messages, reviews
from casework.store.rows import MessageRow
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.test_waits import forgetful, send, told, values, waits

RESOURCES = """
---
apiVersion: casework.dev/v1alpha1
kind: AiAgent
metadata: {name: writer}
spec: {provider: scripts, tools: [fetch]}
---
apiVersion: casework.dev/v1alpha1
kind: LlmProvider
metadata: {name: scripts}
spec: {type: scripted, script: writer}
"""
HEAD = "apiVersion: casework.dev/v1alpha1\nkind: AiWorkflow\nmetadata: {name: fan}\nspec:\n  initialNode: gather\n"
DEADLINE_S = 40.0


@dataclass
class Desk:
    """The tools and the script of one test: what was called how often, and what is held up until it is let go."""

    calls: Counter[str] = field(default_factory=Counter)
    under_way: int = 0
    most: int = 0
    held: set[str] = field(default_factory=set)
    let_go: threading.Event = field(default_factory=threading.Event)
    asked: list[list[str]] = field(default_factory=list)

    def app(self, folder: Path, spec: str) -> App:
        @tool(effects=False, name="fetch")
        async def fetch(ctx: ToolContext, key: str) -> str:
            """Fetch what is known of a key."""
            self.calls[ctx.path] += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            try:
                await asyncio.sleep(0)
                if key in self.held:
                    await asyncio.to_thread(self.let_go.wait, 60)  # tools have a loop of their own
            finally:
                self.under_way -= 1
            if key.startswith("bad"):
                raise ToldError(f"nothing is known of {key}")
            if key == "broken":
                raise FatalError("the archive is closed")
            return key.upper()

        file = folder / "fan.yaml"
        file.write_text(HEAD + spec + RESOURCES)
        return App(tools=[fetch], manifests=[file], scripts={"writer": self.script})

    def script(self, request: ModelRequest) -> ModelAnswer:
        """Fetch what the first words name, then say what was told. What it reads is kept, without the answers."""
        said = [each.content for each in request.messages if each.role == "user"]
        heard = [each.content for each in request.messages if each.role == "tool"]
        self.asked.append(said)
        if not heard:
            return ModelAnswer(requests=(Request("c", "fetch", {"key": said[0]}),))
        return ModelAnswer(text=" ".join([*said, *heard]))


PARALLEL = """  nodes:
    - id: gather
      type: PARALLEL
      outputKey: found
      branches:
        - {id: web, type: AGENT, agentRef: writer, inputTemplate: "{{ input.a }}"}
        - {id: files, type: AGENT, agentRef: writer, inputTemplate: "{{ input.b }}"}
        - {id: tool, type: TOOL, tool: fetch, arguments: {key: "{{ input.a }}"}}
        - {id: later, type: WAIT, duration: 0.1}
    - {id: say, type: AGENT, agentRef: writer, inputTemplate: "{{ found.tool }}", outputKey: end}
  edges: [{from: gather, to: say}]
"""
MAP = """  nodes:
    - id: gather
      type: MAP
      items: input.keys
      outputKey: found
      maxParallel: 3
      branches: [{id: one, type: TOOL, tool: fetch, arguments: {key: "{{ item }}"}}]
"""


async def transcript(house: House, run_id: UUID) -> list[MessageRow]:
    async with house.db.transaction() as conn:
        return await messages.page(conn, TENANT, run_id)


async def test_branches_side_by_side_each_with_a_transcript_of_its_own(house: House, tmp_path: Path) -> None:
    """AW-4, AW-9. The value has each branch; steps lie below it; an agent in a branch hears nobody else."""
    desk = Desk()
    async with house.with_app(desk.app(tmp_path, PARALLEL)) as busy:
        run_id = await busy.start({"a": "x", "b": "y"}, "fan")
        await busy.reaches(run_id, "COMPLETED", deadline_s=DEADLINE_S)
        found = (await values(busy, run_id))["found"]
        assert found == {"web": 'x "X"', "files": 'y "Y"', "tool": "X", "later": None}
        assert {step.path for step in await busy.steps(run_id)} == {
            "gather.1/web.1/exchange.1/model.1",
            "gather.1/web.1/exchange.1/fetch.1",
            "gather.1/web.1/exchange.2/model.1",
            "gather.1/files.1/exchange.1/model.1",
            "gather.1/files.1/exchange.1/fetch.1",
            "gather.1/files.1/exchange.2/model.1",
            "gather.1/tool.1",
            "say.1/exchange.1/model.1",
            "say.1/exchange.1/fetch.1",
            "say.1/exchange.2/model.1",
        }
        said = await transcript(busy, run_id)
        assert {row.agent for row in said} == {"writer@gather.1/web.1", "writer@gather.1/files.1", "writer"}
        assert [row.position for row in said] == list(range(1, len(said) + 1))
        assert sorted(map(tuple, desk.asked)) == [("X",), ("X",), ("x",), ("x",), ("y",), ("y",)]
        done = [path for path, _ in await told(busy, run_id, "agent.branch_completed")]
        assert sorted(done) == ["gather.1/files.1", "gather.1/later.1", "gather.1/tool.1", "gather.1/web.1"]


async def test_a_map_keeps_the_order_of_its_items(house: House, tmp_path: Path) -> None:
    """AW-4. Values in the order of the items, at most maxParallel at one time; no items is an empty list."""
    desk, keys = Desk(), [f"k{number}" for number in range(12)]
    async with house.with_app(desk.app(tmp_path, MAP)) as busy:
        run_id = await busy.start({"keys": keys}, "fan")
        await busy.reaches(run_id, "COMPLETED", deadline_s=DEADLINE_S)
        assert (await values(busy, run_id))["found"] == [key.upper() for key in keys]
        assert desk.most <= 3
        assert sorted(desk.calls) == sorted(f"gather.1/one.{number}" for number in range(1, 13))
        empty = await busy.start({"keys": []}, "fan")
        await busy.reaches(empty, "COMPLETED", deadline_s=DEADLINE_S)
        assert (await values(busy, empty))["found"] == []
        wrong = await busy.start({"keys": "k"}, "fan")
        row = await busy.reaches(wrong, "FAILED", deadline_s=DEADLINE_S)
        assert row.failure == "gather: items gave 'k', not a list. Correct the expression."
        assert [path for path, _ in await told(busy, wrong, "agent.node_failed")] == ["gather.1"]


async def test_failed_branches_are_told_in_order_and_the_others_go_on(house: House, tmp_path: Path) -> None:
    """AW-8. The join waits for all; the reason names each failed branch; what the others did stands."""
    desk = Desk()
    async with house.with_app(desk.app(tmp_path, MAP)) as busy:
        run_id = await busy.start({"keys": ["bad1", "b", "bad2", "d"]}, "fan")
        row = await busy.reaches(run_id, "FAILED", deadline_s=DEADLINE_S)
        assert row.failure == (
            "gather: 2 of 4 branches failed: one.1: nothing is known of bad1; one.3: nothing is known of bad2"
        )
        assert len(desk.calls) == 4
        assert "found" not in await values(busy, run_id)
        failed = await told(busy, run_id, "agent.branch_failed")
        assert sorted(path for path, _ in failed) == ["gather.1/one.1", "gather.1/one.3"]


async def test_who_catches_failed_branches_gets_what_the_others_brought(house: House, tmp_path: Path) -> None:
    """AW-8. The value is there for what follows, and for readers, with null in place of what failed."""
    said = '    - {id: say, type: AGENT, agentRef: writer, inputTemplate: "{{ found[1] }}", outputKey: end}\n'
    spec = f"{MAP}{said}  edges: [{{from: gather, to: end}}, {{from: gather, to: say, onError: true}}]\n"
    async with house.with_app(Desk().app(tmp_path, spec)) as busy:
        run_id = await busy.start({"keys": ["bad1", "b"]}, "fan")
        await busy.reaches(run_id, "COMPLETED", deadline_s=DEADLINE_S)
        assert await values(busy, run_id) == {"found": [None, "B"], "end": 'B "B"'}


async def test_a_fault_in_a_branch_ends_the_run_at_once(house: House, tmp_path: Path) -> None:
    """AW-8. What no edge may catch does not wait for the other branches."""
    desk = Desk(held={"slow"})
    async with house.with_app(desk.app(tmp_path, MAP)) as busy:
        run_id = await busy.start({"keys": ["slow", "broken", "c"]}, "fan")
        row = await busy.reaches(run_id, "FAILED", deadline_s=DEADLINE_S)
        assert row.failure == "gather.1/one.2: the archive is closed"
        desk.let_go.set()


async def test_an_agents_failed_call_leaves_no_hole_before_the_next_agent(house: House, tmp_path: Path) -> None:
    """DA-5. Branches whose tools or models fail fill their positions, and an agent after the join reads well."""
    desk = Desk()
    spec = PARALLEL.replace("edges: [{", "edges: [{from: gather, to: say, onError: true}, {").replace(
        "{{ found.tool }}", "{{ input.b }}"
    )
    async with house.with_app(desk.app(tmp_path, spec)) as busy:
        run_id = await busy.start({"a": "bad", "b": "y"}, "fan")
        await busy.reaches(run_id, "COMPLETED", deadline_s=DEADLINE_S)
        assert (await values(busy, run_id))["end"] == 'y "Y"'


async def test_waits_in_branches_each_take_one_signal(house: House, tmp_path: Path) -> None:
    """AW-4. Two branches wait for one name: each gets one signal, and none is taken for both."""
    spec = MAP.replace('type: TOOL, tool: fetch, arguments: {key: "{{ item }}"}', "type: WAIT, signal: go")
    async with house.with_app(Desk().app(tmp_path, spec)) as busy:
        run_id = await busy.start({"keys": [1, 2]}, "fan")
        await waits(busy, run_id, "gather.1/one.2")
        await send(busy, run_id, "go", "a", "s1")
        await eventually(lambda: told(busy, run_id, "agent.wait_over"), "one is over")
        assert (await busy.run(run_id)).status == "RUNNING"
        await send(busy, run_id, "go", "b", "s2")
        await busy.reaches(run_id, "COMPLETED", deadline_s=DEADLINE_S)
        assert sorted((await values(busy, run_id))["found"]) == ["a", "b"]


async def test_a_cancelled_run_ends_its_branches(house: House, tmp_path: Path) -> None:
    """DA-7. Branches under way do not hold up the end."""
    desk = Desk(held={"a", "b"})
    async with house.with_app(desk.app(tmp_path, MAP)) as busy:
        run_id = await busy.start({"keys": ["a", "b"]}, "fan")
        await eventually(_two_under_way(desk), "both are under way")
        await busy.runs.cancel(str(run_id), CancelRequest("rita", "enough"))
        assert (await busy.reaches(run_id, "CANCELLED", deadline_s=DEADLINE_S)).failure == "cancelled by rita: enough"
        desk.let_go.set()


def _two_under_way(desk: Desk) -> Any:
    async def look() -> bool:
        return desk.under_way == 2

    return look


async def test_a_worker_lost_in_the_middle_of_a_map_repeats_no_recorded_call(house: House, tmp_path: Path) -> None:
    """DA-1, DA-2. Another worker, without memory, goes on: calls whose results are recorded are not made again."""
    keys = [f"k{number}" for number in range(9)]
    desk = Desk(held={"k4", "k5"})
    app = desk.app(tmp_path, MAP)
    async with house.with_app(app) as busy:
        run_id = await busy.start({"keys": keys}, "fan")

        async def recorded() -> list[str] | None:
            done = [step.path for step in await busy.steps(run_id) if step.state == "COMPLETED"]
            return done if len(done) == 7 else None

        done = await eventually(recorded, "all but the two that are held up are recorded")
    desk.let_go.set()
    before = Counter(desk.calls)
    async with forgetful(busy):
        await busy.reaches(run_id, "COMPLETED", deadline_s=90)
    assert (await values(busy, run_id))["found"] == [key.upper() for key in keys]
    assert all(desk.calls[path] == before[path] == 1 for path in done)


ASKING = """  nodes:
    - id: gather
      type: PARALLEL
      outputKey: found
      branches:
        - {id: risk, type: HUMAN_APPROVAL, decisions: [{name: fine}, {name: bad}]}
        - {id: law, type: HUMAN_APPROVAL, decisions: [{name: fine}, {name: bad}]}
        - {id: tool, type: TOOL, tool: fetch, arguments: {key: slow}}
"""


async def test_questions_side_by_side_are_answered_in_any_order(house: House, tmp_path: Path) -> None:
    """AW-8. Each by its own id; one answer is never taken for several, and an answered question does not return."""
    desk = Desk(held={"slow"})
    async with house.with_app(desk.app(tmp_path, ASKING)) as busy:
        run_id = await busy.start({}, "fan", turn_limit=1)
        asked = await eventually(lambda: two_questions(busy, run_id), "both are asked")
        assert (await busy.run(run_id)).status == "RUNNING", "a tool is under way"
        desk.let_go.set()
        await busy.reaches(run_id, "AWAITING_REVIEW", deadline_s=DEADLINE_S)
        said = Decision(asked["gather.1/law.1"], "d1", "bad", "no", "rita")
        assert await decided(busy, run_id, said) == DecisionReply(True)
        assert await decided(busy, run_id, said) == DecisionReply(True), "the same again is the same answer"
        again = await decided(busy, run_id, replace(said, decision_id="d2"))
        assert not again.accepted
        same_id = await decided(busy, run_id, replace(said, review_id=asked["gather.1/risk.1"]))
        assert not same_id.accepted
        assert (await busy.run(run_id)).status == "AWAITING_REVIEW"
        made = Decision(asked["gather.1/risk.1"], "d3", "fine", "", "ralf")
        assert await decided(busy, run_id, made) == DecisionReply(True)
        await busy.reaches(run_id, "COMPLETED", deadline_s=DEADLINE_S)
        assert (await values(busy, run_id))["found"] == {
            "risk": {"decision": "fine", "reason": "", "reviewer": "ralf"},
            "law": {"decision": "bad", "reason": "no", "reviewer": "rita"},
            "tool": "SLOW",
        }
        counted = [step.path for step in await busy.steps(run_id) if step.kind == "decision"]
        assert counted == ["gather.1/law.1", "gather.1/risk.1"]


async def test_open_questions_outlive_their_worker(house: House, tmp_path: Path) -> None:
    """DA-1. A worker without memory takes the answers to questions that another one has asked."""
    desk = Desk()
    async with house.with_app(desk.app(tmp_path, ASKING)) as busy:
        run_id = await busy.start({}, "fan")
        asked = await eventually(lambda: two_questions(busy, run_id), "both are asked")
        await busy.reaches(run_id, "AWAITING_REVIEW", deadline_s=DEADLINE_S)
    async with forgetful(busy):
        for number, review_id in enumerate(asked.values()):
            made = Decision(review_id, f"d{number}", "fine", "", "rita")
            assert await decided(busy, run_id, made) == DecisionReply(True)
        await busy.reaches(run_id, "COMPLETED", deadline_s=90)


async def two_questions(house: House, run_id: UUID) -> dict[str, str] | None:
    """The ids of the open reviews by path, once there are two."""
    async with house.db.transaction() as conn:
        found = await reviews.of_run(conn, TENANT, run_id)
    asked = {row.path: str(row.review_id) for row in found if row.status == "pending"}
    return asked if len(asked) == 2 else None


async def decided(house: House, run_id: UUID, made: Decision) -> DecisionReply:
    reply = await house.runs.decide_and_confirm(str(run_id), made, 30)
    assert reply is not None
    return reply


MUCH = """  nodes:
    - {id: gather, type: MAP, items: input.keys, outputKey: found, branches: [
        {id: one, type: TOOL, tool: fetch, arguments: {key: "{{ item }}"}}]}
"""


async def test_a_branch_is_sent_what_it_mentions(house: House, tmp_path: Path) -> None:
    """DA-21. However much the run knows: the history of 60 branches is not 60 times as long for it."""
    async with house.with_app(Desk().app(tmp_path, MUCH)) as busy:
        sizes = []
        for words in ("", "x" * 200_000):
            run_id = await busy.start({"keys": [f"k{at}" for at in range(60)], "words": words}, "fan")
            await busy.reaches(run_id, "COMPLETED", deadline_s=DEADLINE_S)
            found = await busy.client.get_workflow_handle(str(run_id)).describe()
            sizes.append(found.raw_description.workflow_execution_info.history_size_bytes)
        assert sizes[1] - sizes[0] < 2 * 200_000
